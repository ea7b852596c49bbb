package convert

import (
	"fmt"
	"maps"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	awsv1 "karpenter/api/aws/v1"
	awsv1alpha1 "karpenter/api/aws/v1alpha1"
	karpv1 "karpenter/api/v1"
	"karpenter/api/v1alpha5"
	"karpenter/internal/admission"
	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/dialect"
)

// PoolOf translates a pool of either kind.
func PoolOf(o runtime.Object) (world.Pool, error) {
	switch p := o.(type) {
	case *v1alpha5.Provisioner:
		return Pool(p)
	case *karpv1.NodePool:
		return NodePool(p)
	}
	return world.Pool{}, fmt.Errorf("%T is not a pool", o)
}

// Conditions returns the conditions of a pool or class of either generation, to
// be read or changed.
func Conditions(o runtime.Object) *[]metav1.Condition {
	switch o := o.(type) {
	case *v1alpha5.Provisioner:
		return &o.Status.Conditions
	case *karpv1.NodePool:
		return &o.Status.Conditions
	case *awsv1alpha1.AWSNodeTemplate:
		return &o.Status.Conditions
	case *awsv1.EC2NodeClass:
		return &o.Status.Conditions
	}
	return &[]metav1.Condition{}
}

// ClassName is the name of the class that a pool refers to; empty if it holds
// the cloud settings itself.
func ClassName(pool runtime.Object) string {
	switch p := pool.(type) {
	case *v1alpha5.Provisioner:
		if p.Spec.ProviderRef != nil {
			return p.Spec.ProviderRef.Name
		}
	case *karpv1.NodePool:
		return p.Spec.Template.Spec.NodeClassRef.Name
	}
	return ""
}

// NodePool translates a NodePool, with what it means where it says nothing.
//
// An object that breaks the rules of the API is an error; the pool that comes
// with it is as with [Pool].
func NodePool(p *karpv1.NodePool) (world.Pool, error) {
	out := world.Pool{Name: p.Name, Kind: dialect.KindNodePool, UID: string(p.UID)}
	p = admission.DefaultNodePool(p)
	if err := admission.ValidateNodePool(p); err != nil {
		out.NotReady = admission.Reason(err)
		return out, err
	}
	spec := &p.Spec
	template := &spec.Template
	if spec.Weight != nil {
		out.Weight = *spec.Weight
	}
	ref := template.Spec.NodeClassRef
	out.Class = world.ClassRef{Group: ref.Group, Kind: ref.Kind, Name: ref.Name}
	out.Catalog = CatalogKey(out.Class, out.Kubelet)
	out.Labels = map[string]string{}
	for k, v := range template.Metadata.Labels {
		out.Labels[k] = string(v)
	}
	out.Labels[dialect.NodePool.PoolLabel] = p.Name
	if ref.Group == dialect.NodePool.ClassGroup && ref.Kind == dialect.NodePool.ClassKind {
		out.Labels[dialect.NodePool.ClassLabel] = ref.Name
	}
	out.Annotations = maps.Clone(template.Metadata.Annotations)
	out.Requirements = requirements(template.Spec.Requirements)
	out.Taints = taints(template.Spec.Taints)
	out.StartupTaints = taints(template.Spec.StartupTaints)
	out.Limits = limits(spec.Limits)
	out.Lifetime = durationOf(string(template.Spec.ExpireAfter))
	if g := template.Spec.TerminationGracePeriod; g != nil {
		out.TerminationGrace = durationOf(string(*g))
	}
	disruption(&out, &spec.Disruption)
	out.Hash = PoolHash(p)
	return out, nil
}

// disruption reads when machines are taken away.
func disruption(out *world.Pool, d *karpv1.Disruption) {
	quiet := durationOf(string(d.ConsolidateAfter)) // Never turns all of it off
	out.EmptyAfter = quiet
	out.Consolidate = quiet != nil && d.ConsolidationPolicy != karpv1.ConsolidationWhenEmpty
	out.Disruption = world.Disruption{
		QuietFor: quiet, Balanced: d.ConsolidationPolicy == karpv1.ConsolidationBalanced, ForcefulExpiry: true,
	}
	for _, b := range d.Budgets {
		budget := world.Budget{Nodes: b.Nodes}
		for _, r := range b.Reasons {
			budget.Reasons = append(budget.Reasons, string(r))
		}
		if b.Schedule != nil {
			budget.Schedule = string(*b.Schedule)
		}
		if b.Duration != nil {
			budget.Duration = durationOf(string(*b.Duration))
		}
		out.Disruption.Budgets = append(out.Disruption.Budgets, budget)
	}
}

func requirements(list []karpv1.Requirement) []label.Requirement {
	var out []label.Requirement
	for _, r := range list {
		req := requirement(r.Key, r.Operator, r.Values)
		if r.MinValues != nil {
			req.MinValues = *r.MinValues
		}
		out = append(out, req)
	}
	return out
}

// durationOf reads a length of time; nil for none, and for Never.
func durationOf(text string) *world.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		return nil
	}
	return &world.Duration{Duration: d}
}

// DurationText writes a length of time in the form of the API: whole hours,
// minutes and seconds, without those that are zero.
func DurationText(d time.Duration) string {
	text := d.Truncate(time.Second).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
