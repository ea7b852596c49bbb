package lab_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	admissiontest "karpenter/test/admission"
)

// The API server itself refuses wrong objects; no webhook is asked. What its
// rules cannot say becomes a condition.
func TestWrongObjectsAreRefused(t *testing.T) {
	objects, err := admissiontest.All()
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(shared.Config)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		t.Run(o.Kind+"/"+o.Case, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: o.Fields}
			plural, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
			kind := client.Resource(plural)
			_, err := kind.Create(t.Context(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
			if len(o.Reject) > 0 {
				if err == nil {
					t.Fatalf("the API server takes it; it should say %q", o.Reject)
				}
				if missing := lacks(err.Error(), o.Reject); len(missing) > 0 {
					t.Errorf("the message does not name %q: %v", missing, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(o.Condition) > 0 {
				object.SetName(unique("wrong"))
				getsCondition(t, kind, object, o.Condition)
			}
		})
	}
}

// getsCondition creates the object for as long as it takes the controller to
// say what is wrong with it.
func getsCondition(t *testing.T, kind dynamic.ResourceInterface, object *unstructured.Unstructured, words []string) {
	t.Helper()
	apply(t, string(admissiontest.Object{Fields: object.Object}.YAML()))
	within(t, 10*time.Second, func() error {
		got, err := kind.Get(t.Context(), object.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		conditions, _, err := unstructured.NestedSlice(got.Object, "status", "conditions")
		if err != nil {
			return err
		}
		for _, c := range conditions {
			if c := c.(map[string]any); c["status"] == "False" && len(lacks(fmt.Sprint(c["message"]), words)) == 0 {
				return nil
			}
		}
		return fmt.Errorf("no condition is False and names %q: %v", words, conditions)
	})
}

// lacks returns the words that are not in the text.
func lacks(text string, words []string) []string {
	var out []string
	for _, w := range words {
		if !strings.Contains(text, w) {
			out = append(out, w)
		}
	}
	return out
}

// The examples are taken as they are.
func TestExamplesAreTaken(t *testing.T) {
	files, err := filepath.Glob("../examples/v1/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		if _, err := shared.Cluster.Kubectl(t.Context(), "apply", "--dry-run=server", "--validate=strict", "-f", file); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}
