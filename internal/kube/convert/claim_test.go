package convert

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	karpv1 "karpenter/api/v1"
	"karpenter/internal/admission"
	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

func machine() Machine {
	return Machine{
		Requirements: []label.Requirement{
			{Key: label.InstanceType, Op: label.In, Values: []string{"m6a.large", "m6a.xlarge"}, MinValues: 2},
			{Key: label.Zone, Op: label.In, Values: []string{"us-west-2a"}},
			{Key: "intent", Op: label.Exists},
			{Key: label.Hostname, Op: label.NotIn, Values: []string{"node-1"}},
		},
		Requests: quantity.Resources{MilliCPU: 1500, MemoryBytes: 3 << 30, Pods: 2},
		Labels:   map[string]string{"intent": "apps"},
		Pods:     []world.ObjectName{{Namespace: "default", Name: "a"}, {Namespace: "default", Name: "b"}},
	}
}

// TestClaimAndRecord: what is written on a NodeClaim is read from it again.
func TestClaimAndRecord(t *testing.T) {
	const common = `annotations: {note: mine}, taints: [{key: team, value: red, effect: NoSchedule}], startupTaints: [{key: start, effect: NoExecute}]`
	for _, spec := range []string{
		`{providerRef: {name: default}, ` + common + `}`,
		`{provider: {subnetSelector: {a: b}, securityGroupSelector: {a: b}}, ` + common + `}`,
	} {
		p, m := pool(t, spec), machine()
		c := Claim(p, m)
		c.Name, c.UID = "test-x7k2p", "token" // as the API server would
		if err := admission.ValidateNodeClaim(c); err != nil {
			t.Error(err)
		}
		text, err := yaml.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		read := &karpv1.NodeClaim{}
		if err := yaml.UnmarshalStrict(text, read); err != nil {
			t.Fatal(err)
		}
		got := Record(read)
		want := world.Record{
			Name: "test-x7k2p", Token: "token", Pool: "test", PoolKind: "Provisioner", Class: p.Class,
			Requirements: m.Requirements, Requests: m.Requests, Pods: m.Pods, Taints: p.Taints, StartupTaints: p.StartupTaints,
			Labels:      map[string]string{"intent": "apps", "karpenter.sh/provisioner-name": "test"},
			Annotations: c.Annotations,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if c.Annotations["note"] != "mine" {
			t.Errorf("annotations %v", c.Annotations)
		}
	}
}

func TestClaim(t *testing.T) {
	p := pool(t, `{providerRef: {name: default}}`)
	c := Claim(p, Machine{Labels: map[string]string{"karpenter.sh/provisioner-name": "somebody-else"}})
	owner := metav1.GetControllerOf(c)
	if owner == nil || owner.Kind != "Provisioner" || owner.APIVersion != "karpenter.sh/v1alpha5" || owner.Name != "test" || owner.UID != "u" || !*owner.BlockOwnerDeletion {
		t.Errorf("owner %+v", owner)
	}
	if c.GenerateName != "test-" || c.Spec.ExpireAfter != "Never" || len(c.Finalizers) != 1 || c.Finalizers[0] != "karpenter.sh/termination" {
		t.Errorf("claim %+v", c)
	}
	if c.Labels["karpenter.sh/provisioner-name"] != "test" {
		t.Errorf("labels %v", c.Labels)
	}
	if diff := cmp.Diff(karpv1.NodeClassRef{Group: "karpenter.k8s.aws", Kind: "AWSNodeTemplate", Name: "default"}, c.Spec.NodeClassRef); diff != "" {
		t.Error(diff)
	}
	if _, planned := c.Annotations["karpenter.sh/planned-pods"]; planned {
		t.Error("no pods, but an annotation about them")
	}
}

// TestControlAnnotationsAreNotThePools: a pool cannot make a machine look as if
// it were to go, launched, or bought for somebody.
func TestControlAnnotationsAreNotThePools(t *testing.T) {
	p := pool(t, `{providerRef: {name: default}}`)
	p.Annotations = map[string]string{
		"karpenter.sh/nodeclaim-termination-timestamp": "2030-01-01T14:00:00Z", "karpenter.sh/disruption-intent": "{}",
		"karpenter.sh/launch-request": "{}", "karpenter.sh/planned-pods": "default/x", "karpenter.sh/replaces": "x",
		"karpenter.sh/emptiness-timestamp": "2030-01-01T14:00:00Z", "compatibility.karpenter.sh/provider": "{}",
		"karpenter.sh/do-not-disrupt": "true", "note": "mine",
	}
	got := Claim(p, Machine{Annotations: map[string]string{"karpenter.sh/replaces": "command"}}).Annotations
	want := map[string]string{"karpenter.sh/do-not-disrupt": "true", "note": "mine", "karpenter.sh/replaces": "command"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRecordStatus(t *testing.T) {
	c := &karpv1.NodeClaim{}
	if err := yaml.UnmarshalStrict([]byte(`
metadata:
  name: alone
  uid: token
  creationTimestamp: "2030-01-01T12:00:00Z"
  deletionTimestamp: "2030-01-01T13:00:00Z"
  annotations:
    karpenter.sh/launch-request: body
    karpenter.sh/planned-pods: "default/a, cluster-scoped,,"
    karpenter.sh/nodeclaim-termination-timestamp: "2030-01-01T14:00:00Z"
spec:
  requirements: [{key: beta.kubernetes.io/arch, operator: In, values: [arm64]}]
  nodeClassRef: {group: karpenter.k8s.aws, kind: AWSNodeTemplate, name: default}
status:
  nodeName: node-1
  providerID: aws:///a/i-1
  imageID: ami-1
  capacity: {cpu: "4"}
  allocatable: {cpu: 3820m}
  conditions:
  - {type: Launched, status: "True", reason: Launched, message: "", lastTransitionTime: "2030-01-01T12:00:00Z"}
  - {type: Registered, status: "Unknown", reason: NodeNotFound, message: waiting, lastTransitionTime: "2030-01-01T12:00:00Z"}
  - {type: InstanceTerminating, status: "True", reason: x, message: "", lastTransitionTime: "2030-01-01T12:00:00Z"}
`), c); err != nil {
		t.Fatal(err)
	}
	noon := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	deleted, deadline := noon.Add(time.Hour), noon.Add(2*time.Hour)
	want := world.Record{
		Name: "alone", Token: "token", Created: noon, DeletedAt: &deleted, Deadline: &deadline,
		Class:         world.ClassRef{Group: "karpenter.k8s.aws", Kind: "AWSNodeTemplate", Name: "default"},
		Requirements:  []label.Requirement{{Key: label.Arch, Op: label.In, Values: []string{"arm64"}}},
		Annotations:   c.Annotations,
		Pods:          []world.ObjectName{{Namespace: "default", Name: "a"}, {Name: "cluster-scoped"}},
		LaunchRequest: "body", ProviderID: "aws:///a/i-1", ImageID: "ami-1", NodeName: "node-1",
		Capacity: quantity.Resources{MilliCPU: 4000}, Allocatable: quantity.Resources{MilliCPU: 3820},
		Launched:            world.Condition{Status: "True", Since: noon, Reason: "Launched"},
		Registered:          world.Condition{Status: "Unknown", Since: noon, Reason: "NodeNotFound", Message: "waiting"},
		InstanceTerminating: true,
	}
	if diff := cmp.Diff(want, Record(c), cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })); diff != "" {
		t.Error(diff)
	}
}
