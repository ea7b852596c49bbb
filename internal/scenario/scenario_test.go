package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"karpenter/api/v1alpha5"
	"karpenter/internal/core/world"
)

func read(t *testing.T, text string) (*Manifests, error) {
	t.Helper()
	return Read([]string{"-"}, strings.NewReader(text))
}

func TestErrorsNameFileLineAndObject(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"unknown field", "\n---\n# comment\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {nodeSelectr: {}}", `stdin:3: Pod p: spec.nodeSelectr: Forbidden: unknown field; did you mean nodeSelector?`},
		{"wrong type", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: 3}", "stdin:1: Pod p: spec.containers: Invalid value: 3: must be a list"},
		{"key twice", "apiVersion: v1\nkind: Pod\nkind: Pod\nmetadata: {name: p}", "stdin:1: not readable as YAML"},
		{"fewer than no pods", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {replicas: -5}", "stdin:1: Deployment d: the number of pods must be from 0"},
		{"more pods than anybody has", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {parallelism: 2000000000}", "stdin:1: Job j: the number of pods must be from 0"},
		{"no kind", "metadata: {name: p}", "apiVersion and kind"},
		{"no name", "apiVersion: v1\nkind: Pod", "metadata.name: is needed"},
		{"kind of ours that does not exist", "apiVersion: karpenter.sh/v1\nkind: NodePol\nmetadata: {name: p}", "kind NodePol of karpenter.sh/v1 is not known"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			good := "\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: good}\n"
			m, err := read(t, tt.text+good)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("want an error with %q, got %v", tt.want, err)
			}
			if len(m.Pods) != 1 || m.Pods[0].Name != "good" {
				t.Errorf("the readable pod is lost: %v", m.Pods)
			}
		})
	}
}

func TestFoldersListsAndOtherKinds(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"b.yaml":   "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: one}}\n- {apiVersion: v1, kind: Pod, metadata: {name: two, namespace: x}}\n",
		"a.json":   `{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}`,
		"notes.md": "not a manifest",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m, err := Read([]string{dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Pods) != 2 || m.Pods[0].Namespace != "default" || m.Pods[1].Namespace != "x" {
		t.Errorf("want pods default/one and x/two, got %v", m.Pods)
	}
	if len(m.Skipped) != 1 || m.Skipped[0] != "Service web" {
		t.Errorf("want Service web skipped, got %v", m.Skipped)
	}
}

func TestWorkloadsBecomePods(t *testing.T) {
	template := "template: {metadata: {labels: {app: x}}, spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}"
	tests := []struct {
		kind, spec, owner string
		pods              int
	}{
		{"apps/v1\nkind: Deployment", "replicas: 3", "ReplicaSet", 3},
		{"apps/v1\nkind: Deployment", "replicas: 0", "", 0},
		{"apps/v1\nkind: StatefulSet", "serviceName: s", "StatefulSet", 1},
		{"v1\nkind: ReplicationController", "replicas: 2", "ReplicationController", 2},
		{"batch/v1\nkind: Job", "parallelism: 2", "Job", 2},
	}
	for _, tt := range tests {
		m, err := read(t, "apiVersion: "+tt.kind+"\nmetadata: {name: w}\nspec:\n  "+tt.spec+"\n  "+template)
		if err != nil {
			t.Fatal(err)
		}
		s, err := m.Snapshot(Place{Region: "us-west-2"})
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Pending) != tt.pods {
			t.Errorf("%s: want %d pods, got %d", tt.kind, tt.pods, len(s.Pending))
			continue
		}
		for _, p := range s.Pending {
			if p.Owner.Kind != tt.owner || p.Requests.MilliCPU != 1000 || p.Labels["app"] != "x" {
				t.Errorf("%s: pod is %+v", tt.kind, p)
			}
		}
	}
}

func TestNodesCarryTheirPods(t *testing.T) {
	m, err := read(t, `
apiVersion: v1
kind: Node
metadata: {name: node-a}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}, conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: bound}
spec: {nodeName: node-a, containers: [{name: c, resources: {requests: {cpu: "3"}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: done}
spec: {nodeName: node-a, containers: [{name: c, resources: {requests: {cpu: "3"}}}]}
status: {phase: Succeeded}
`)
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.Snapshot(Place{Region: "us-west-2"})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Nodes) != 1 || len(s.Nodes[0].Pods) != 1 || len(s.Pending) != 0 {
		t.Fatalf("want one node with one pod and nothing pending, got %+v", s)
	}
	if got := s.Nodes[0].Requested().MilliCPU; got != 3000 {
		t.Errorf("want 3000m requested, got %d", got)
	}
}

// TestLastOfTwoStands, whatever its kind, as when both are applied.
func TestLastOfTwoStands(t *testing.T) {
	m, err := read(t, `
{apiVersion: karpenter.sh/v1alpha5, kind: Provisioner, metadata: {name: p}, spec: {weight: 1, providerRef: {name: t}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: []}}
---
{apiVersion: karpenter.sh/v1alpha5, kind: Provisioner, metadata: {name: p}, spec: {weight: 2, providerRef: {name: t}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: default}, spec: {nodeName: node-1, containers: []}}
---
{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: p}, spec: {template: {spec: {requirements: [], nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: t}}}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: other}, spec: {containers: []}}
`)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Pools) != 2 || *m.Pools[0].(*v1alpha5.Provisioner).Spec.Weight != 2 || len(m.Pods) != 2 || m.Pods[0].Spec.NodeName != "node-1" {
		t.Errorf("pools %v, pods %v", m.Pools, m.Pods)
	}
	want := []string{
		"stdin:6: Provisioner p: replaces the one of stdin:1, as when both are applied; keep one of the two",
		"stdin:8: Pod default/p: replaces the one of stdin:4, as when both are applied; keep one of the two",
	}
	if diff := cmp.Diff(want, m.Doubled); diff != "" {
		t.Error(diff)
	}
}

// TestRefusedPoolsAndClassesAreKnown: they are there and cannot be used, which is
// not the same as if nobody had written them.
func TestRefusedPoolsAndClassesAreKnown(t *testing.T) {
	m, err := read(t, `
{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: typo}, spec: {wieght: 1}}
---
{apiVersion: karpenter.sh/v1beta1, kind: NodePool, metadata: {name: old}, spec: {}}
---
{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: classless}, spec: {template: {spec: {requirements: [], nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: typo}}}}}
---
{apiVersion: karpenter.k8s.aws/v1, kind: EC2NodeClass, metadata: {name: typo}, spec: {rool: r}}
`)
	if err == nil {
		t.Fatal("nothing was refused")
	}
	s, _ := m.Snapshot(Place{Region: "us-west-2"})
	for name, want := range map[string]string{
		"typo": "it was refused: ", "old": "it was refused: kind NodePool of karpenter.sh/v1beta1 is not known", "classless": `EC2NodeClass "typo" cannot be used: it was refused: `,
	} {
		if p := s.Pool("NodePool", name); p == nil || !strings.Contains(p.NotReady, want) {
			t.Errorf("%s: got %+v, want %q", name, p, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n---\nkind: List\nitems: []\n")
	f.Add("apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: p}\nspec: {requirements: [{key: a, operator: Gt, values: [x]}]}")
	f.Fuzz(func(t *testing.T, text string) {
		m, _ := Read([]string{"-"}, strings.NewReader(text)) // whatever is wrong is an error, never a crash
		var s *world.Snapshot
		s, _ = m.Snapshot(Place{Region: "us-west-2", Zones: []string{"us-west-2a"}})
		if s == nil {
			t.Error("no snapshot for a place that exists")
		}
	})
}
