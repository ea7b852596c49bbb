package crdcheck

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"karpenter/api/crds"
)

// kind is one CRD, ready to judge objects.
type kind struct {
	crd        *apiextensions.CustomResourceDefinition
	structural *schema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
}

func loadKinds(t *testing.T) map[string]kind {
	t.Helper()
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]kind{}
	for _, v1 := range all {
		apiextensionsv1.SetDefaults_CustomResourceDefinition(v1)
		apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&v1.Spec)
		crd := &apiextensions.CustomResourceDefinition{}
		if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(v1, crd, nil); err != nil {
			t.Fatalf("%s: %v", v1.Name, err)
		}
		crd.Status.StoredVersions = []string{v1.Spec.Versions[0].Name}
		openAPI, err := apiextensions.GetSchemaForVersion(crd, v1.Spec.Versions[0].Name)
		if err != nil {
			t.Fatalf("%s: %v", v1.Name, err)
		}
		structural, err := schema.NewStructural(openAPI.OpenAPIV3Schema)
		if err != nil {
			t.Fatalf("%s: %v", v1.Name, err)
		}
		validator, _, err := validation.NewSchemaValidator(openAPI.OpenAPIV3Schema)
		if err != nil {
			t.Fatalf("%s: %v", v1.Name, err)
		}
		kinds[crd.Spec.Names.Kind] = kind{crd, structural, validator, cel.NewValidator(structural, true, celconfig.PerCallLimit)}
	}
	return kinds
}

// judge does what the API server does with an object that is created, or
// updated if old is given, with strict field validation.
func (k kind) judge(obj, old map[string]any) field.ErrorList {
	var errs field.ErrorList
	pruned := pruning.PruneWithOptions(obj, k.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	for _, path := range pruned {
		errs = append(errs, field.Invalid(field.NewPath(path), nil, "unknown field"))
	}
	defaulting.Default(obj, k.structural)
	errs = append(errs, validation.ValidateCustomResource(nil, obj, k.schema)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, k.structural, obj)...)
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return errs // the API server leaves the rules out then
		}
	}
	var before any
	if old != nil {
		before = old
	}
	more, _ := k.rules.Validate(context.Background(), nil, k.structural, obj, before, celconfig.RuntimeCELCostBudget)
	return append(errs, more...)
}

// TestAccepted: an API server would accept the CRDs, cost of the rules
// included.
func TestAccepted(t *testing.T) {
	for name, k := range loadKinds(t) {
		for _, err := range crdvalidation.ValidateCustomResourceDefinition(context.Background(), k.crd) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestColumnsAreOneValue: of several values a column would show the first alone,
// as if it were all.
func TestColumnsAreOneValue(t *testing.T) {
	for name, k := range loadKinds(t) {
		for _, v := range k.crd.Spec.Versions {
			for _, c := range append(k.crd.Spec.AdditionalPrinterColumns, v.AdditionalPrinterColumns...) {
				if strings.Contains(c.JSONPath, "[*]") {
					t.Errorf("%s: column %q shows one of many: %s", name, c.Name, c.JSONPath)
				}
			}
		}
	}
}
