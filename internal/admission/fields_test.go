package admission

import (
	"strings"
	"testing"
)

// TestFieldsInWords: what a decoder refuses is said with the path, what is there
// and what to do, and without the types of this program.
func TestFieldsInWords(t *testing.T) {
	pool := func(spec string) string {
		return `{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: test}, spec: ` + spec + `}`
	}
	class := func(spec string) string {
		return `{apiVersion: karpenter.k8s.aws/v1, kind: EC2NodeClass, metadata: {name: test}, spec: ` + spec + `}`
	}
	for _, tt := range []struct{ object, want string }{
		{pool(`{disruption: {budgets: [{nodes: 10}]}}`), "spec.disruption.budgets[0].nodes: Invalid value: 10: must be text: put it in quotes"},
		{pool(`{disruption: {consolidateAfter: true}}`), "spec.disruption.consolidateAfter: Invalid value: true: must be text: put it in quotes"},
		{pool(`{weight: "5"}`), `spec.weight: Invalid value: "5": must be a whole number, without quotes`},
		{pool(`{weight: 1.5}`), "spec.weight: Invalid value: 1.5: must be a whole number"},
		{pool(`{weight: 99999999999}`), "spec.weight: Invalid value: 99999999999: is a greater number than fits"},
		{pool(`{limits: {cpu: lots}}`), `spec.limits[cpu]: Invalid value: "lots": must be a quantity, such as 500m`},
		{pool(`{limits: 5}`), "spec.limits: Invalid value: 5: must hold names with values"},
		{pool(`{limits: {resources: {cpu: 5}}}`), "spec.limits[resources]: Invalid value: the resources stand in spec.limits itself now"},
		{pool(`{template: {spec: {requirements: {key: a}}}}`), "spec.template.spec.requirements: Invalid value: must be a list"},
		{pool(`{template: {spec: {nodeClassRef: default}}}`), `spec.template.spec.nodeClassRef: Invalid value: "default": must hold fields, such as group, kind, name`},
		{pool(`{template: {spec: {kubelet: {maxPods: 5}}}}`), "spec.template.spec.kubelet: Forbidden: unknown field; it is spec.kubelet of the EC2NodeClass now"},
		{pool(`{providerRef: {name: a}}`), "spec.providerRef: Forbidden: unknown field; it is spec.template.spec.nodeClassRef now"},
		{pool(`{ttlSecondsAfterEmpty: 30}`), "it is spec.disruption.consolidateAfter now"},
		{pool(`{ttlSecondsUntilExpired: 30}`), "it is spec.template.spec.expireAfter now"},
		{pool(`{consolidation: {enabled: true}}`), "it is spec.disruption.consolidationPolicy now"},
		{pool(`{disruption: {expireAfter: 1h}}`), "it is spec.template.spec.expireAfter now"},
		{pool(`{wieght: 5}`), "spec.wieght: Forbidden: unknown field; did you mean weight?"},
		{pool(`{nonsense: 5}`), "spec.nonsense: Forbidden: unknown field; correct its name or take it out"},
		{class(`{subnetSelector: {a: b}}`), "it is spec.subnetSelectorTerms now"},
		{class(`{securityGroupSelector: {a: b}}`), "it is spec.securityGroupSelectorTerms now"},
		{class(`{amiSelector: {a: b}}`), "it is spec.amiSelectorTerms now"},
		{class(`{launchTemplate: a}`), "an EC2NodeClass has none"},
		{class(`{detailedMonitoring: "yes"}`), "spec.detailedMonitoring: Invalid value: \"yes\": must be true or false, without quotes"},
		{class(`{kubelet: {maxpods: 5}}`), "spec.kubelet.maxpods: Forbidden: unknown field; did you mean maxPods?"},
	} {
		err := Check([]byte(tt.object))
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "Go ") || strings.Contains(err.Error(), "json:") {
			t.Errorf("%s\n got %v\nwant %s", tt.object, err, tt.want)
		}
	}
}

// TestWhatACRDCannotSee: the schema judges neither annotations nor namespaces.
func TestWhatACRDCannotSee(t *testing.T) {
	const spec = `template: {spec: {requirements: [], nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}}`
	for _, tt := range []struct{ metadata, spec, want string }{
		{"name: a", "limits: {nodes: 4}", ""},
		{"name: a, annotations: {karpenter.sh/adopt-provisioner: default}", "weight: 1", ""},
		{"name: a, annotations: {karpenter.sh/adopt-provisioner: Not A Name}", "weight: 1", "metadata.annotations[karpenter.sh/adopt-provisioner]: Invalid value: \"Not A Name\": must be the name of a Provisioner"},
		{"name: a, annotations: {karpenter.sh/adopt-provisioner: \"\"}", "weight: 1", "metadata.annotations[karpenter.sh/adopt-provisioner]"},
		{"name: a", "limits: {nodes: 1500m}", `spec.limits[nodes]: Invalid value: "1500m": must be a whole number of nodes`},
		{"name: a, namespace: default", "weight: 1", "metadata.namespace: Forbidden: objects of this kind are in no namespace"},
	} {
		err := Check([]byte("{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {" + tt.metadata + "}, spec: {" + tt.spec + ", " + spec + "}}"))
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.metadata, err, tt.want)
		}
	}
}
