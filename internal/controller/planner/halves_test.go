package planner

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"karpenter/api/v1alpha5"
)

// A machine that has been empty for long enough, and a pod that came just now:
// the pod is planned before anybody looks for machines to remove.
func TestPodsThatComeArePlannedBeforeMachinesGo(t *testing.T) {
	after := int64(30)
	pool := provisioner(func(p *v1alpha5.Provisioner) { p.Spec.TTLSecondsAfterEmpty = &after })
	r := newRig(t, append(machine("node-1", emptySince(t0.Add(-time.Minute))), pool, pending("pod", "1"))...)
	pod := &corev1.Pod{}
	r.get("pod", pod)
	r.Notice(nil, pod)
	r.pass(0)
	if n := r.said("DeprovisioningTerminatingNode"); n > 0 || len(r.commands) > 0 {
		t.Fatalf("while a pod waits to be planned: %d commands, events %v", len(r.commands), r.events)
	}
	if next := r.pass(500 * time.Millisecond); next != time.Second {
		t.Errorf("comes again at %s, want when the window closes, at 1s", next)
	}
	r.pass(time.Second)
	if len(r.commands) > 0 {
		t.Errorf("the node on which the pod was planned is to go: %v", r.commands)
	}
}

func TestAHalfThatRests(t *testing.T) {
	after := int64(30)
	pool := provisioner(func(p *v1alpha5.Provisioner) { p.Spec.TTLSecondsAfterEmpty = &after })
	big := pending("pod", "100")
	r := newRig(t, append(machine("node-1", emptySince(t0.Add(-time.Minute))), pool, big)...)
	rests := Down
	r.Rests = func(h Half) bool { return h == rests }
	r.Notice(nil, big)
	r.pass(0)
	if next := r.pass(time.Second); len(r.commands) > 0 || next <= time.Second {
		t.Fatalf("down rests: commands %v, next %s", r.commands, next)
	}
	rests = Up
	if next := r.pass(12 * time.Second); len(r.commands) != 1 || next <= 12*time.Second {
		t.Fatalf("up rests: commands %v, next %s", r.commands, next)
	}
}
