package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"karpenter/internal/core/world"
)

func read(t *testing.T, text string) (*Manifests, error) {
	t.Helper()
	return Read([]string{"-"}, strings.NewReader(text))
}

func TestErrorsNameFileLineAndObject(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"unknown field", "\n---\n# comment\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {nodeSelectr: {}}", `stdin:3: Pod p: unknown field "spec.nodeSelectr"`},
		{"wrong type", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: 3}", "stdin:1: Pod p: "},
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

func TestTheSameObjectTwiceIsAnError(t *testing.T) {
	m, err := read(t, strings.Repeat("---\napiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: p}\nspec: {providerRef: {name: t}}\n", 2))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Snapshot(Place{Region: "us-west-2"}); err == nil || !strings.Contains(err.Error(), "stdin:7: Provisioner p: is in stdin:2 already") {
		t.Errorf("got %v", err)
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
