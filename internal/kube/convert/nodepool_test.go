package convert

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	awsv1 "karpenter/api/aws/v1"
	karpv1 "karpenter/api/v1"
	"karpenter/internal/admission"
	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/dialect"
)

func nodePool(t *testing.T, spec string) *karpv1.NodePool {
	t.Helper()
	p := &karpv1.NodePool{}
	if err := yaml.UnmarshalStrict([]byte("{metadata: {name: test, uid: u}, spec: "+spec+"}"), p); err != nil {
		t.Fatal(err)
	}
	return p
}

const class = `nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}`

func span(d time.Duration) *world.Duration { return &world.Duration{Duration: d} }

func TestNodePool(t *testing.T) {
	p := nodePool(t, `
{weight: 7,
  limits: {memory: 1000Gi, cpu: 1500m, nodes: 3},
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 1m30s, budgets: [
    {nodes: "0", reasons: [Underutilized, Drifted], schedule: "0 9 * * mon-fri", duration: 8h}, {nodes: 20%}]},
  template: {
    metadata: {labels: {env: prod}, annotations: {a: b}},
    spec: {`+class+`, expireAfter: 48h, terminationGracePeriod: 1h,
      taints: [{key: team, value: red, effect: NoSchedule}, {key: none, effect: ""}],
      startupTaints: [{key: start, effect: NoExecute}],
      requirements: [
        {key: beta.kubernetes.io/arch, operator: In, values: [arm64]},
        {key: karpenter.k8s.aws/instance-cpu, operator: Gte, values: ["4"]},
        {key: karpenter.k8s.aws/instance-family, operator: Exists, minValues: 5}]}}}`)
	before := p.DeepCopy()
	got, err := NodePool(p)
	if err != nil {
		t.Fatal(err)
	}
	want := world.Pool{
		Name: "test", Kind: "NodePool", UID: "u", Weight: 7,
		Class: world.ClassRef{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}, Catalog: got.Catalog,
		Labels:      map[string]string{"env": "prod", "karpenter.sh/nodepool": "test", "karpenter.k8s.aws/ec2nodeclass": "default"},
		Annotations: map[string]string{"a": "b"},
		Requirements: []label.Requirement{
			{Key: label.Arch, Op: label.In, Values: []string{"arm64"}},
			{Key: "karpenter.k8s.aws/instance-cpu", Op: label.Gte, Values: []string{"4"}},
			{Key: "karpenter.k8s.aws/instance-family", Op: label.Exists, MinValues: 5},
		},
		Taints:        []world.Taint{{Key: "team", Value: "red", Effect: world.NoSchedule}},
		StartupTaints: []world.Taint{{Key: "start", Effect: world.NoExecute}},
		Limits:        []quantity.Amount{{Name: "cpu", Value: 1500}, {Name: "memory", Value: 1000 << 30}, {Name: "nodes", Value: 3}},
		EmptyAfter:    span(90 * time.Second), Lifetime: span(48 * time.Hour), TerminationGrace: span(time.Hour),
		Disruption: world.Disruption{QuietFor: span(90 * time.Second), ForcefulExpiry: true, Budgets: []world.Budget{
			{Nodes: "0", Reasons: []string{"Underutilized", "Drifted"}, Schedule: "0 9 * * mon-fri", Duration: span(8 * time.Hour)}, {Nodes: "20%"},
		}},
		Hash: got.Hash,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before, p); diff != "" {
		t.Errorf("the object changed: %s", diff)
	}
}

