package agreement

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/internal/core/label"
)

// apps and revisions are the values of the labels by which pods select pods.
var apps, revisions = []string{"a", "b", "c"}, []string{"1", "2"}

// topologyKeys are what pods are spread over, or attracted and repelled by.
var topologyKeys = []string{
	label.Zone, label.Zone, label.Zone, label.Hostname, label.Hostname, label.CapacityType, "team", label.Arch, "example.com/rank", label.InstanceType,
}

func (d *draft) podLabels() map[string]string {
	if d.chance(0.1) {
		return nil
	}
	out := map[string]string{"app": pick(d, apps)}
	if d.chance(0.7) {
		out["rev"] = pick(d, revisions)
	}
	return out
}

// selector selects mostly the pod's own kind, sometimes others, everything or
// nothing.
func (d *draft) selector(own map[string]string) *metav1.LabelSelector {
	switch n := d.r.IntN(20); {
	case n < 11 && own != nil:
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": own["app"]}}
	case n < 15:
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": pick(d, apps)}}
	case n < 16:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: some(d, apps, 2)}}}
	case n < 17:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: some(d, apps, 2)}}}
	case n < 18:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "rev", Operator: metav1.LabelSelectorOpExists}}}
	case n < 19:
		return &metav1.LabelSelector{}
	}
	return nil
}

// topologySpread adds one or two constraints.
func topologySpread(d *draft, t *template) {
	for _, key := range some(d, topologyKeys, 2) {
		c := corev1.TopologySpreadConstraint{
			MaxSkew: int32(d.between(1, 3)), TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: d.selector(t.Labels),
		}
		if d.chance(0.3) {
			c.WhenUnsatisfiable = corev1.ScheduleAnyway
		} else if d.chance(0.2) {
			c.MinDomains = new(int32(d.between(1, 4)))
		}
		if d.chance(0.2) {
			c.NodeAffinityPolicy = new(pick(d, []corev1.NodeInclusionPolicy{corev1.NodeInclusionPolicyIgnore, corev1.NodeInclusionPolicyHonor}))
		}
		if d.chance(0.2) {
			c.NodeTaintsPolicy = new(pick(d, []corev1.NodeInclusionPolicy{corev1.NodeInclusionPolicyIgnore, corev1.NodeInclusionPolicyHonor}))
		}
		if d.chance(0.2) && c.LabelSelector != nil {
			c.MatchLabelKeys = []string{"rev"}
		}
		t.Spec.TopologySpreadConstraints = append(t.Spec.TopologySpreadConstraints, c)
	}
}
