package convert

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/dialect"
)

func TestPod(t *testing.T) {
	got := Pod(podSpec(t, `
metadata:
  name: a
  namespace: ns
  uid: u
  labels: {app: a}
  creationTimestamp: "2030-01-01T12:00:00Z"
  deletionTimestamp: "2030-01-01T13:00:00Z"
  annotations: {karpenter.sh/do-not-evict: "true", controller.kubernetes.io/pod-deletion-cost: "5"}
  ownerReferences:
  - {apiVersion: v1, kind: Other, name: o, uid: o}
  - {apiVersion: apps/v1, kind: ReplicaSet, name: rs, uid: r, controller: true}
spec:
  nodeName: node-1
  priority: 7
  priorityClassName: system-node-critical
  terminationGracePeriodSeconds: 5
  nodeSelector: {intent: apps, beta.kubernetes.io/arch: arm64}
  tolerations: [{key: k, operator: Exists, effect: NoExecute, tolerationSeconds: 30}]
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions: [{key: failure-domain.beta.kubernetes.io/zone, operator: In, values: [a]}, {key: x, operator: Exists}]
        - {}
        - matchExpressions: [{key: w, operator: Gt, values: ["3"]}]
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 10, preference: {matchExpressions: [{key: z, operator: NotIn, values: [b]}]}}
      - {weight: 20, preference: {matchFields: [{key: metadata.name, operator: In, values: [n]}]}}
      - {weight: 30, preference: {}}
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]
  containers: [{name: a, resources: {requests: {cpu: 1}}}]
status: {phase: Running, nominatedNodeName: node-2}
`))
	deleted := time.Date(2030, 1, 1, 13, 0, 0, 0, time.UTC)
	want := world.Pod{
		ObjectName: world.ObjectName{Namespace: "ns", Name: "a"}, UID: "u", Labels: map[string]string{"app": "a"},
		Created: deleted.Add(-time.Hour), DeletedAt: &deleted, Owner: world.Owner{Kind: "ReplicaSet", Name: "rs"},
		Requests: quantity.Resources{MilliCPU: 1000, Pods: 1}, Priority: 7, GraceSeconds: 5, Critical: true, DoNotEvict: true, DeletionCost: "5",
		Node: "node-1", Nominated: "node-2",
		Selector: []label.Requirement{{Key: "intent", Op: label.In, Values: []string{"apps"}}, {Key: label.Arch, Op: label.In, Values: []string{"arm64"}}},
		Terms: [][]label.Requirement{
			{{Key: label.Zone, Op: label.In, Values: []string{"a"}}, {Key: "x", Op: label.Exists}},
			{{Key: "w", Op: label.Gt, Values: []string{"3"}}},
		},
		Preferred:   []world.Preference{{Weight: 10, Term: []label.Requirement{{Key: "z", Op: label.NotIn, Values: []string{"b"}}}}},
		Tolerations: []world.Toleration{{Key: "k", Op: "Exists", Effect: world.NoExecute}},
		Spread:      []world.Spread{{Key: "zone", MaxSkew: 1, Soft: true, Selector: world.LabelSelector{Nothing: true}}},
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })); diff != "" {
		t.Error(diff)
	}
}

func TestRefused(t *testing.T) {
	const affinity = "spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
	tests := []struct {
		name, pod string
		words     []string // of the reason; none: the pod is planned
	}{
		{"plain", `spec: {containers: [{name: a, ports: [{containerPort: 80}]}], volumes: [{name: v, emptyDir: {}}, {name: w, configMap: {name: c}}]}`, nil},
		{"rules between pods, and ports", `spec: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}], affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone}]}, podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone}]}}, containers: [{name: a, ports: [{containerPort: 80, hostPort: 8080}]}]}`, nil},
		{"resource claim", `spec: {resourceClaims: [{name: gpu}]}`, []string{"resource claims", "gpu"}},
		{"gate", `spec: {schedulingGates: [{name: wait}]}`, []string{"scheduling gate wait"}},
		{"windows", `spec: {os: {name: windows}}`, []string{"Windows"}},
		{"linux", `spec: {os: {name: linux}}`, nil},
		{"field of the node", affinity + `[{matchFields: [{key: metadata.name, operator: In, values: [n]}]}]}}}}`, []string{"matchFields", "metadata.name"}},
		{"only empty terms", affinity + `[{}]}}}}`, []string{"matches no node"}},
		{"not ours", affinity + `[{matchExpressions: [{key: karpenter.sh/provisioner-name, operator: DoesNotExist}]}]}}}}`, []string{"karpenter.sh/provisioner-name"}},
		{"not ours, or another", affinity + `[{matchExpressions: [{key: karpenter.sh/provisioner-name, operator: DoesNotExist}]}, {matchExpressions: [{key: a, operator: Exists}]}]}}}}`, nil},
		{"preferably not ours", `spec: {affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: karpenter.sh/provisioner-name, operator: DoesNotExist}]}}]}}}`, nil},
		{"unknown operator", affinity + `[{matchExpressions: [{key: a, operator: Near, values: [b]}]}]}}}}`, []string{"Near", `"a"`}},
		{"bound that is no number", affinity + `[{matchExpressions: [{key: a, operator: Gt, values: [b]}]}]}}}}`, []string{"integer", `"a"`}},
		{"not on a control plane", affinity + `[{matchExpressions: [{key: node-role.kubernetes.io/control-plane, operator: DoesNotExist}]}]}}}}`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Pod(podSpec(t, tt.pod)).Refused
			if len(tt.words) == 0 && got != "" {
				t.Errorf("refused: %s", got)
			}
			for _, w := range tt.words {
				if !strings.Contains(got, w) {
					t.Errorf("got %q, want the word %q", got, w)
				}
			}
		})
	}
}

