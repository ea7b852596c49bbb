// Package admission holds the rules of the API as functions: what an object
// means where it says nothing (Default…), and what is wrong with it
// (Validate…, which takes objects with and without their defaults).
//
// It is pure and imports the API types and core/label only. The CRDs carry the
// same rules as schema and CEL, so the API server refuses most wrong objects
// before anybody reads them; this package serves objects that never saw an API
// server, and what CEL cannot say (the inline provider). Both are held to the
// objects of test/admission. Defaults are never written into a user's object.
package admission

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	awsv1 "karpenter/api/aws/v1"
	awsv1alpha1 "karpenter/api/aws/v1alpha1"
	karpv1 "karpenter/api/v1"
	"karpenter/api/v1alpha5"
	"karpenter/internal/core/label"
)

// InvalidError says everything that is wrong with one object.
type InvalidError struct {
	Kind, Name string
	Problems   field.ErrorList
}

func (e *InvalidError) Error() string { return fmt.Sprintf("%s %q: %s", e.Kind, e.Name, e.problems()) }

func (e *InvalidError) problems() string {
	texts := make([]string, 0, len(e.Problems))
	for _, p := range e.Problems {
		texts = append(texts, p.Error())
	}
	return strings.Join(texts, "; ")
}

// Reason is the error without the object that it is about, for messages that
// have named it already.
func Reason(err error) string {
	var inv *InvalidError
	if errors.As(err, &inv) {
		return inv.problems()
	}
	return err.Error()
}

func invalid(kind, name string, problems field.ErrorList) error {
	if len(problems) == 0 {
		return nil
	}
	return &InvalidError{Kind: kind, Name: name, Problems: problems}
}

// Check reads one object of the API in YAML or JSON, strictly, and returns what
// is wrong with it, as the API server and the controller together would say.
func Check(object []byte) error {
	text, err := yaml.YAMLToJSONStrict(object)
	if err != nil {
		return err
	}
	var head metav1.TypeMeta
	if err := json.Unmarshal(text, &head); err != nil {
		return fmt.Errorf("must be an object: %w", err)
	}
	for _, k := range kinds {
		if k.version.String() == head.APIVersion && k.kind == head.Kind {
			return k.check(k.kind, text)
		}
	}
	return fmt.Errorf("kind %s of %s is not of this API", head.Kind, head.APIVersion)
}

// kinds are those of the API.
var kinds = []struct {
	version schema.GroupVersion
	kind    string
	check   func(kind string, text []byte) error
}{
	{v1alpha5.GroupVersion, v1alpha5.Kind, checker(ValidateProvisioner)},
	{awsv1alpha1.GroupVersion, awsv1alpha1.Kind, checker(ValidateAWSNodeTemplate)},
	{karpv1.GroupVersion, karpv1.KindNodePool, checker(ValidateNodePool)},
	{awsv1.GroupVersion, awsv1.Kind, checker(ValidateEC2NodeClass)},
	{karpv1.GroupVersion, karpv1.Kind, checker(ValidateNodeClaim)},
}

func checker[T any](validate func(*T) error) func(string, []byte) error {
	return func(kind string, text []byte) error {
		object := new(T)
		var head metav1.PartialObjectMetadata
		_ = json.Unmarshal(text, &head) // what cannot be read is refused below
		if err := decode(text, object); err != nil {
			if problems := Fields(kind, text, object); len(problems) > 0 {
				return invalid(kind, head.Name, problems)
			}
			return err
		}
		if head.Namespace != "" {
			return invalid(kind, head.Name, field.ErrorList{field.Forbidden(field.NewPath("metadata", "namespace"), "objects of this kind are in no namespace; take it out")})
		}
		return validate(object)
	}
}

// decode reads JSON into a wire type; a field that the type does not have is
// an error, and so is a number that does not fit.
func decode(text []byte, into any) error {
	var raw map[string]any
	if err := json.Unmarshal(text, &raw); err != nil {
		return fmt.Errorf("must be an object: %w", err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(raw, into, true); err != nil {
		return err
	}
	return json.Unmarshal(text, into) // the converter cuts numbers to size
}

var dns1035 = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)

// objectName checks metadata.name of the kinds whose name becomes the value of
// a label and part of other names.
func objectName(name string) field.ErrorList {
	if dns1035.MatchString(name) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), name,
		"must start with a lower-case letter, hold only lower-case letters, digits and '-', not end in '-', and be at most 63 characters long")}
}

// dns1123 is what the API server itself takes for a name.
var dns1123 = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

const longestLabel = 63

// labelName checks metadata.name of the kinds of v1 whose name becomes the
// value of a label.
func labelName(name string) field.ErrorList {
	if len(name) <= longestLabel && dns1123.MatchString(name) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), name,
		"must hold only lower-case letters, digits, '-' and '.', begin and end with a letter or digit, and not be longer than 63 characters, because it becomes the value of a label")}
}

// key checks that a label or taint key is a qualified name.
func key(path *field.Path, k string) field.ErrorList {
	if err := label.ValidateKey(k); err != nil {
		return field.ErrorList{field.Invalid(path, k, "must be a qualified name: "+err.Error())}
	}
	return nil
}

// value checks that a text may be the value of a label or taint.
func value(path *field.Path, v string) field.ErrorList {
	if err := label.ValidateValue(v); err != nil {
		return field.ErrorList{field.Invalid(path, v, err.Error())}
	}
	return nil
}

// ownKeys are set by us and never by users, whatever the kind of pool.
func ownKey(k string) bool { return k == label.Provisioner || k == label.NodePool }

// requirement is one entry of a list of requirements, of any kind of object.
type requirement struct {
	key, operator string
	values        []string
	minValues     int
}

// integer is what the bounds of a requirement must be; longer numbers do not
// fit everywhere.
var integer = regexp.MustCompile(`^[0-9]{1,18}$`)

// requirementForm checks operator and values. Which keys may be used is a
// matter of the kind of object.
func requirementForm(path *field.Path, r requirement, operators []string) field.ErrorList {
	errs := key(path.Child("key"), r.key)
	for i, v := range r.values {
		errs = append(errs, value(path.Child("values").Index(i), v)...)
	}
	known := false
	for _, op := range operators {
		known = known || op == r.operator
	}
	switch {
	case !known:
		errs = append(errs, field.NotSupported(path.Child("operator"), r.operator, operators))
	case r.operator == string(label.In):
		if len(r.values) == 0 {
			errs = append(errs, field.Invalid(path.Child("values"), r.values, "operator In needs at least one value"))
		} else if r.minValues > len(r.values) {
			errs = append(errs, field.Invalid(path.Child("minValues"), r.minValues, "must not be greater than the number of values"))
		}
	case isBound(r.operator) && (len(r.values) != 1 || !integer.MatchString(r.values[0])):
		errs = append(errs, field.Invalid(path, r.values,
			fmt.Sprintf("operator %s needs exactly one value, and it must be an integer of 0 or more", r.operator)))
	}
	return errs
}

func isBound(operator string) bool {
	switch label.Op(operator) {
	case label.Gt, label.Lt, label.Gte, label.Lte:
		return true
	}
	return false
}
