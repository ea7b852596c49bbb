package admission

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	awsv1alpha1 "karpenter/api/aws/v1alpha1"
	karpv1 "karpenter/api/v1"
	"karpenter/api/v1alpha5"
)

// table is a file of cases: see testdata. The CRDs are held to the same files.
type table struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Base       map[string]any `json:"base"`
	Cases      []struct {
		Case     string         `json:"case"`
		Metadata map[string]any `json:"metadata"`
		Spec     map[string]any `json:"spec"`
		Without  []string       `json:"without"`
		Reject   []string       `json:"reject"`
	} `json:"cases"`
}

func TestTables(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) != 3 {
		t.Fatalf("tables: %q, %v", files, err)
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
				spec, meta := map[string]any{}, map[string]any{"name": "test"}
				overlay(spec, tab.Base)
				for _, k := range c.Without {
					delete(spec, k)
				}
				overlay(spec, c.Spec)
				overlay(meta, c.Metadata)
				text, err := json.Marshal(map[string]any{"apiVersion": tab.APIVersion, "kind": tab.Kind, "metadata": meta, "spec": spec})
				if err != nil {
					t.Fatal(err)
				}
				check(t, validate(t, tab.Kind, text), c.Reject)
			})
		}
	}
}

func overlay(to, from map[string]any) {
	for k, v := range from {
		to[k] = v
	}
}

func validate(t *testing.T, kind string, text []byte) error {
	t.Helper()
	switch kind {
	case v1alpha5.Kind:
		p := &v1alpha5.Provisioner{}
		if err := decode(text, p); err != nil {
			return err
		}
		return ValidateProvisioner(p)
	case awsv1alpha1.Kind:
		a := &awsv1alpha1.AWSNodeTemplate{}
		if err := decode(text, a); err != nil {
			return err
		}
		return ValidateAWSNodeTemplate(a)
	case karpv1.Kind:
		c := &karpv1.NodeClaim{}
		if err := decode(text, c); err != nil {
			return err
		}
		return ValidateNodeClaim(c)
	}
	t.Fatalf("no rules for kind %s", kind)
	return nil
}

// check compares the words only where the object could be read at all.
func check(t *testing.T, err error, words []string) {
	t.Helper()
	var inv *InvalidError
	switch {
	case len(words) == 0 && err != nil:
		t.Errorf("refused, should be accepted: %v", err)
	case len(words) > 0 && err == nil:
		t.Errorf("accepted, should be refused with %q", words)
	case err != nil && (errors.As(err, &inv) || runtime.IsStrictDecodingError(err)):
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("rejection lacks %q: %v", w, err)
			}
		}
	}
}

