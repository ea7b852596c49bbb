package crdcheck

import (
	"context"
	"os"
	"path/filepath"
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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

const (
	crdDir   = "../../api/crds"
	tableDir = "../../internal/admission/testdata"
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
	files, err := filepath.Glob(filepath.Join(crdDir, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no CRDs in %s: %v", crdDir, err)
	}
	kinds := map[string]kind{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		v1 := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, v1); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		apiextensionsv1.SetDefaults_CustomResourceDefinition(v1)
		apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&v1.Spec)
		crd := &apiextensions.CustomResourceDefinition{}
		if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(v1, crd, nil); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		crd.Status.StoredVersions = []string{v1.Spec.Versions[0].Name}
		openAPI, err := apiextensions.GetSchemaForVersion(crd, v1.Spec.Versions[0].Name)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		structural, err := schema.NewStructural(openAPI.OpenAPIV3Schema)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		validator, _, err := validation.NewSchemaValidator(openAPI.OpenAPIV3Schema)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
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

// table is a file of cases. Every case is one object of the kind; metadata
// and spec are laid over those of the base, field by field.
type table struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Base       map[string]any `json:"base"`
	Cases      []struct {
		Case     string         `json:"case"`
		Metadata map[string]any `json:"metadata"`
		Spec     map[string]any `json:"spec"`
		// Without drops these fields of the base.
		Without []string `json:"without"`
		// Reject are words of the rejection; none: the object is accepted.
		Reject []string `json:"reject"`
	} `json:"cases"`
}

func TestTables(t *testing.T) {
	kinds := loadKinds(t)
	files, err := filepath.Glob(filepath.Join(tableDir, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tables in %s: %v", tableDir, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var tab table
		if err := yaml.UnmarshalStrict(text, &tab); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, c := range tab.Cases {
			t.Run(tab.Kind+"/"+c.Case, func(t *testing.T) {
				spec := map[string]any{}
				for k, v := range tab.Base {
					spec[k] = v
				}
				for _, k := range c.Without {
					delete(spec, k)
				}
				for k, v := range c.Spec {
					spec[k] = v
				}
				meta := map[string]any{"name": "test"}
				for k, v := range c.Metadata {
					meta[k] = v
				}
				obj := normal(t, map[string]any{"apiVersion": tab.APIVersion, "kind": tab.Kind, "metadata": meta, "spec": spec})
				check(t, kinds[tab.Kind].judge(obj, nil), c.Reject)
			})
		}
	}
}

func check(t *testing.T, errs field.ErrorList, words []string) {
	t.Helper()
	if len(words) == 0 {
		if len(errs) > 0 {
			t.Errorf("refused, should be accepted: %v", errs.ToAggregate())
		}
		return
	}
	if len(errs) == 0 {
		t.Errorf("accepted, should be refused with %q", words)
		return
	}
	got := errs.ToAggregate().Error()
	t.Log(got)
	for _, w := range words {
		if !strings.Contains(got, w) {
			t.Errorf("rejection lacks %q: %s", w, got)
		}
	}
}

// normal brings an object into the form in which the API server holds it.
func normal(t *testing.T, obj map[string]any) map[string]any {
	t.Helper()
	text, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
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

func TestNodeClaimIsImmutable(t *testing.T) {
	k := loadKinds(t)["NodeClaim"]
	make := func(zone string) map[string]any {
		return normal(t, map[string]any{
			"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": map[string]any{"name": "a"},
			"spec": map[string]any{
				"nodeClassRef": map[string]any{"group": "karpenter.k8s.aws", "kind": "AWSNodeTemplate", "name": "default"},
				"requirements": []any{map[string]any{"key": "topology.kubernetes.io/zone", "operator": "In", "values": []any{zone}}},
			},
		})
	}
	old := make("zone-a")
	if errs := k.judge(old, nil); len(errs) > 0 {
		t.Fatal(errs)
	}
	if errs := k.judge(make("zone-a"), runtime.DeepCopyJSON(old)); len(errs) > 0 {
		t.Errorf("no change: %v", errs)
	}
	check(t, k.judge(make("zone-b"), old), []string{"spec", "immutable"})
}
