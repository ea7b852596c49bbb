package convert

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

func TestRunningPodsTellWhatADaemonAsksFor(t *testing.T) {
	set := &appsv1.DaemonSet{}
	text := `{metadata: {namespace: kube-system, name: agent}, spec: {selector: {}, template: {spec: {runtimeClassName: vm, containers: [{name: a, resources: {requests: {cpu: 100m}}}]}}}}`
	if err := yaml.Unmarshal([]byte(text), set); err != nil {
		t.Fatal(err)
	}
	pod := func(name, created, cpu, more string) string {
		return `{metadata: {namespace: kube-system, name: ` + name + `, creationTimestamp: "` + created + `", ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: agent, uid: u, controller: true}]}, spec: {` + more + ` containers: [{name: a, resources: {requests: {cpu: ` + cpu + `}}}]}}`
	}
	const bound = "nodeName: node-1,"
	running := DaemonPods{}
	see := func(text string) {
		p := Pod(podSpec(t, text))
		running.See(&p)
	}
	want := func(cpu int64, why string) {
		t.Helper()
		if got := running.Daemon(set).Template.Requests.MilliCPU; got != cpu {
			t.Errorf("%s: got %dm, want %dm", why, got, cpu)
		}
	}
	see(`{metadata: {namespace: kube-system, name: other}, spec: {nodeName: node-1, containers: [{name: a, resources: {requests: {cpu: 7}}}]}}`)
	see(pod("pending", "2030-01-01T12:00:00Z", "7", ""))
	want(100, "nothing runs")
	see(pod("old", "2030-01-01T12:00:00Z", "300m", bound))
	want(300, "one runs")
	see(pod("young", "2030-01-01T13:00:00Z", "350m", bound))
	see(pod("old-too", "2030-01-01T12:00:00Z", "400m", bound))
	want(350, "the youngest counts")
}

// TestDaemonThatMatchesNoNode: required node affinity without an expression
// matches nothing, so such a daemon takes no room anywhere.
func TestDaemonThatMatchesNoNode(t *testing.T) {
	set := &appsv1.DaemonSet{}
	text := `{metadata: {namespace: kube-system, name: nowhere}, spec: {selector: {}, template: {spec: {containers: [{name: a}],
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{}]}}}}}}}`
	if err := yaml.Unmarshal([]byte(text), set); err != nil {
		t.Fatal(err)
	}
	got := Daemon(set).Template
	if len(got.Terms) != 1 || len(got.Terms[0]) != 0 {
		t.Errorf("terms %v, want one that is empty", got.Terms)
	}
}
