package boot

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Kubelet is the part of a kubelet's configuration that shows on its Node.
type Kubelet struct {
	Labels      map[string]string
	Taints      []corev1.Taint
	MaxPods     int64 // 0 = not set
	PodsPerCore int64 // 0 = no limit
	// Reserved for the kubelet and the system, as given; nil = not set.
	KubeReserved   map[string]string
	SystemReserved map[string]string
	// EvictionHard maps a signal to a quantity or a percentage.
	EvictionHard map[string]string
}

// ParseKubelet reads kubelet arguments. It fails where the kubelet would not
// start: an unknown flag, a malformed value, a label that a kubelet may not
// give itself.
func ParseKubelet(args []string) (Kubelet, error) {
	var k Kubelet
	for i := 0; i < len(args); i++ {
		flag, value, ok := strings.Cut(args[i], "=")
		if !ok {
			if i++; i == len(args) {
				return k, fmt.Errorf("kubelet: %s needs a value", flag)
			}
			value = args[i]
		}
		if err := k.set(flag, value); err != nil {
			return k, fmt.Errorf("kubelet: %s: %w", flag, err)
		}
	}
	return k, nil
}

func (k *Kubelet) set(flag, value string) (err error) {
	switch flag {
	case "--node-labels":
		k.Labels, err = parseLabels(value)
	case "--register-with-taints":
		k.Taints, err = parseTaints(value)
	case "--max-pods":
		k.MaxPods, err = strconv.ParseInt(value, 10, 32)
	case "--pods-per-core":
		k.PodsPerCore, err = strconv.ParseInt(value, 10, 32)
	case "--system-reserved":
		k.SystemReserved, err = parseMap(value, "=")
	case "--kube-reserved":
		k.KubeReserved, err = parseMap(value, "=")
	case "--eviction-hard":
		k.EvictionHard, err = parseMap(value, "<")
	case "--eviction-soft":
		_, err = parseMap(value, "<")
	case "--eviction-soft-grace-period":
		_, err = parseMap(value, "=")
	case "--eviction-max-pod-grace-period":
		_, err = strconv.ParseInt(value, 10, 32)
	case "--v", "--hostname-override", "--cluster-dns", "--image-gc-high-threshold", "--image-gc-low-threshold", "--cpu-cfs-quota", "--feature-gates":
	default:
		return errors.New("unknown flag")
	}
	return err
}

func parseMap(text, sep string) (map[string]string, error) {
	m := map[string]string{}
	for _, pair := range strings.Split(text, ",") {
		key, value, ok := strings.Cut(pair, sep)
		if !ok {
			return nil, fmt.Errorf("%q is not of the form key%svalue", pair, sep)
		}
		m[strings.TrimSpace(key)] = strings.TrimSpace(value)
	}
	return m, nil
}

// ownLabels are the labels of the kubernetes.io and k8s.io domains that a
// kubelet may give its own Node; prefixes node.kubernetes.io and
// kubelet.kubernetes.io are allowed too.
var ownLabels = []string{
	corev1.LabelHostname, corev1.LabelTopologyZone, corev1.LabelTopologyRegion,
	corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion,
	corev1.LabelInstanceType, corev1.LabelInstanceTypeStable,
	corev1.LabelOSStable, corev1.LabelArchStable, "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
}

func parseLabels(text string) (map[string]string, error) {
	labels, err := parseMap(text, "=")
	if err != nil {
		return nil, err
	}
	for key, value := range labels {
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			return nil, fmt.Errorf("label key %q: %s", key, problems[0])
		}
		if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
			return nil, fmt.Errorf("label %s=%q: %s", key, value, problems[0])
		}
		domain, _, _ := strings.Cut(key, "/")
		if within(domain, "kubernetes.io") || within(domain, "k8s.io") {
			own := slices.Contains(ownLabels, key) || within(domain, corev1.LabelNamespaceSuffixNode) || within(domain, corev1.LabelNamespaceSuffixKubelet)
			if !own {
				return nil, fmt.Errorf("label %q: a kubelet may not give itself this label of the kubernetes.io or k8s.io domain", key)
			}
		}
	}
	return labels, nil
}

func within(domain, parent string) bool {
	return domain == parent || strings.HasSuffix(domain, "."+parent)
}

