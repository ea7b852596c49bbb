package boot

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	corev1 "k8s.io/api/core/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

// System is what an image makes of its user data: a machine whose kubelet is
// about to start.
type System struct {
	// Name is that of the operating system.
	Name    string
	Cluster string
	Runtime string
	Kubelet Kubelet
	// Storage is the device of the volume that holds pods' files, unless the
	// machine joins the disks of its type for that.
	Storage    string
	JoinsDisks bool
}

// Boot reads the user data of a machine the way its image does. Which image it
// is shows in the user data.
func Boot(m Machine) (System, error) {
	parts, err := partsOf(m.UserData)
	var settings bottlerocketData
	switch {
	case err != nil && toml.Unmarshal([]byte(m.UserData), &map[string]any{}) == nil && strings.Contains(m.UserData, "[settings"):
		d := toml.NewDecoder(strings.NewReader(m.UserData)).DisallowUnknownFields()
		if err := d.Decode(&settings); err != nil {
			return System{}, fmt.Errorf("user data: %w", err)
		}
		return settings.boot(m)
	case err == nil && slices.ContainsFunc(parts, func(p part) bool { return p.kind == nodeConfig }):
		return bootNodeConfig(parts, m)
	}
	return bootScript(m)
}

// bootScript is what Amazon Linux 2 does. Its bootstrap program reserves memory
// for as many pods as there are addresses, whatever else is asked for.
func bootScript(m Machine) (System, error) {
	b, err := ParseUserData(m.UserData)
	if err != nil {
		return System{}, err
	}
	k, err := ParseKubelet(b.KubeletArgs)
	if err != nil {
		return System{}, err
	}
	if k.MaxPods == 0 {
		if k.MaxPods = defaultMaxPods; b.UseMaxPods {
			k.MaxPods = m.eniPods()
		}
	}
	return System{
		Name: "Amazon Linux 2", Cluster: b.Cluster, Runtime: b.ContainerRuntime, Kubelet: k.complete(m, m.eniPods()),
		Storage: "/dev/xvda", JoinsDisks: b.LocalDisks == "raid0",
	}, nil
}

// nodeadm's configuration.
type nodeadmConfig struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       struct {
		Cluster struct {
			Name                 string `json:"name"`
			APIServerEndpoint    string `json:"apiServerEndpoint"`
			CertificateAuthority string `json:"certificateAuthority"`
			CIDR                 string `json:"cidr"`
		} `json:"cluster"`
		Instance struct {
			LocalStorage struct {
				Strategy string `json:"strategy"`
			} `json:"localStorage"`
		} `json:"instance"`
		Kubelet struct {
			Config map[string]any `json:"config"`
			Flags  []string       `json:"flags"`
		} `json:"kubelet"`
	} `json:"spec"`
}

// bootNodeConfig is what nodeadm does on Amazon Linux 2023: of several
// configurations the later wins, field by field, and their flags add up.
func bootNodeConfig(parts []part, m Machine) (System, error) {
	var c nodeadmConfig
	merged := map[string]any{}
	var flags []string
	for _, p := range parts {
		if p.kind != nodeConfig {
			continue
		}
		var one nodeadmConfig
		if err := yaml.UnmarshalStrict([]byte(p.text), &one); err != nil {
			return System{}, fmt.Errorf("user data: NodeConfig: %w", err)
		}
		if one.APIVersion != "node.eks.aws/v1alpha1" || one.Kind != "NodeConfig" {
			return System{}, fmt.Errorf("user data: %s %s is not a NodeConfig of node.eks.aws/v1alpha1", one.APIVersion, one.Kind)
		}
		overlay(merged, one.Spec.Kubelet.Config)
		flags = append(flags, one.Spec.Kubelet.Flags...)
		if err := yaml.Unmarshal([]byte(p.text), &c); err != nil { // over the earlier ones
			return System{}, fmt.Errorf("user data: NodeConfig: %w", err)
		}
	}
	for field, value := range map[string]string{
		"name": c.Spec.Cluster.Name, "apiServerEndpoint": c.Spec.Cluster.APIServerEndpoint,
		"certificateAuthority": c.Spec.Cluster.CertificateAuthority, "cidr": c.Spec.Cluster.CIDR,
	} {
		if value == "" {
			return System{}, fmt.Errorf("user data: NodeConfig: spec.cluster.%s is missing", field)
		}
	}
	k, err := ParseKubelet(flags)
	if err == nil {
		err = k.configure(merged)
	}
	if err != nil {
		return System{}, err
	}
	if k.MaxPods == 0 {
		k.MaxPods = m.eniPods()
	}
	return System{
		Name: "Amazon Linux 2023", Cluster: c.Spec.Cluster.Name, Runtime: "containerd", Kubelet: k.complete(m, k.MaxPods),
		Storage: "/dev/xvda", JoinsDisks: c.Spec.Instance.LocalStorage.Strategy == "RAID0",
	}, nil
}