func TestProvisionable(t *testing.T) {
	const waits = "status: {phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable}]}"
	tests := []struct {
		name, pod string
		want      bool
	}{
		{"unschedulable", "{" + waits + "}", true},
		{"not tried yet", `{}`, false},
		{"held back by a gate", `{status: {conditions: [{type: PodScheduled, status: "False", reason: SchedulingGated}]}}`, false},
		{"held back by a gate, and the condition is old", "{spec: {schedulingGates: [{name: a}]}, " + waits + "}", false},
		{"bound", "{spec: {nodeName: a}, " + waits + "}", false},
		{"nominated", "{status: {nominatedNodeName: a, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable}]}}", true},
		{"of a DaemonSet", "{metadata: {ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: a, uid: a, controller: true}]}, " + waits + "}", false},
		{"of something else called DaemonSet", "{metadata: {ownerReferences: [{apiVersion: apps.example.test/v1, kind: DaemonSet, name: a, uid: a, controller: true}]}, " + waits + "}", true},
		{"static", "{metadata: {ownerReferences: [{apiVersion: v1, kind: Node, name: a, uid: a, controller: true}]}, " + waits + "}", false},
		{"mirror of a static one", "{metadata: {annotations: {kubernetes.io/config.mirror: x}}, " + waits + "}", false},
		{"being deleted", "{metadata: {deletionTimestamp: '2030-01-01T12:00:00Z'}, " + waits + "}", false},
		{"failed", "{status: {phase: Failed, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable}]}}", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Provisionable(podSpec(t, tt.pod)); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// FuzzPod: whatever JSON an API server lets through, translating it never
// panics, asks for nothing negative, and gives the same answer twice.
func FuzzPod(f *testing.F) {
	for _, seed := range []string{
		`{}`,
		`{"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"9E","memory":"-1"},"limits":{"x/y":"1e30"}}}],"overhead":{"cpu":"1n"}}}`,
		`{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":null},"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"preference":{}}]},"podAffinity":{},"podAntiAffinity":{}}}}`,
		`{"spec":{"nodeSelector":{"":""},"tolerations":[{"operator":"Gt"}],"volumes":[{"ephemeral":{"volumeClaimTemplate":{}}}],"resources":{"limits":{"cpu":"1"}},"initContainers":[{"restartPolicy":"Always"}]}}`,
		`{"metadata":{"ownerReferences":[{"kind":"DaemonSet","apiVersion":"/"}],"deletionTimestamp":null},"status":{"containerStatuses":[{"name":"","resources":{}}]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Add([]byte(`{"metadata":{"namespace":"ns","name":"p"},"spec":{"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"east"}},{"name":"w","ephemeral":{}},{"awsElasticBlockStore":{}}],"topologySpreadConstraints":[{"matchLabelKeys":["a"]}],"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"namespaceSelector":{"matchExpressions":[{"operator":"?"}]}}]}}}}`))
	cluster := objects(f, storage)
	f.Fuzz(func(t *testing.T, text []byte) {
		var p corev1.Pod
		if json.Unmarshal(text, &p) != nil {
			return
		}
		got := cluster.Pod(&p)
		Provisionable(&p)
		Refers(&p)
		for _, a := range got.Requests.Amounts() {
			if a.Value < 0 {
				t.Errorf("asks for %s", a)
			}
		}
		if diff := cmp.Diff(got, cluster.Pod(&p)); diff != "" {
			t.Errorf("two answers: %s", diff)
		}
	})
}

func TestProtection(t *testing.T) {
	started := metav1.NewTime(time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC))
	for _, c := range []struct {
		evict, disrupt string
		pending        bool
		ever           bool
		after          time.Duration // since its start; 0: no such time
		misread        string
	}{
		{evict: "true", ever: true},
		{disrupt: "true", ever: true},
		{disrupt: "30m", after: 30 * time.Minute},
		{disrupt: "1h30m", after: 90 * time.Minute},
		{disrupt: "30m", pending: true, ever: true},
		{disrupt: "30m", evict: "true", ever: true, after: 30 * time.Minute},
		{disrupt: "false"},
		{disrupt: "yes", misread: "yes"},
		{disrupt: "30", misread: "30"},
		{disrupt: "-5m", misread: "-5m"},
		{evict: "30m"}, // the older one knows no durations, and meant nothing by them
	} {
		p := &corev1.Pod{}
		p.Annotations = map[string]string{dialect.AnnotationDoNotEvict: c.evict, dialect.AnnotationDoNotDisrupt: c.disrupt}
		if !c.pending {
			p.Status.StartTime = &started
		}
		got := Pod(p)
		until := time.Duration(0)
		if got.DoNotEvictUntil != nil {
			until = got.DoNotEvictUntil.Sub(started.Time)
		}
		if got.DoNotEvict != c.ever || until != c.after || got.Misread != c.misread {
			t.Errorf("%+v: %v, %s, %q", c, got.DoNotEvict, until, got.Misread)
		}
		if !c.ever && c.after > 0 && (!got.Protected(started.Add(c.after-1)) || got.Protected(started.Add(c.after))) {
			t.Errorf("%+v: it is not protected just until then", c)
		}
	}
}
