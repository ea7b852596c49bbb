package crdcheck

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	awsv1 "karpenter/api/aws/v1"
	karpv1 "karpenter/api/v1"
	"karpenter/internal/admission"
	"karpenter/internal/core/label"
	admissiontest "karpenter/test/admission"
)

// TestObjects: the rules of the CRDs say of each object what they should, and
// package admission says the same.
func TestObjects(t *testing.T) {
	kinds := loadKinds(t)
	objects, err := admissiontest.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		t.Run(o.Kind+"/"+o.Case, func(t *testing.T) {
			check(t, kinds[o.Kind].judge(normal(t, o.Fields), nil), o.Reject)
			if err := admission.Check(o.YAML()); (err != nil) != o.Wrong() {
				t.Errorf("package admission says: %v", err)
			}
		})
	}
}

// TestFiles: the objects of the cases and of the examples.
func TestFiles(t *testing.T) {
	kinds := loadKinds(t)
	for _, tt := range []struct {
		glob string
		// fault says whether something must be wrong with an object.
		fault func(file, name string) bool
		least int
	}{
		{"../../test/cases/case-8[689]-*/input.yaml", func(_, name string) bool { return !strings.HasPrefix(name, "ok-") }, 28},
		{"../../examples/v1/*.yaml", func(string, string) bool { return false }, 10},
		{"../../examples/workshop/*.yaml", func(string, string) bool { return false }, 2},
		{"../../examples/scenes/*.yaml", func(string, string) bool { return false }, 3},
		{"../../examples/workshop-v1/*.yaml", func(string, string) bool { return false }, 2},
	} {
		files, err := filepath.Glob(tt.glob)
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for _, file := range files {
			for _, object := range documents(t, file) {
				name, _, _ := unstructured.NestedString(object, "metadata", "name")
				k, ours := kinds[object["kind"].(string)]
				if !ours {
					continue
				}
				seen++
				text, err := json.Marshal(object)
				if err != nil {
					t.Fatal(err)
				}
				crd, own := k.judge(object, nil), admission.Check(text)
				if wrong := tt.fault(file, name); wrong != (len(crd) > 0) || wrong != (own != nil) {
					t.Errorf("%s: %s: something wrong %v, but the CRD says: %v, package admission: %v", file, name, wrong, crd.ToAggregate(), own)
				}
			}
		}
		if seen < tt.least {
			t.Errorf("%s: only %d objects", tt.glob, seen)
		}
	}
}

// documents reads a file of manifests.
func documents(t *testing.T, file string) []map[string]any {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]any
	for _, part := range strings.Split("\n"+string(text), "\n---") {
		object := map[string]any{}
		if err := yaml.Unmarshal([]byte(part), &object); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if len(object) > 0 {
			out = append(out, normal(t, object))
		}
	}
	return out
}

// TestWellKnownLabels: the rules list the same labels as package label.
func TestWellKnownLabels(t *testing.T) {
	kinds := loadKinds(t)
	for _, key := range label.WellKnownKeys() {
		if key == label.NodePool || key == label.Provisioner {
			continue
		}
		for _, o := range byCase(t, "Provisioner/plain name", "NodePool/plain") {
			path := []string{"spec", "requirements"}
			labels := []string{"spec", "labels"}
			if o.Kind == "NodePool" {
				path, labels = []string{"spec", "template", "spec", "requirements"}, []string{"spec", "template", "metadata", "labels"}
			}
			set(t, o.Fields, []any{map[string]any{"key": key, "operator": "Exists"}}, path...)
			set(t, o.Fields, map[string]any{key: "1"}, labels...)
			check(t, kinds[o.Kind].judge(normal(t, o.Fields), nil), nil)
		}
	}
}

