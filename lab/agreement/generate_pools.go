package agreement

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"karpenter/api/v1alpha5"
	"karpenter/internal/admission"
	"karpenter/internal/core/label"
	"karpenter/internal/kube/convert"
)

// provisioners makes one to three of them; about one in ten is not ready.
func provisioners(d *draft) {
	for i := range d.between(1, 3) {
		name := fmt.Sprintf("pool-%d", i)
		p := d.provisioner(name)
		for admission.ValidateProvisioner(&p) != nil || !d.canBuy(&p) && d.chance(0.9) {
			p = d.provisioner(name)
		}
		d.Provisioners = append(d.Provisioners, p)
	}
}

// canBuy reports whether any type and zone satisfies the Provisioner itself.
func (d *draft) canBuy(p *v1alpha5.Provisioner) bool {
	pool, err := convert.Pool(p)
	return err == nil && len(survivors(d.Cluster, convert.Claim(pool, convert.Machine{Requirements: pool.Requirements}))) > 0
}

func (d *draft) provisioner(name string) v1alpha5.Provisioner {
	p := v1alpha5.Provisioner{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Generation: 1},
		Spec: v1alpha5.ProvisionerSpec{
			ProviderRef: &v1alpha5.ProviderRef{Name: "default"},
			Labels:      d.poolLabels(),
		},
		Status: v1alpha5.ProvisionerStatus{Conditions: []metav1.Condition{{
			Type: v1alpha5.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: 1, LastTransitionTime: ago(0), Reason: "Ready",
		}}},
	}
	if d.chance(0.1) {
		p.Status.Conditions[0].Status, p.Status.Conditions[0].Message = metav1.ConditionFalse, "no subnet"
	}
	if d.chance(0.4) {
		p.Spec.Weight = new(int32(d.between(1, 100)))
	}
	if d.chance(0.7) { // any type: the default would leave the small families out
		p.Spec.Requirements = append(p.Spec.Requirements,
			v1alpha5.Requirement{Key: label.InstanceType, Operator: corev1.NodeSelectorOpExists},
			v1alpha5.Requirement{Key: label.Arch, Operator: corev1.NodeSelectorOpIn, Values: []string{"amd64", "arm64"}})
	}
	if d.chance(0.6) {
		p.Spec.Requirements = append(p.Spec.Requirements,
			v1alpha5.Requirement{Key: label.CapacityType, Operator: corev1.NodeSelectorOpIn, Values: []string{"spot", "on-demand"}})
	}
	for range d.between(0, 2) {
		e := d.expression(pick(d, vocabulary))
		p.Spec.Requirements = append(p.Spec.Requirements, v1alpha5.Requirement{Key: e.Key, Operator: e.Operator, Values: e.Values})
	}
	p.Spec.Taints, p.Spec.StartupTaints = d.poolTaints(0.25), nil
	for _, t := range d.poolTaints(0.15) {
		clash := func(o v1alpha5.Taint) bool { return o.Key == t.Key }
		if !slices.ContainsFunc(p.Spec.Taints, clash) {
			p.Spec.StartupTaints = append(p.Spec.StartupTaints, t)
		}
	}
	if d.chance(0.35) {
		p.Spec.Limits = &v1alpha5.Limits{Resources: d.limits()}
	}
	return p
}

func (d *draft) poolLabels() map[string]v1alpha5.LabelValue {
	out := map[string]v1alpha5.LabelValue{}
	for _, w := range vocabulary {
		if w.custom && d.chance(0.25) || d.chance(0.01) {
			out[w.key] = v1alpha5.LabelValue(pick(d, w.values))
		}
	}
	return out
}

func (d *draft) poolTaints(often float64) []v1alpha5.Taint {
	var out []v1alpha5.Taint
	for _, t := range d.taints(often) {
		out = append(out, v1alpha5.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
	}
	return out
}

func (d *draft) limits() corev1.ResourceList {
	out := corev1.ResourceList{}
	if d.chance(0.8) {
		out[corev1.ResourceCPU] = *resource.NewQuantity(int64(d.between(0, 40)), resource.DecimalSI)
	}
	if d.chance(0.4) {
		out[corev1.ResourceMemory] = *resource.NewQuantity(int64(d.between(0, 160))<<30, resource.BinarySI)
	}
	if d.chance(0.2) {
		out["nvidia.com/gpu"] = *resource.NewQuantity(int64(d.between(0, 2)), resource.DecimalSI)
	}
	return out
}