func parseTaints(text string) ([]corev1.Taint, error) {
	var taints []corev1.Taint
	for _, one := range strings.Split(text, ",") {
		pair, effect, ok := strings.Cut(one, ":")
		if !ok {
			return nil, fmt.Errorf("taint %q has no effect", one)
		}
		key, value, _ := strings.Cut(pair, "=")
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			return nil, fmt.Errorf("taint key %q: %s", key, problems[0])
		}
		switch corev1.TaintEffect(effect) {
		case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		default:
			return nil, fmt.Errorf("taint %q: unknown effect %q", one, effect)
		}
		taints = append(taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
	}
	return taints, nil
}

// Numbers of the programs that configure the kubelet; they are the same in all
// images.
const (
	kubeReservedEphemeral = "1Gi"
	defaultMaxPods        = 110 // of the kubelet
)

// eniPods is how many pods the network interfaces have addresses for.
func (m Machine) eniPods() int64 { return m.MaxENIs*(m.IPv4PerENI-1) + 2 }

// complete fills in what the image writes into the kubelet's configuration where
// the user data does not say it. Memory is reserved for that many pods.
func (k Kubelet) complete(m Machine, pods int64) Kubelet {
	if k.PodsPerCore > 0 {
		k.MaxPods = min(k.MaxPods, k.PodsPerCore*m.VCPU)
	}
	if k.KubeReserved == nil {
		k.KubeReserved = map[string]string{
			"cpu":               fmt.Sprintf("%dm", cpuReserved(m.VCPU*1000)),
			"memory":            fmt.Sprintf("%dMi", 11*pods+255),
			"ephemeral-storage": kubeReservedEphemeral,
		}
	}
	if k.EvictionHard == nil {
		k.EvictionHard = map[string]string{
			"memory.available": "100Mi", "nodefs.available": "10%", "nodefs.inodesFree": "5%",
		}
	}
	return k
}

// cpuReserved is 6 % of the first core, 1 % of the second, 0.5 % of the next
// two and 0.25 % of the rest, each cut to whole millicores.
func cpuReserved(milli int64) int64 {
	var total int64
	for _, band := range []struct{ from, to, perTenThousand int64 }{
		{0, 1000, 600}, {1000, 2000, 100}, {2000, 4000, 50}, {4000, math.MaxInt64, 25},
	} {
		if milli > band.from {
			total += (min(milli, band.to) - band.from) * band.perTenThousand / 10000
		}
	}
	return total
}

// allocatable is capacity minus what is reserved and what triggers a hard
// eviction, never below zero.
func (k Kubelet) allocatable(capacity corev1.ResourceList) (corev1.ResourceList, error) {
	left := corev1.ResourceList{}
	for name, amount := range capacity {
		amount = amount.DeepCopy()
		for what, reserved := range map[string]map[string]string{"kube-reserved": k.KubeReserved, "system-reserved": k.SystemReserved} {
			if text, ok := reserved[string(name)]; ok {
				q, err := resource.ParseQuantity(text)
				if err != nil {
					return nil, fmt.Errorf("kubelet: --%s: %s=%s: %w", what, name, text, err)
				}
				amount.Sub(q)
			}
		}
		signal := map[corev1.ResourceName]string{
			corev1.ResourceMemory:           "memory.available",
			corev1.ResourceEphemeralStorage: "nodefs.available",
		}[name]
		if text, ok := k.EvictionHard[signal]; ok {
			q, err := threshold(text, capacity[name])
			if err != nil {
				return nil, fmt.Errorf("kubelet: --eviction-hard: %s<%s: %w", signal, text, err)
			}
			amount.Sub(q)
		}
		if amount.Sign() < 0 {
			amount = resource.Quantity{Format: amount.Format}
		}
		left[name] = amount
	}
	return left, nil
}

// threshold reads a quantity or a percentage of a capacity.
func threshold(text string, capacity resource.Quantity) (resource.Quantity, error) {
	percent, ok := strings.CutSuffix(text, "%")
	if !ok {
		return resource.ParseQuantity(text)
	}
	p, err := strconv.ParseFloat(percent, 64)
	if err != nil {
		return resource.Quantity{}, err
	}
	return *resource.NewQuantity(int64(float64(capacity.Value())*p/100), resource.BinarySI), nil
}
