package admission

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"karpenter/api/v1alpha5"
)

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
