package crdcheck

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	"karpenter/internal/admission"
	admissiontest "karpenter/test/admission"
)

// odd are values that some field does not take.
var odd = []any{
	"a b", "x", "-1", "5", "99999999999999999999", "101%", "1h", "Never", "1Gi", "-1Gi", "karpenter.sh/x", "Gt", "al2@latest", "AL2",
	int64(-1), int64(51), int64(1) << 40, true, map[string]any{}, []any{}, []any{"x"},
}

// apart are changes of which the two say different things: a wire type cannot
// tell an effect that is missing from an empty one, nor hold a duration as it
// was written, and the inline provider is for package admission alone.
var apart = regexp.MustCompile(`aints: \[\d+\] without effect|^terminationGracePeriod: "0"|^provider: `)

// TestAgreement changes one field of a good object at a time: whatever comes of
// it, the rules of the CRDs and package admission say the same.
func TestAgreement(t *testing.T) {
	kinds := loadKinds(t)
	objects, err := admissiontest.All()
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, o := range objects {
		if o.Wrong() || o.Case != "everything" && o.Case != "plain" {
			continue
		}
		fields := normal(t, o.Fields)
		for _, mutant := range mutants(fields["spec"]) {
			changed := runtime.DeepCopyJSON(fields)
			changed["spec"] = mutant.value
			text, err := json.Marshal(changed)
			if err != nil {
				t.Fatal(err)
			}
			tried++
			crd, own := kinds[o.Kind].judge(changed, nil), admission.Check(text)
			if (len(crd) > 0) != (own != nil) && !apart.MatchString(mutant.what) {
				t.Errorf("%s/%s: %s\nCRD: %v\npackage admission: %v", o.Kind, o.Case, mutant.what, crd.ToAggregate(), own)
			}
		}
	}
	t.Log(tried, "objects")
}

type mutant struct {
	what  string
	value any
}

// mutants are copies of a value with one thing in it removed or put in its
// place.
func mutants(value any) []mutant {
	var out []mutant
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			without := runtime.DeepCopyJSON(v)
			delete(without, key)
			out = append(out, mutant{"without " + key, without})
			for _, m := range append(replacements(child), mutants(child)...) {
				changed := runtime.DeepCopyJSON(v)
				changed[key] = m.value
				out = append(out, mutant{key + ": " + m.what, changed})
			}
		}
	case []any:
		for i, child := range v {
			out = append(out, mutant{fmt.Sprintf("%d twice", i), append(slices.Clone(v), child)})
			for _, m := range append(replacements(child), mutants(child)...) {
				changed := slices.Clone(v)
				changed[i] = m.value
				out = append(out, mutant{fmt.Sprintf("[%d] %s", i, m.what), changed})
			}
		}
	}
	return out
}

func replacements(any) []mutant {
	var out []mutant
	for _, v := range odd {
		out = append(out, mutant{fmt.Sprintf("%#v", v), runtime.DeepCopyJSONValue(v)})
	}
	return out
}
