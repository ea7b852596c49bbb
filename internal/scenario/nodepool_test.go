package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"karpenter/internal/core/schedule"
)

const examplePods = `
{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: c, resources: {requests: {cpu: "1", memory: 1Gi}}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: arm}, spec: {nodeSelector: {kubernetes.io/arch: arm64}, tolerations: [{operator: Exists}], containers: [{name: c, resources: {requests: {cpu: "1", memory: 1Gi}}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: train}, spec: {tolerations: [{key: nvidia.com/gpu, operator: Exists}], containers: [{name: c, resources: {requests: {cpu: "1"}, limits: {nvidia.com/gpu: "1"}}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: mine}, spec: {nodeSelector: {karpenter.sh/nodepool: default}, containers: [{name: c, resources: {requests: {cpu: "1"}}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: older}, spec: {nodeSelector: {karpenter.sh/provisioner-name: default}, containers: [{name: c, resources: {requests: {cpu: "1"}}}]}}
`

// TestExamplesArePlanned: manifests of the shape that people know. The pool of
// greatest weight takes what it can, graphics cards too, since it leaves them open.
func TestExamplesArePlanned(t *testing.T) {
	pods := filepath.Join(t.TempDir(), "pods.yaml")
	if err := os.WriteFile(pods, []byte(examplePods), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := Read([]string{"../../examples/v1", pods}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.Snapshot(Place{Region: "us-west-2"})
	if err != nil {
		t.Fatal(err)
	}
	plan := schedule.Solve(s, schedule.Options{})
	for _, fault := range schedule.Check(s, &plan) {
		t.Error(fault)
	}
	t.Log(plan.Text())
	pools := map[string]string{}
	for _, machine := range plan.Machines {
		for _, p := range machine.Pods {
			pools[p.Name] = machine.PoolKind + " " + machine.Pool
		}
	}
	for pod, pool := range map[string]string{"web": "NodePool spot", "arm": "NodePool spot", "train": "NodePool spot", "mine": "NodePool default"} {
		if pools[pod] != pool {
			t.Errorf("pod %s is on a machine of %q, want %s", pod, pools[pod], pool)
		}
	}
	if len(plan.Unplaced) != 1 || plan.Unplaced[0].Pod.Name != "older" || !strings.Contains(plan.Unplaced[0].Reasons[0].String(), "karpenter.sh/provisioner-name") {
		t.Errorf("without a place: %+v", plan.Unplaced)
	}
}
