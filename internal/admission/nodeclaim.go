package admission

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	karpv1 "karpenter/api/v1"
)

// DefaultNodeClaim returns a copy of the claim with what it means where it says
// nothing, as the schema has it.
func DefaultNodeClaim(c *karpv1.NodeClaim) *karpv1.NodeClaim {
	out := c.DeepCopy()
	if out.Spec.ExpireAfter == "" {
		out.Spec.ExpireAfter = string(karpv1.DefaultExpireAfter)
	}
	return out
}

// ValidateNodeClaim returns an *InvalidError with everything that is wrong
// with the claim, or nil.
func ValidateNodeClaim(c *karpv1.NodeClaim) error {
	c, spec := DefaultNodeClaim(c), field.NewPath("spec")
	errs := requirements(spec.Child("requirements"), c.Spec.Requirements)
	errs = append(errs, taints(spec, c.Spec.Taints, c.Spec.StartupTaints)...)
	errs = append(errs, amounts(spec.Child("resources", "requests"), c.Spec.Resources.Requests)...)
	errs = append(errs, nodeClassRef(spec.Child("nodeClassRef"), c.Spec.NodeClassRef)...)
	errs = append(errs, durationOrNever(spec.Child("expireAfter"), karpv1.DurationOrNever(c.Spec.ExpireAfter))...)
	if g := c.Spec.TerminationGracePeriod; g != nil {
		errs = append(errs, duration(spec.Child("terminationGracePeriod"), karpv1.Duration(g.Duration.String()))...)
	}
	return invalid(karpv1.Kind, c.Name, errs)
}

// requirements checks the form of a list of requirements. Which keys may be
// used is a matter of the kind of object.
func requirements(path *field.Path, list []karpv1.Requirement) field.ErrorList {
	if list == nil {
		return field.ErrorList{field.Required(path, "may be an empty list")}
	}
	errs := most(path, len(list), mostEntries)
	for i, r := range list {
		at := path.Index(i)
		errs = append(errs, most(at.Child("values"), len(r.Values), 2000)...)
		least := 0
		if r.MinValues != nil {
			least = *r.MinValues
			if least < 1 || least > 50 {
				errs = append(errs, field.Invalid(at.Child("minValues"), least, "must be between 1 and 50"))
			}
		}
		errs = append(errs, requirementForm(at, requirement{r.Key, string(r.Operator), r.Values, least},
			[]string{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"})...)
	}
	return errs
}

func nodeClassRef(path *field.Path, ref karpv1.NodeClassRef) field.ErrorList {
	var errs field.ErrorList
	if ref.Group == "" || strings.Contains(ref.Group, "/") {
		errs = append(errs, field.Invalid(path.Child("group"), ref.Group, "must be an API group without version, for example karpenter.k8s.aws"))
	}
	if ref.Kind == "" {
		errs = append(errs, field.Required(path.Child("kind"), "for example EC2NodeClass"))
	}
	if ref.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), fmt.Sprintf("the name of the %s", ref.Kind)))
	}
	return errs
}
