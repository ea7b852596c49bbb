package agreement

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"karpenter/internal/core/label"
)

const aws = "karpenter.k8s.aws/"

// vocabulary holds the label keys that pods and Provisioners speak of, with
// values that occur on nodes and some that do not.
var vocabulary = []word{
	{key: label.Zone, values: []string{"us-west-2a", "us-west-2b", "us-west-2c", "us-west-2x"}},
	{key: label.Region, values: []string{"us-west-2", "us-west-2", "us-west-2", "eu-west-1"}},
	{key: label.InstanceType, values: []string{"m5.large", "m5.xlarge", "c6a.xlarge", "r5.2xlarge", "m6g.xlarge", "g4dn.xlarge", "t3.large"}},
	{key: label.Arch, values: []string{"amd64", "amd64", "arm64"}},
	{key: label.OS, values: []string{"linux", "linux", "linux", "windows"}},
	{key: label.CapacityType, values: []string{"spot", "on-demand"}},
	{key: aws + "instance-category", values: []string{"m", "c", "r", "t", "g"}},
	{key: aws + "instance-family", values: []string{"m5", "c6a", "r5", "t3", "m6g", "g4dn"}},
	{key: aws + "instance-size", values: []string{"large", "xlarge", "2xlarge", "4xlarge"}},
	{key: aws + "instance-generation", values: []string{"3", "4", "5", "6"}, number: true},
	{key: aws + "instance-cpu", values: []string{"2", "4", "8", "16"}, number: true},
	{key: aws + "instance-memory", values: []string{"4096", "8192", "16384", "32768"}, number: true},
	{key: aws + "instance-gpu-name", values: []string{"t4", "v100"}},
	{key: aws + "instance-local-nvme", values: []string{"100", "125", "300"}, number: true},
	{key: "team", values: []string{"a", "b", "c"}, custom: true},
	{key: "example.com/rank", values: []string{"1", "2", "5", "10", "x"}, number: true, custom: true},
	{key: "nobody-has-it", values: []string{"yes", "no"}, custom: true},
}

// fromPods are keys that pods may speak of and Provisioners may not, or that
// only a pod would use.
var fromPods = []word{
	{key: label.Provisioner, values: []string{"pool-0", "pool-1", "pool-9"}},
	{key: label.Hostname, values: []string{"node-0", "node-1", "own-0", "claim-0"}},
	{key: label.Initialized, values: []string{"true"}},
	{key: "failure-domain.beta.kubernetes.io/zone", values: []string{"us-west-2a", "us-west-2b"}},
	{key: "beta.kubernetes.io/arch", values: []string{"amd64", "arm64"}},
	{key: "beta.kubernetes.io/instance-type", values: []string{"m5.large", "m5.xlarge", "c6a.xlarge"}},
	{key: "node.kubernetes.io/unheard-of", values: []string{"a"}},
}

// word is a label key with values.
type word struct {
	key    string
	values []string
	number bool // Gt and Lt make sense
	custom bool // no instance type has a say in it
}

func (d *draft) word() word {
	switch {
	case d.chance(0.1):
		return pick(d, fromPods)
	case d.chance(0.3):
		return vocabulary[0] // zones matter most
	}
	return pick(d, vocabulary)
}

// expression makes a requirement on the word's key.
func (d *draft) expression(w word) corev1.NodeSelectorRequirement {
	out := corev1.NodeSelectorRequirement{Key: w.key}
	switch n := d.r.IntN(20); {
	case n < 9:
		out.Operator, out.Values = corev1.NodeSelectorOpIn, some(d, w.values, 3)
	case n < 14 && !w.number:
		out.Operator, out.Values = corev1.NodeSelectorOpNotIn, some(d, w.values, 2)
	case n < 14:
		out.Operator, out.Values = corev1.NodeSelectorOpGt, []string{d.number(w)}
		if d.chance(0.5) {
			out.Operator = corev1.NodeSelectorOpLt
		}
	case n < 16:
		out.Operator, out.Values = corev1.NodeSelectorOpNotIn, some(d, w.values, 3)
	case n < 19:
		out.Operator = corev1.NodeSelectorOpExists
	default:
		out.Operator = corev1.NodeSelectorOpDoesNotExist
	}
	return out
}

// number is a bound at, beside or far from a value that occurs.
func (d *draft) number(w word) string {
	n, err := strconv.Atoi(pick(d, w.values))
	if err != nil {
		n = 3
	}
	return fmt.Sprint(max(0, n+d.between(-1, 1)))
}

func nodeSelector(d *draft, t *template) {
	s := &t.Spec
	s.NodeSelector = map[string]string{}
	for range max(1, d.between(0, 2)) {
		w := d.word()
		s.NodeSelector[w.key] = pick(d, w.values)
	}
}

func (d *draft) term() corev1.NodeSelectorTerm {
	var t corev1.NodeSelectorTerm
	for range max(1, d.between(-1, 3)) {
		t.MatchExpressions = append(t.MatchExpressions, d.expression(d.word()))
	}
	return t
}

func (d *draft) nodeAffinity(s *corev1.PodSpec) *corev1.NodeAffinity {
	if s.Affinity == nil {
		s.Affinity = &corev1.Affinity{}
	}
	if s.Affinity.NodeAffinity == nil {
		s.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	return s.Affinity.NodeAffinity
}

func requiredAffinity(d *draft, t *template) {
	s := &t.Spec
	required := &corev1.NodeSelector{}
	for range d.between(1, 3) {
		required.NodeSelectorTerms = append(required.NodeSelectorTerms, d.term())
	}
	if d.chance(0.05) {
		required.NodeSelectorTerms = append(required.NodeSelectorTerms, corev1.NodeSelectorTerm{}) // matches nothing
	}
	d.nodeAffinity(s).RequiredDuringSchedulingIgnoredDuringExecution = required
}

func preferredAffinity(d *draft, t *template) {
	s := &t.Spec
	a := d.nodeAffinity(s)
	for range d.between(1, 2) {
		a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{Weight: int32(d.between(1, 100)), Preference: d.term()})
	}
}