func TestNodePoolDefaults(t *testing.T) {
	for spec, want := range map[string]world.Pool{
		`{template: {spec: {` + class + `, requirements: []}}}`: {EmptyAfter: span(0), Consolidate: true, Lifetime: span(720 * time.Hour),
			Disruption: world.Disruption{QuietFor: span(0), ForcefulExpiry: true, Budgets: []world.Budget{{Nodes: "10%"}}}},
		`{template: {spec: {` + class + `, requirements: [], expireAfter: Never}}, disruption: {consolidateAfter: Never, budgets: []}}`: {
			Disruption: world.Disruption{ForcefulExpiry: true}},
		`{template: {spec: {` + class + `, requirements: [], expireAfter: Never}}, disruption: {consolidationPolicy: Balanced, budgets: []}}`: {
			EmptyAfter: span(0), Consolidate: true, Disruption: world.Disruption{QuietFor: span(0), Balanced: true, ForcefulExpiry: true}},
	} {
		got, err := NodePool(nodePool(t, spec))
		if err != nil {
			t.Fatal(err)
		}
		got = world.Pool{EmptyAfter: got.EmptyAfter, Consolidate: got.Consolidate, Lifetime: got.Lifetime, Disruption: got.Disruption}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", spec, diff)
		}
	}
}

func TestWrongNodePoolIsKnownAndNotReady(t *testing.T) {
	got, err := NodePool(nodePool(t, `{template: {spec: {`+class+`, requirements: [{key: a, operator: Near}]}}}`))
	if err == nil || !strings.Contains(err.Error(), `NodePool "test"`) || !strings.Contains(err.Error(), "spec.template.spec.requirements[0].operator") {
		t.Errorf("error %v", err)
	}
	if got.Name != "test" || got.Kind != "NodePool" || got.UID != "u" || got.NotReady == "" || !strings.HasSuffix(err.Error(), `"test": `+got.NotReady) {
		t.Errorf("%+v", got)
	}
}

// TestPoolHash: what the hash sees, and what it does not.
func TestPoolHash(t *testing.T) {
	const base = `{template: {metadata: {labels: {a: b}}, spec: {` + class + `, requirements: [], taints: [{key: x, effect: NoSchedule}, {key: y, effect: NoSchedule}]}}}`
	first := PoolHash(nodePool(t, base))
	for change, same := range map[string]bool{
		strings.Replace(base, "requirements: []", "requirements: [{key: a, operator: Exists}], expireAfter: 720h", 1):                                        true,
		strings.Replace(base, "{key: x, effect: NoSchedule}, {key: y, effect: NoSchedule}", "{key: y, effect: NoSchedule}, {key: x, effect: NoSchedule}", 1): true,
		strings.Replace(base, "{template", "{weight: 3, limits: {cpu: 1}, disruption: {consolidateAfter: 1h}, template", 1):                                  true,
		strings.Replace(base, "a: b", "a: c", 1):                                             false,
		strings.Replace(base, "name: default", "name: other", 1):                             false,
		strings.Replace(base, "requirements", "expireAfter: 1h, requirements", 1):            false,
		strings.Replace(base, "requirements", "terminationGracePeriod: 1h, requirements", 1): false,
		strings.Replace(base, "{key: x, ", "{key: x, value: v, ", 1):                         false,
	} {
		if got := PoolHash(nodePool(t, change)) == first; got != same {
			t.Errorf("same hash: %v, want %v: %s", got, same, change)
		}
	}
	if first != "60d27b89378b13c9" {
		t.Errorf("the hash of an unchanged pool has changed to %s: all its machines would drift; raise PoolHashVersion", first)
	}
}

