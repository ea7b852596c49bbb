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
	"sigs.k8s.io/yaml"

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
				getsCondition(t, kind, object, "Ready", o.Condition)
			}
		})
	}
}

// What is wrong with an object only in its surroundings becomes a condition too,
// which names the field.
func TestUnusableObjectsGetConditions(t *testing.T) {
	const class = `
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
spec:
  role: KarpenterNodeRole
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {Name: "birenchong-eks-vpc-stack-PrivateSubnet*"}}]
  securityGroupSelectorTerms: [{id: sg-0xxxxxxxxxxxxxxxxx6}]
`
	const pool = `
apiVersion: karpenter.sh/v1
kind: NodePool
spec:
  template: {spec: {requirements: [], nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: not-there}}}
`
	tests := []struct {
		name, object, from, to, condition string
		words                             []string
	}{
		{"no subnet", class, `Name: "birenchong-eks-vpc-stack-PrivateSubnet*"`, "Name: nothing-like-it", "SubnetsReady", []string{"spec.subnetSelectorTerms", "nothing-like-it"}},
		{"no security group", class, "sg-0xxxxxxxxxxxxxxxxx6", "sg-00000000000000000", "SecurityGroupsReady", []string{"spec.securityGroupSelectorTerms", "sg-00000000000000000"}},
		{"no image of that version", class, "al2023@latest", "al2023@v19700101", "AMIsReady", []string{"spec.amiSelectorTerms", "v19700101"}},
		{"user data that cannot be merged", class, "al2023@latest}]", "bottlerocket@latest}]\n  userData: '[['", "ValidationSucceeded", []string{"spec.userData", "TOML"}},
		{"no class", pool, "", "", "NodeClassReady", []string{"not-there"}},
		{"kind of class unknown", pool, "kind: EC2NodeClass, name", "kind: NodeTemplate, name", "NodeClassReady", []string{"NodeTemplate"}},
	}
	client, err := dynamic.NewForConfig(shared.Config)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(strings.Replace(tt.object, tt.from, tt.to, 1)), &object.Object); err != nil {
				t.Fatal(err)
			}
			object.SetName(unique("unusable"))
			plural, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
			getsCondition(t, client.Resource(plural), object, tt.condition, tt.words)
		})
	}
}

// getsCondition creates the object for as long as it takes the controller to
// say what is wrong with it.
func getsCondition(t *testing.T, kind dynamic.ResourceInterface, object *unstructured.Unstructured, condition string, words []string) {
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
			if c := c.(map[string]any); c["type"] == condition && c["status"] == "False" && len(lacks(fmt.Sprint(c["message"]), words)) == 0 {
				return nil
			}
		}
		return fmt.Errorf("%s is not False with a message that names %q: %v", condition, words, conditions)
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