func TestDefaultProvisioner(t *testing.T) {
	req := func(key, op string, values ...string) string {
		return key + " " + op + " " + strings.Join(values, ",")
	}
	linux, amd64, onDemand := req("kubernetes.io/os", "In", "linux"), req("kubernetes.io/arch", "In", "amd64"), req("karpenter.sh/capacity-type", "In", "on-demand")
	category, generation := req("karpenter.k8s.aws/instance-category", "In", "c", "m", "r"), req("karpenter.k8s.aws/instance-generation", "Gt", "2")
	tests := []struct {
		name string
		spec string
		want []string
	}{
		{"nothing said", `{}`, []string{linux, amd64, onDemand, category, generation}},
		{"labels do not count", `{labels: {kubernetes.io/arch: arm64, node.kubernetes.io/instance-type: m5.large}}`, []string{linux, amd64, onDemand, category, generation}},
		{"old name of a key counts", `{requirements: [{key: beta.kubernetes.io/arch, operator: In, values: [arm64]}]}`,
			[]string{req("beta.kubernetes.io/arch", "In", "arm64"), linux, onDemand, category, generation}},
		{"Exists on one opens the choice of types", `{requirements: [{key: karpenter.k8s.aws/instance-family, operator: Exists}]}`,
			[]string{req("karpenter.k8s.aws/instance-family", "Exists"), linux, amd64, onDemand}},
		{"old name of instance type counts", `{requirements: [{key: beta.kubernetes.io/instance-type, operator: NotIn, values: [t2.nano]}]}`,
			[]string{req("beta.kubernetes.io/instance-type", "NotIn", "t2.nano"), linux, amd64, onDemand}},
		{"all said", `{requirements: [{key: kubernetes.io/os, operator: Exists}, {key: kubernetes.io/arch, operator: Exists}, {key: karpenter.sh/capacity-type, operator: Exists}, {key: karpenter.k8s.aws/instance-generation, operator: Gt, values: ["5"]}]}`,
			[]string{req("kubernetes.io/os", "Exists"), req("kubernetes.io/arch", "Exists"), req("karpenter.sh/capacity-type", "Exists"), req("karpenter.k8s.aws/instance-generation", "Gt", "5")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := &v1alpha5.Provisioner{}
			if err := yaml.UnmarshalStrict([]byte("spec: "+tt.spec), p); err != nil {
				t.Fatal(err)
			}
			before := p.DeepCopy()
			var got []string
			for _, r := range DefaultProvisioner(p).Spec.Requirements {
				got = append(got, req(r.Key, string(r.Operator), r.Values...))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, p); diff != "" {
				t.Errorf("the object itself changed: %s", diff)
			}
		})
	}
}

func TestInlineProvider(t *testing.T) {
	tests := []struct {
		name     string
		provider string
		reject   []string
	}{
		{"plain", `{"subnetSelector": {"a": "b"}, "securityGroupSelector": {"a": "b"}}`, nil},
		{"kind and version", `{"kind": "AWS", "apiVersion": "extensions.karpenter.sh/v1alpha1", "subnetSelector": {"a": "b"}, "securityGroupSelector": {"a": "b"}}`, nil},
		{"kind of somebody else", `{"kind": "GCP", "subnetSelector": {"a": "b"}, "securityGroupSelector": {"a": "b"}}`, []string{"spec.provider.kind", "GCP", "AWS"}},
		{"version of somebody else", `{"apiVersion": "v1", "subnetSelector": {"a": "b"}, "securityGroupSelector": {"a": "b"}}`, []string{"spec.provider.apiVersion", "extensions.karpenter.sh/v1alpha1"}},
		{"unknown field", `{"subnets": {"a": "b"}, "subnetSelector": {"a": "b"}, "securityGroupSelector": {"a": "b"}}`, []string{"spec.provider", "unknown field", "subnets"}},
		{"field in wrong case", `{"SubnetSelector": {"a": "b"}, "securityGroupSelector": {"a": "b"}}`, []string{"spec.provider", "SubnetSelector"}},
		{"user data is for templates", `{"userData": "x", "subnetSelector": {"a": "b"}, "securityGroupSelector": {"a": "b"}}`, []string{"spec.provider", "userData"}},
		{"no subnets", `{"securityGroupSelector": {"a": "b"}}`, []string{"spec.provider.subnetSelector", "Required"}},
		{"wrong type", `{"subnetSelector": "all"}`, []string{"spec.provider"}},
		{"not an object", `[]`, []string{"spec.provider", "object"}},
		{"disk too small", `{"subnetSelector": {"a": "b"}, "securityGroupSelector": {"a": "b"}, "blockDeviceMappings": [{"deviceName": "a", "ebs": {"volumeSize": "1M"}}]}`, []string{"spec.provider.blockDeviceMappings[0].ebs.volumeSize", "1G"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := &v1alpha5.Provisioner{}
			p.Name = "test"
			p.Spec.Provider = &runtime.RawExtension{Raw: []byte(tt.provider)}
			_, err := InlineProvider(p)
			check(t, err, tt.reject)
			check(t, ValidateProvisioner(p), tt.reject)
			if err != nil && !strings.HasPrefix(err.Error(), `Provisioner "test": `) {
				t.Errorf("the error does not begin with the object: %v", err)
			}
		})
	}
}