// TestClaimOfNodePool: what a NodePool says about the life of its machines is
// written on them.
func TestClaimOfNodePool(t *testing.T) {
	p, err := NodePool(nodePool(t, `{template: {metadata: {annotations: {karpenter.sh/do-not-disrupt: "true"}}, spec: {`+class+`, expireAfter: 26h30m, terminationGracePeriod: 90s,
		requirements: [{key: node.kubernetes.io/instance-type, operator: Exists, minValues: 3}]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	c := Claim(p, machine()) // with two instance types, so relaxed
	if err := admission.ValidateNodeClaim(c); err != nil {
		t.Error(err)
	}
	o := c.OwnerReferences[0]
	if o.Kind != "NodePool" || o.APIVersion != "karpenter.sh/v1" || o.UID != "u" {
		t.Errorf("owner %+v", o)
	}
	if c.Spec.ExpireAfter != "26h30m" || c.Spec.TerminationGracePeriod.Duration != 90*time.Second || c.Spec.NodeClassRef.Kind != "EC2NodeClass" {
		t.Errorf("spec %+v", c.Spec)
	}
	if c.Labels["karpenter.sh/nodepool"] != "test" || c.Labels["karpenter.sh/provisioner-name"] != "" || c.Labels["karpenter.k8s.aws/ec2nodeclass"] != "default" {
		t.Errorf("labels %v", c.Labels)
	}
	for key, want := range map[string]string{"karpenter.sh/nodepool-hash": p.Hash, "karpenter.sh/nodepool-hash-version": PoolHashVersion,
		"karpenter.sh/nodeclaim-min-values-relaxed": "true", "karpenter.sh/do-not-disrupt": "true"} {
		if c.Annotations[key] != want {
			t.Errorf("annotation %s is %q, want %q", key, c.Annotations[key], want)
		}
	}
	created := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c.CreationTimestamp = metav1.NewTime(created)
	r := Record(c)
	if r.PoolKind != dialect.KindNodePool || r.Pool != "test" || !r.Expires.Equal(created.Add(26*time.Hour+30*time.Minute)) || r.Deadline != nil {
		t.Errorf("record %+v", r)
	}
	deleted := metav1.NewTime(created.Add(time.Hour))
	c.DeletionTimestamp = &deleted
	if d := Record(c).Deadline; d == nil || !d.Equal(deleted.Add(90*time.Second)) {
		t.Errorf("deadline %v", d)
	}
	c.Annotations[dialect.AnnotationTerminationTimestamp] = "2026-01-01T01:00:10Z"
	if d := Record(c).Deadline; d == nil || !d.Equal(deleted.Add(10*time.Second)) {
		t.Errorf("deadline %v", d)
	}
}

func TestDurationText(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0s", 30 * time.Second: "30s", time.Minute: "1m", time.Hour: "1h", 720 * time.Hour: "720h",
		90 * time.Minute: "1h30m", time.Hour + time.Second: "1h0m1s", 1500 * time.Millisecond: "1s"} {
		if got := DurationText(d); got != want {
			t.Errorf("%v is written %q, want %q", d, got, want)
		}
	}
}

// TestClassHash: what the hash of a class sees, and what it does not.
func TestClassHash(t *testing.T) {
	hash := func(spec string) string {
		c := &awsv1.EC2NodeClass{}
		if err := yaml.UnmarshalStrict([]byte("{metadata: {name: test}, spec: "+spec+"}"), c); err != nil {
			t.Fatal(err)
		}
		return ClassHash(c)
	}
	const base = `{role: r, amiSelectorTerms: [{alias: al2023@latest}], subnetSelectorTerms: [{id: subnet-1}], securityGroupSelectorTerms: [{id: sg-1}]}`
	for change, same := range map[string]bool{
		strings.Replace(base, "subnet-1", "subnet-2", 1):                                        true,
		strings.Replace(base, "sg-1", "sg-2", 1):                                                true,
		strings.Replace(base, "al2023@latest", "al2023@v20240807", 1):                           true,
		strings.Replace(base, "role: r", "role: r, amiFamily: AL2023", 1):                       true,
		strings.Replace(base, "role: r", "role: r, metadataOptions: {}", 1):                     true,
		strings.Replace(base, "al2023@latest", "bottlerocket@latest", 1):                        false,
		strings.Replace(base, "role: r", "role: other", 1):                                      false,
		strings.Replace(base, "role: r", "role: r, userData: x", 1):                             false,
		strings.Replace(base, "role: r", "role: r, kubelet: {maxPods: 3}", 1):                   false,
		strings.Replace(base, "role: r", "role: r, metadataOptions: {httpTokens: optional}", 1): false,
	} {
		if got := hash(change) == hash(base); got != same {
			t.Errorf("same hash: %v, want %v: %s", got, same, change)
		}
	}
	if got := hash(base); got != "70042d927720fcc2" {
		t.Errorf("the hash of an unchanged class has changed to %s: all its machines would drift; raise ClassHashVersion", got)
	}
}