// TestUpdates: what may not change later.
func TestUpdates(t *testing.T) {
	kinds := loadKinds(t)
	for _, tt := range []struct {
		name, from string
		path       []string
		to         any
		reject     []string
	}{
		{"nothing of a claim", "NodeClaim/plain", []string{"spec", "expireAfter"}, "720h", nil},
		{"a claim", "NodeClaim/plain", []string{"spec", "expireAfter"}, "1h", []string{"spec", "immutable"}},
		{"weight of a pool", "NodePool/plain", []string{"spec", "weight"}, 7, nil},
		{"name of the class of a pool", "NodePool/plain", []string{"spec", "template", "spec", "nodeClassRef", "name"}, "other", nil},
		{"kind of the class of a pool", "NodePool/plain", []string{"spec", "template", "spec", "nodeClassRef", "kind"}, "Other", []string{"nodeClassRef.kind", "cannot be changed"}},
		{"group of the class of a pool", "NodePool/plain", []string{"spec", "template", "spec", "nodeClassRef", "group"}, "other", []string{"nodeClassRef.group", "cannot be changed"}},
		{"replicas of a pool, as kubectl scale does", "NodePool/plain", []string{"spec", "replicas"}, 3, []string{"spec.replicas", "not supported yet"}},
		{"role of a class", "EC2NodeClass/plain", []string{"spec", "role"}, "other", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := byCase(t, tt.from)[0]
			old := normal(t, o.Fields)
			if errs := kinds[o.Kind].judge(old, nil); len(errs) > 0 { // applies the defaults too
				t.Fatal(errs)
			}
			changed := runtime.DeepCopyJSON(old)
			set(t, changed, tt.to, tt.path...)
			check(t, kinds[o.Kind].judge(normal(t, changed), old), tt.reject)
		})
	}
}

// TestDefaults: the schema and package admission mean the same where an object
// says nothing.
func TestDefaults(t *testing.T) {
	kinds := loadKinds(t)
	for _, o := range byCase(t, "NodePool/plain", "NodePool/no disruption", "NodePool/no budgets", "NodePool/budget without nodes", "NodeClaim/plain", "EC2NodeClass/plain", "EC2NodeClass/empty metadata options") {
		t.Run(o.Kind+"/"+o.Case, func(t *testing.T) {
			stored := normal(t, o.Fields)
			if errs := kinds[o.Kind].judge(stored, nil); len(errs) > 0 {
				t.Fatal(errs)
			}
			if want, got := defaulted(t, stored), defaulted(t, o.Fields); want != got {
				t.Errorf("package admission:\n%s\nthe schema:\n%s", got, want)
			}
		})
	}
}

// defaulted is the object as package admission reads it.
func defaulted(t *testing.T, fields map[string]any) string {
	t.Helper()
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	switch fields["kind"] {
	case karpv1.KindNodePool:
		p := &karpv1.NodePool{}
		err = yaml.UnmarshalStrict(text, p)
		out = admission.DefaultNodePool(p)
	case karpv1.Kind:
		c := &karpv1.NodeClaim{}
		err = yaml.UnmarshalStrict(text, c)
		out = admission.DefaultNodeClaim(c)
	case awsv1.Kind:
		c := &awsv1.EC2NodeClass{}
		err = yaml.UnmarshalStrict(text, c)
		out = admission.DefaultEC2NodeClass(c)
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err = yaml.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// byCase returns the objects of these cases, each named with its kind.
func byCase(t *testing.T, names ...string) []admissiontest.Object {
	t.Helper()
	all, err := admissiontest.All()
	if err != nil {
		t.Fatal(err)
	}
	var out []admissiontest.Object
	for _, name := range names {
		i := slices.IndexFunc(all, func(o admissiontest.Object) bool { return o.Kind+"/"+o.Case == name })
		if i < 0 {
			t.Fatalf("no case %s", name)
		}
		out = append(out, all[i])
	}
	return out
}

func set(t *testing.T, object map[string]any, value any, path ...string) {
	t.Helper()
	for _, key := range path[:len(path)-1] {
		if object[key] == nil {
			object[key] = map[string]any{}
		}
		object = object[key].(map[string]any)
	}
	object[path[len(path)-1]] = value
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