// configure reads a configuration file of the kubelet. One with a field that the
// kubelet does not know keeps it from starting.
func (k *Kubelet) configure(config map[string]any) error {
	text, err := yaml.Marshal(config)
	if err != nil {
		return err
	}
	var c kubeletv1beta1.KubeletConfiguration
	if err := yaml.UnmarshalStrict(text, &c); err != nil {
		return fmt.Errorf("kubelet: its configuration: %w", err)
	}
	k.MaxPods, k.PodsPerCore = int64(c.MaxPods), int64(c.PodsPerCore)
	k.KubeReserved, k.SystemReserved, k.EvictionHard = c.KubeReserved, c.SystemReserved, c.EvictionHard
	for _, t := range c.RegisterWithTaints {
		if t.Key == "" || t.Effect == "" {
			return fmt.Errorf("kubelet: taint %q has no key or no effect", t.ToString())
		}
		k.Taints = append(k.Taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
	}
	return nil
}

// overlay lays one map over another, deeply.
func overlay(below, above map[string]any) {
	for key, value := range above {
		lower, ok := below[key].(map[string]any)
		if upper, is := value.(map[string]any); is && ok {
			overlay(lower, upper)
			continue
		}
		below[key] = value
	}
}

// bottlerocketData are the settings of Bottlerocket that matter to a Node, and
// those that do not but are known. It refuses others, as Bottlerocket does.
type bottlerocketData struct {
	Settings struct {
		Kubernetes struct {
			APIServer   string              `toml:"api-server"`
			Certificate string              `toml:"cluster-certificate"`
			Cluster     string              `toml:"cluster-name"`
			DNS         string              `toml:"cluster-dns-ip"`
			MaxPods     int64               `toml:"max-pods"`
			Labels      map[string]string   `toml:"node-labels"`
			Taints      map[string][]string `toml:"node-taints"`
			System      map[string]string   `toml:"system-reserved"`
			Kube        map[string]string   `toml:"kube-reserved"`
			Eviction    map[string]string   `toml:"eviction-hard"`
			GCHigh      any                 `toml:"image-gc-high-threshold-percent"`
			GCLow       any                 `toml:"image-gc-low-threshold-percent"`
			Quota       any                 `toml:"cpu-cfs-quota-enforced"`
			StaticPods  any                 `toml:"static-pods"`
			Sysctls     any                 `toml:"allowed-unsafe-sysctls"`
			ServerTLS   any                 `toml:"server-tls-bootstrap"`
			QPS         any                 `toml:"registry-qps"`
			Burst       any                 `toml:"registry-burst"`
			EventQPS    any                 `toml:"event-qps"`
			EventBurst  any                 `toml:"event-burst"`
			APIQPS      any                 `toml:"kube-api-qps"`
			APIBurst    any                 `toml:"kube-api-burst"`
			LogSize     any                 `toml:"container-log-max-size"`
			LogFiles    any                 `toml:"container-log-max-files"`
			CPUManager  any                 `toml:"cpu-manager-policy"`
			CPUPeriod   any                 `toml:"cpu-manager-reconcile-period"`
			Scope       any                 `toml:"topology-manager-scope"`
			Topology    any                 `toml:"topology-manager-policy"`
		} `toml:"kubernetes"`
		Commands map[string]struct {
			Commands  [][]string `toml:"commands"`
			Mode      string     `toml:"mode"`
			Essential bool       `toml:"essential"`
		} `toml:"bootstrap-commands"`
		NTP  any `toml:"ntp"`
		Host any `toml:"host-containers"`
	} `toml:"settings"`
}

func (d *bottlerocketData) boot(m Machine) (System, error) {
	s := d.Settings.Kubernetes
	if s.APIServer == "" || s.Certificate == "" || s.Cluster == "" {
		return System{}, errors.New("user data: settings.kubernetes needs api-server, cluster-certificate and cluster-name")
	}
	k := Kubelet{MaxPods: s.MaxPods, Labels: s.Labels, KubeReserved: s.Kube, SystemReserved: s.System, EvictionHard: s.Eviction}
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		pairs = append(pairs, key+"="+s.Labels[key])
	}
	if len(pairs) > 0 {
		if _, err := parseLabels(strings.Join(pairs, ",")); err != nil {
			return System{}, fmt.Errorf("kubelet: %w", err)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.Taints)) {
		for _, value := range s.Taints[key] {
			taints, err := parseTaints(key + "=" + value)
			if err != nil {
				return System{}, fmt.Errorf("kubelet: %w", err)
			}
			k.Taints = append(k.Taints, taints...)
		}
	}
	if k.MaxPods == 0 {
		k.MaxPods = m.eniPods()
	}
	out := System{Name: "Bottlerocket OS", Cluster: s.Cluster, Runtime: "containerd", Kubelet: k.complete(m, k.MaxPods), Storage: "/dev/xvdb"}
	for _, c := range d.Settings.Commands {
		for _, words := range c.Commands {
			out.JoinsDisks = out.JoinsDisks || strings.HasPrefix(strings.Join(words, " "), "apiclient ephemeral-storage bind")
		}
	}
	return out, nil
}
