package admission

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	karpv1 "karpenter/api/v1"
)

var expiry = regexp.MustCompile(`^(([0-9]+(s|m|h))+|Never)$`)

// ValidateNodeClaim returns an *InvalidError with everything that is wrong
// with the claim, or nil.
func ValidateNodeClaim(c *karpv1.NodeClaim) error {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	if c.Spec.Requirements == nil {
		errs = append(errs, field.Required(spec.Child("requirements"), "may be an empty list"))
	}
	for i, r := range c.Spec.Requirements {
		at := spec.Child("requirements").Index(i)
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
	ref, at := c.Spec.NodeClassRef, spec.Child("nodeClassRef")
	if ref.Group == "" || strings.Contains(ref.Group, "/") {
		errs = append(errs, field.Invalid(at.Child("group"), ref.Group, "must be an API group without version, for example karpenter.k8s.aws"))
	}
	if ref.Kind == "" {
		errs = append(errs, field.Required(at.Child("kind"), "for example AWSNodeTemplate"))
	}
	if ref.Name == "" {
		errs = append(errs, field.Required(at.Child("name"), "the name of the object with the cloud settings"))
	}
	if e := c.Spec.ExpireAfter; e != "" && !expiry.MatchString(e) {
		errs = append(errs, field.Invalid(spec.Child("expireAfter"), e, "must be a duration in hours, minutes and seconds, such as 720h, or Never"))
	}
	return invalid(karpv1.Kind, c.Name, errs)
}
