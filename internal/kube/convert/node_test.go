package convert

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/dialect"
)

func node(t *testing.T, text string) *corev1.Node {
	t.Helper()
	n := &corev1.Node{}
	if err := yaml.UnmarshalStrict([]byte(text), n); err != nil {
		t.Fatal(err)
	}
	return n
}

const bootTaints = `
- {key: node.kubernetes.io/not-ready, effect: NoSchedule}
- {key: node.kubernetes.io/not-ready, effect: NoExecute}
- {key: node.kubernetes.io/unreachable, effect: NoSchedule}
- {key: node.cloudprovider.kubernetes.io/uninitialized, value: "true", effect: NoSchedule}
- {key: karpenter.sh/unregistered, effect: NoExecute}
- {key: readiness.k8s.io/cni, effect: NoSchedule}
- {key: start, value: up, effect: NoSchedule}
- {key: team, value: red, effect: NoSchedule}
`

func taintKeys(list []world.Taint) (keys []string) {
	for _, t := range list {
		keys = append(keys, t.Key)
	}
	return keys
}

func nodeWithTaints(t *testing.T, labels map[string]string) *corev1.Node {
	n := node(t, `{metadata: {name: a}, spec: {providerID: "aws:///a/i-1"}}`)
	n.Labels = labels
	if err := yaml.UnmarshalStrict([]byte(bootTaints), &n.Spec.Taints); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestNodeTaints(t *testing.T) {
	record := world.Record{Name: "test-x", Pool: "test", StartupTaints: []world.Taint{{Key: "start", Value: "up", Effect: world.NoSchedule}}}
	booting := map[string]string{label.Provisioner: "test", label.Registered: "true"}
	ready := map[string]string{label.Provisioner: "test", label.Registered: "true", label.Initialized: "true"}
	all := []string{"node.kubernetes.io/not-ready", "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable",
		"node.cloudprovider.kubernetes.io/uninitialized", "karpenter.sh/unregistered", "readiness.k8s.io/cni", "start", "team"}
	tests := []struct {
		name string
		got  world.Node
		want []string
	}{
		{"booting", Node(nodeWithTaints(t, booting)), []string{"start", "team"}},
		{"booting, with its record", Joined(Node(nodeWithTaints(t, booting)), record), []string{"team"}},
		{"initialised", Node(nodeWithTaints(t, ready)), all},
		{"initialised, with its record", Joined(Node(nodeWithTaints(t, ready)), record), all},
		{"foreign", Node(nodeWithTaints(t, nil)), all},
		{"without pool, but with a record", Joined(Node(nodeWithTaints(t, nil)), record), []string{"team"}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, taintKeys(tt.got.Taints)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

func TestNode(t *testing.T) {
	got := Node(node(t, `
metadata:
  name: a
  creationTimestamp: "2030-01-01T12:00:00Z"
  labels: {karpenter.sh/provisioner-name: test, karpenter.sh/registered: "true", karpenter.sh/initialized: "true", zone: z}
  annotations: {karpenter.sh/do-not-consolidate: "true", karpenter.sh/emptiness-timestamp: "2030-01-01T13:00:00Z", example.test/large: xxx}
spec: {providerID: "aws:///a/i-1", unschedulable: true, taints: [{key: none, effect: ""}]}
status:
  capacity: {cpu: "4", memory: 16Gi, pods: "58"}
  allocatable: {cpu: 3820100u, memory: 15Gi, pods: "58"}
  conditions: [{type: MemoryPressure, status: "False"}, {type: Ready, status: "True"}]
`))
	created := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	empty := created.Add(time.Hour)
	want := world.Node{
		Name: "a", Pool: "test", PoolKind: "Provisioner", ProviderID: "aws:///a/i-1", Created: created, EmptySince: &empty,
		Labels:      map[string]string{"karpenter.sh/provisioner-name": "test", "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true", "zone": "z"},
		Annotations: map[string]string{"karpenter.sh/do-not-consolidate": "true", "karpenter.sh/emptiness-timestamp": "2030-01-01T13:00:00Z"},
		Capacity:    quantity.Resources{MilliCPU: 4000, MemoryBytes: 16 << 30, Pods: 58},
		Allocatable: quantity.Resources{MilliCPU: 3820, MemoryBytes: 15 << 30, Pods: 58},
		Joined:      true, Ready: true, Registered: true, Initialized: true, Unschedulable: true,
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })); diff != "" {
		t.Error(diff)
	}
}

func TestJoinedFillsWhatIsMissing(t *testing.T) {
	n := node(t, `
metadata: {name: a, labels: {own: kubelet, both: kubelet, karpenter.sh/provisioner-name: test}}
status: {allocatable: {cpu: "0", memory: 14Gi}, capacity: {memory: 15Gi}}
`)
	r := world.Record{
		Name: "test-x", Pool: "test", Labels: map[string]string{"both": "claim", "planned": "claim"},
		Taints:      []world.Taint{{Key: "team", Effect: world.NoSchedule}},
		Allocatable: quantity.Resources{MilliCPU: 3820, MemoryBytes: 13 << 30, Extended: []quantity.Amount{{Name: "nvidia.com/gpu", Value: 1}}},
		Capacity:    quantity.Resources{MilliCPU: 4000, MemoryBytes: 16 << 30},
	}
	plain := Node(n)
	got := Joined(plain, r)
	r.Annotations = map[string]string{dialect.AnnotationDoNotDisrupt: "true"}
	if kept := Joined(plain, r); kept.Annotations[dialect.AnnotationDoNotDisrupt] != "true" || plain.Annotations[dialect.AnnotationDoNotDisrupt] != "" {
		t.Error("the annotation of the record does not count, or was written on what was given")
	}
	if got.Claim != "test-x" || got.Pool != "test" || got.Initialized || got.Registered {
		t.Errorf("identity: %+v", got)
	}
	if got.Allocatable.String() != "cpu 3820m, memory 14Gi, nvidia.com/gpu 1" || got.Capacity.String() != "cpu 4, memory 15Gi" {
		t.Errorf("allocatable %s, capacity %s", got.Allocatable, got.Capacity)
	}
	if got.Labels["own"] != "kubelet" || got.Labels["both"] != "kubelet" || got.Labels["planned"] != "claim" {
		t.Errorf("labels %v", got.Labels)
	}
	if diff := cmp.Diff([]string{"team"}, taintKeys(got.Taints)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Node(n), plain); diff != "" {
		t.Errorf("the first value changed: %s", diff)
	}
	n.Labels[label.Initialized] = "true"
	if done := Joined(Node(n), r); !done.Allocatable.Equal(quantity.Resources{MemoryBytes: 14 << 30}) {
		t.Errorf("an initialised node counts as what it reports, got %s", done.Allocatable)
	}
}

func TestDaemon(t *testing.T) {
	d := &appsv1.DaemonSet{}
	if err := yaml.UnmarshalStrict([]byte(`
metadata: {name: edge, namespace: kube-system}
spec:
  selector: {}
  template:
    metadata: {labels: {app: edge}}
    spec:
      hostNetwork: true
      nodeSelector: {beta.kubernetes.io/os: linux}
      tolerations: [{operator: Exists, effect: PreferNoSchedule}]
      containers: [{name: a, ports: [{containerPort: 1, hostPort: 1}], resources: {limits: {cpu: 100m}}}]
`), d); err != nil {
		t.Fatal(err)
	}
	before := d.DeepCopy()
	got := Daemon(d)
	if got.String() != "kube-system/edge" || got.Template.String() != "kube-system/edge" || !got.Template.IsDaemon() {
		t.Errorf("identity: %+v", got)
	}
	if got.Template.Refused != "" {
		t.Errorf("refused: %s", got.Template.Refused)
	}
	if want := (quantity.Resources{MilliCPU: 100, Pods: 1}); !got.Template.Requests.Equal(want) {
		t.Errorf("requests %s, want %s", got.Template.Requests, want)
	}
	if got.Template.Selector[0].Key != label.OS {
		t.Errorf("selector %v", got.Template.Selector)
	}
	for _, taint := range []world.Taint{
		{Key: "node.kubernetes.io/unschedulable", Effect: world.NoSchedule}, {Key: "node.kubernetes.io/not-ready", Effect: world.NoExecute},
		{Key: "node.kubernetes.io/network-unavailable", Effect: world.NoSchedule}, {Key: "any", Effect: world.PreferNoSchedule},
	} {
		if !world.Tolerated(taint, got.Template.Tolerations) {
			t.Errorf("does not tolerate %s", taint)
		}
	}
	if world.Tolerated(world.Taint{Key: "team", Effect: world.NoSchedule}, got.Template.Tolerations) {
		t.Error("tolerates everything")
	}
	if diff := cmp.Diff(before, d); diff != "" {
		t.Errorf("the object changed: %s", diff)
	}
}

func TestBudget(t *testing.T) {
	tests := []struct {
		name, spec string
		want       world.LabelSelector
	}{
		{"no selector", `{}`, world.LabelSelector{Nothing: true}},
		{"empty selector", `{selector: {}}`, world.LabelSelector{}},
		{"unreadable selector", `{selector: {matchExpressions: [{key: a, operator: Near}]}}`, world.LabelSelector{Nothing: true}},
		{"selector", `{selector: {matchLabels: {b: x, a: z}, matchExpressions: [{key: beta.kubernetes.io/arch, operator: NotIn, values: [c]}]}}`, world.LabelSelector{Requirements: []label.Requirement{
			{Key: "a", Op: label.In, Values: []string{"z"}}, {Key: "b", Op: label.In, Values: []string{"x"}}, {Key: "beta.kubernetes.io/arch", Op: label.NotIn, Values: []string{"c"}}}}},
	}
	for _, tt := range tests {
		b := &policyv1.PodDisruptionBudget{}
		if err := yaml.UnmarshalStrict([]byte("{metadata: {name: a, namespace: ns}, status: {disruptionsAllowed: 2, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0}, spec: "+tt.spec+"}"), b); err != nil {
			t.Fatal(err)
		}
		want := world.PodBudget{ObjectName: world.ObjectName{Namespace: "ns", Name: "a"}, Allowed: 2, Selector: tt.want}
		if diff := cmp.Diff(want, Budget(b)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

func TestBudgetsThatNeverAllowAnything(t *testing.T) {
	for text, want := range map[string]bool{
		`{spec: {maxUnavailable: 0}}`:                                                                  true,
		`{spec: {maxUnavailable: "0%"}}`:                                                               true,
		`{spec: {minAvailable: "100%"}}`:                                                               true,
		`{spec: {minAvailable: 1}, status: {expectedPods: 1, desiredHealthy: 1}}`:                      true,
		`{spec: {minAvailable: 1}, status: {expectedPods: 2, desiredHealthy: 1}}`:                      false,
		`{spec: {minAvailable: 1}}`:                                                                    false,
		`{spec: {maxUnavailable: 1}, status: {expectedPods: 3, desiredHealthy: 2, currentHealthy: 2}}`: false,
		`{spec: {maxUnavailable: 0}, status: {disruptionsAllowed: 1}}`:                                 false,
	} {
		b := &policyv1.PodDisruptionBudget{}
		if err := yaml.UnmarshalStrict([]byte(text), b); err != nil {
			t.Fatal(err)
		}
		if got := Budget(b).Never; got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
