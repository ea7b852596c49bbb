package admission

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	karpv1 "karpenter/api/v1"
	"karpenter/internal/core/label"
)

// DefaultNodePool returns a copy of the pool with what it means where it says
// nothing, as the schema has it. No requirement is added in this generation.
func DefaultNodePool(p *karpv1.NodePool) *karpv1.NodePool {
	out := p.DeepCopy()
	if t := &out.Spec.Template.Spec; t.ExpireAfter == "" {
		t.ExpireAfter = karpv1.DefaultExpireAfter
	}
	d := &out.Spec.Disruption
	if d.ConsolidateAfter == "" {
		d.ConsolidateAfter = karpv1.DefaultConsolidateAfter
	}
	if d.ConsolidationPolicy == "" {
		d.ConsolidationPolicy = karpv1.DefaultConsolidationPolicy
	}
	if d.Budgets == nil {
		d.Budgets = []karpv1.Budget{{}}
	}
	for i := range d.Budgets {
		if d.Budgets[i].Nodes == "" {
			d.Budgets[i].Nodes = karpv1.DefaultBudgetNodes
		}
	}
	return out
}

// annotationAdopt, on a NodePool, names a Provisioner.
const annotationAdopt = "karpenter.sh/adopt-provisioner"

// ValidateNodePool returns an *InvalidError with everything that is wrong with
// the pool, or nil. Whether its class exists is not asked.
func ValidateNodePool(p *karpv1.NodePool) error {
	p, spec := DefaultNodePool(p), field.NewPath("spec")
	errs := labelName(p.Name)
	if from, adopts := p.Annotations[annotationAdopt]; adopts && !dns1035.MatchString(from) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "annotations").Key(annotationAdopt), from, "must be the name of a Provisioner, whose machines the NodePool takes over"))
	}
	errs = append(errs, template(spec.Child("template"), &p.Spec.Template)...)
	errs = append(errs, disruption(spec.Child("disruption"), &p.Spec.Disruption)...)
	errs = append(errs, amounts(spec.Child("limits"), p.Spec.Limits)...)
	if n, set := p.Spec.Limits["nodes"]; set && n.Sign() >= 0 && !whole(n) {
		errs = append(errs, field.Invalid(spec.Child("limits").Key("nodes"), n.String(), "must be a whole number of nodes"))
	}
	errs = append(errs, weight(spec.Child("weight"), p.Spec.Weight)...)
	if p.Spec.Replicas != nil {
		errs = append(errs, field.Forbidden(spec.Child("replicas"), "replicas: static pools are not supported yet; remove it, and the pool is sized by the pods that wait"))
	}
	return invalid(karpv1.KindNodePool, p.Name, errs)
}

// whole reports whether nothing is lost when the amount is rounded.
func whole(q resource.Quantity) bool { return q.RoundUp(0) }

func template(path *field.Path, t *karpv1.Template) field.ErrorList {
	meta, spec := path.Child("metadata"), path.Child("spec")
	errs := annotations(meta.Child("annotations"), t.Metadata.Annotations)
	errs = append(errs, templateLabels(meta.Child("labels"), t.Metadata.Labels)...)
	errs = append(errs, taints(spec, t.Spec.Taints, t.Spec.StartupTaints)...)
	errs = append(errs, templateRequirements(spec.Child("requirements"), t.Spec.Requirements)...)
	if n := len(t.Metadata.Labels) + len(t.Spec.Requirements); n > mostEntries {
		errs = append(errs, field.Invalid(spec.Child("requirements"), n, fmt.Sprintf("labels and requirements together must not be more than %d", mostEntries)))
	}
	errs = append(errs, nodeClassRef(spec.Child("nodeClassRef"), t.Spec.NodeClassRef)...)
	errs = append(errs, durationOrNever(spec.Child("expireAfter"), t.Spec.ExpireAfter)...)
	if g := t.Spec.TerminationGracePeriod; g != nil {
		errs = append(errs, duration(spec.Child("terminationGracePeriod"), *g)...)
	}
	return errs
}

func templateLabels(path *field.Path, labels map[string]karpv1.LabelValue) field.ErrorList {
	errs := most(path, len(labels), mostEntries)
	for _, k := range sortedKeys(labels) {
		at := path.Key(k)
		errs = append(errs, key(at, k)...)
		errs = append(errs, value(at, string(labels[k]))...)
		errs = append(errs, templateKey(at, k)...)
	}
	return errs
}

func templateRequirements(path *field.Path, list []karpv1.Requirement) field.ErrorList {
	errs := requirements(path, list)
	for i, r := range list {
		at := path.Index(i)
		errs = append(errs, templateKey(at.Child("key"), r.Key)...)
		if r.Key != label.CapacityType || r.Operator != corev1.NodeSelectorOpIn {
			continue
		}
		known := len(slices.DeleteFunc(slices.Clone(r.Values), func(v string) bool { return v != label.Spot && v != label.OnDemand }))
		if known == 0 && len(r.Values) > 0 {
			errs = append(errs, field.Invalid(at.Child("values"), r.Values, "the values of karpenter.sh/capacity-type must hold spot or on-demand; reserved capacity is not supported yet"))
		}
		if r.MinValues != nil && *r.MinValues > known {
			errs = append(errs, field.Invalid(at.Child("minValues"), *r.MinValues, "must not be greater than the number of values of karpenter.sh/capacity-type that are known: spot and on-demand"))
		}
	}
	return errs
}

// Domains of labels that belong to the controller, whole or as the end of
// another one.
var templateDomains = []string{"karpenter.sh", "karpenter.k8s.aws"}

// templateKey checks that users may put a label on a pool of this generation,
// which restricts fewer domains than a Provisioner does.
func templateKey(path *field.Path, k string) field.ErrorList {
	if ownKey(k) {
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf("%s is not for users: every node is labelled with the name of its pool anyway; remove it", k))}
	}
	domain, _, _ := strings.Cut(k, "/")
	ours := slices.ContainsFunc(templateDomains, func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) })
	if k != label.Hostname && !ours || label.WellKnown(k) {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, fmt.Sprintf("label %s is restricted: %s and the domains %s are reserved; "+
		"allowed are their well-known labels (karpenter.sh/capacity-type, karpenter.k8s.aws/instance-*) and any other domain", k, label.Hostname, strings.Join(templateDomains, " and ")))}
}
