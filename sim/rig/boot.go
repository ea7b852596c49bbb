package rig

import (
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/mail"
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"karpenter/internal/core/quantity"
	"karpenter/internal/kube/convert"
	"karpenter/sim/ec2"
)

// Boot is what user data tells a machine's kubelet, as far as it shows on the
// Node.
type Boot struct {
	Labels  map[string]string
	Taints  []corev1.Taint
	MaxPods int64 // 0: not set
}

// What user data says, in the words of AL2 and AL2023 (kubelet flags), of
// AL2023's NodeConfig and of Bottlerocket's settings.
var (
	labelFlag  = regexp.MustCompile(`--node-labels[= ]"?([^\s"']+)`)
	taintFlag  = regexp.MustCompile(`--register-with-taints[= ]"?([^\s"']+)`)
	maxPods    = regexp.MustCompile(`(?:--max-pods[= ]|maxPods: |max-pods = )"?(\d+)`)
	tomlTable  = regexp.MustCompile(`^\[settings\.kubernetes\.node-(labels|taints)\]$`)
	tomlEntry  = regexp.MustCompile(`^["']?([^"'=\s]+)["']?\s*=\s*(.*)$`)
	tomlString = regexp.MustCompile(`["']([^"']*)["']`)
)

// ReadUserData reads user data.
func ReadUserData(text string) Boot {
	b := Boot{Labels: map[string]string{}}
	for _, m := range labelFlag.FindAllStringSubmatch(text, -1) {
		for _, pair := range strings.Split(m[1], ",") {
			if k, v, ok := strings.Cut(pair, "="); ok {
				b.Labels[k] = v
			}
		}
	}
	for _, m := range taintFlag.FindAllStringSubmatch(text, -1) {
		for _, one := range strings.Split(m[1], ",") {
			b.taint(one)
		}
	}
	if m := maxPods.FindStringSubmatch(text); m != nil {
		b.MaxPods, _ = strconv.ParseInt(m[1], 10, 32)
	}
	b.tables(text)
	b.nodeConfigs(text)
	return b
}

// nodeConfigs reads the taints in the NodeConfigs of AL2023, alone or as parts of
// several.
func (b *Boot) nodeConfigs(text string) {
	parts := []string{text}
	if m, err := mail.ReadMessage(strings.NewReader(text)); err == nil {
		_, params, _ := mime.ParseMediaType(m.Header.Get("Content-Type"))
		r := multipart.NewReader(m.Body, params["boundary"])
		for p, err := r.NextPart(); err == nil; p, err = r.NextPart() {
			body, _ := io.ReadAll(p) // from memory
			parts = append(parts, string(body))
		}
	}
	for _, part := range parts {
		var c struct {
			Kind string `json:"kind"`
			Spec struct {
				Kubelet struct {
					Config struct {
						RegisterWithTaints []corev1.Taint `json:"registerWithTaints"`
					} `json:"config"`
				} `json:"kubelet"`
			} `json:"spec"`
		}
		if yaml.Unmarshal([]byte(part), &c) == nil && c.Kind == "NodeConfig" {
			b.Taints = append(b.Taints, c.Spec.Kubelet.Config.RegisterWithTaints...)
		}
	}
}

// taint reads key=value:effect.
func (b *Boot) taint(text string) {
	pair, effect, ok := strings.Cut(text, ":")
	if !ok {
		return
	}
	key, value, _ := strings.Cut(pair, "=")
	b.Taints = append(b.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
}

// tables reads labels and taints of Bottlerocket.
func (b *Boot) tables(text string) {
	table := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			table = ""
			if m := tomlTable.FindStringSubmatch(line); m != nil {
				table = m[1]
			}
			continue
		}
		m := tomlEntry.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		for _, v := range tomlString.FindAllStringSubmatch(m[2], -1) {
			if table == "labels" {
				b.Labels[m[1]] = v[1]
			}
			if table == "taints" {
				b.taint(m[1] + "=" + v[1])
			}
		}
	}
}

// podFiles is what a root volume of the usual size leaves for pods' files.
var podFiles = resource.MustParse("17Gi")

// NodeOf is the Node that a machine's kubelet and the cloud controller make,
// ready for work. It offers what its type states, or else all that it has.
func (r *Rig) NodeOf(i *ec2.Instance) *corev1.Node {
	boot := ReadUserData(i.UserData)
	name := i.PrivateDNS
	if name == "" {
		name = i.ID
	}
	now := metav1.NewTime(r.clock)
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: maps.Clone(boot.Labels)},
		Spec:       corev1.NodeSpec{ProviderID: i.ProviderID(), Taints: boot.Taints},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastTransitionTime: now, LastHeartbeatTime: now}}},
	}
	arch := "amd64"
	if len(i.Row.Arch) == 1 && i.Row.Arch[0] == "arm64" {
		arch = "arm64"
	}
	maps.Copy(n.Labels, map[string]string{
		corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: arch,
		corev1.LabelInstanceTypeStable: i.Type, corev1.LabelTopologyZone: i.Zone, corev1.LabelTopologyRegion: r.Cloud.Region(),
	})
	all := []quantity.Amount{{Name: quantity.CPU, Value: i.Row.VCPU * 1000}, {Name: quantity.Memory, Value: i.Row.MemoryMiB << 20}, {Name: quantity.Pods, Value: 110}}
	offered := all
	if s := i.Row.Stated; s != nil {
		all, offered = s.Capacity, s.Allocatable
	}
	n.Status.Capacity, n.Status.Allocatable = convert.ResourceList(quantity.Of(all...)), convert.ResourceList(quantity.Of(offered...))
	for _, l := range []corev1.ResourceList{n.Status.Capacity, n.Status.Allocatable} {
		if boot.MaxPods > 0 {
			l[corev1.ResourcePods] = *resource.NewQuantity(boot.MaxPods, resource.DecimalSI)
		}
		if _, ok := l[corev1.ResourceEphemeralStorage]; !ok {
			l[corev1.ResourceEphemeralStorage] = podFiles
		}
	}
	return n
}
