package planner

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apiv1 "karpenter/api/v1"
)

// lose deletes all records whose machine is not usable, as the claim controller
// does with those that the cloud refuses.
func (r *rig) lose() {
	for _, c := range r.claims() {
		c.Finalizers = nil
		if err := r.kube.Update(r.t.Context(), &c); err != nil {
			r.t.Fatal(err)
		}
		if err := r.kube.Delete(r.t.Context(), &c); err != nil {
			r.t.Fatal(err)
		}
		r.Notice(&c, nil)
	}
}

// A pod for which every machine is refused gets the next one ever later; another
// pod of the same pool is not kept waiting.
func TestBuyingThatDoesNotHelpGetsRare(t *testing.T) {
	pod := pending("stuck", "1")
	r := newRig(t, provisioner(), pod)
	r.Notice(nil, pod)
	for at := time.Duration(0); at < 10*time.Minute; at += time.Second {
		r.pass(at)
		r.lose()
	}
	if r.begun > 10 || r.begun < 4 {
		t.Errorf("%d machines in ten minutes", r.begun)
	}
	if r.said("MachineLost") == 0 || r.said("the next one is bought after") == 0 {
		t.Errorf("nothing was said: %q", r.events)
	}
	before, other := r.begun, pending("other", "3500m")
	if err := r.kube.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	r.Notice(nil, other)
	for at := 10 * time.Minute; at < 10*time.Minute+5*time.Second; at += time.Second {
		r.pass(at)
	}
	if r.begun == before {
		t.Error("another pod of the pool got no machine")
	}
}

// A pool of which no machine becomes usable rests, whichever pods ask.
func TestAPoolThatDoesNotHelpRests(t *testing.T) {
	r := newRig(t, provisioner())
	for i := range 60 {
		pod := pending(fmt.Sprintf("p-%d", i), "3")
		if err := r.kube.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		r.Notice(nil, pod)
		at := time.Duration(2*i) * time.Second
		r.pass(at)
		r.pass(at + time.Second)
		r.lose()
	}
	if r.begun > 200 {
		t.Errorf("%d machines were bought for 60 pods", r.begun)
	}
	if r.said("machines in a row did not become usable") == 0 {
		t.Errorf("nobody was told that the pool rests: %q", r.events[len(r.events)-1])
	}
}

// A machine that became usable ends the count.
func TestWhatHelpsEndsTheCount(t *testing.T) {
	pod := pending("a", "1")
	r := newRig(t, provisioner(), pod)
	r.Notice(nil, pod)
	r.pass(2 * time.Second)
	r.lose()
	r.pass(4 * time.Second)
	if n := len(r.acc.pods) + len(r.acc.pools); n != 2 {
		t.Fatalf("after a loss: %+v", r.acc)
	}
	r.comeUp()
	r.pass(20 * time.Second)
	if len(r.acc.pools)+len(r.acc.open) != 0 || len(r.acc.pods) != 1 {
		t.Errorf("its machine has come up, and the pod still waits: %+v", r.acc)
	}
	pod.Spec.NodeName, pod.ResourceVersion = r.claims()[0].Status.NodeName, ""
	if err := r.kube.Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	r.pass(31 * time.Second)
	if len(r.acc.pods)+len(r.acc.usable) != 0 || len(r.acc.yield[poolName{"Provisioner", "test"}].Placed) != 1 {
		t.Errorf("the pod has its place: %+v", r.acc)
	}
	for _, e := range r.events {
		if strings.Contains(e, "in a row did not") {
			t.Errorf("said %q", e)
		}
	}
}

// comeUp makes all machines usable that are not.
func (r *rig) comeUp() {
	r.t.Helper()
	room := corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("50")}
	for _, c := range r.claims() {
		if c.Status.NodeName != "" {
			continue
		}
		for _, kind := range []string{apiv1.ConditionLaunched, apiv1.ConditionRegistered, apiv1.ConditionInitialized} {
			c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind, LastTransitionTime: metav1.NewTime(r.now)})
		}
		c.Status.ProviderID, c.Status.NodeName = "aws:///a/i-"+c.Name, "node-"+c.Name
		if err := r.kube.Status().Update(r.t.Context(), &c); err != nil {
			r.t.Fatal(err)
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: c.Status.NodeName, Labels: map[string]string{"karpenter.sh/initialized": "true", "karpenter.sh/registered": "true",
			"karpenter.sh/provisioner-name": c.Labels["karpenter.sh/provisioner-name"]}}, Spec: corev1.NodeSpec{ProviderID: c.Status.ProviderID},
			Status: corev1.NodeStatus{Allocatable: room, Capacity: room, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
		if err := r.kube.Create(r.t.Context(), node); err != nil {
			r.t.Fatal(err)
		}
	}
}

// Machines come up and no pod ever runs on them, whatever the cause: the pool
// stops, and says so.
func TestAPoolWhoseMachinesNobodyUsesStops(t *testing.T) {
	r := newRig(t, provisioner())
	stopped := time.Duration(0)
	for at := time.Duration(0); at < time.Hour && stopped == 0; at += time.Minute {
		for i := range 3 {
			pod := pending(fmt.Sprintf("p-%d-%d", at/time.Minute, i), "3")
			if err := r.kube.Create(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			r.Notice(nil, pod)
		}
		r.pass(at)
		r.pass(at + 2*time.Second)
		r.comeUp()
		for _, c := range r.claims() { // somebody else fills them
			other := pending("other-"+c.Name, "3", on(c.Status.NodeName))
			if err := r.kube.Create(t.Context(), other); err != nil && !apierrors.IsAlreadyExists(err) {
				t.Fatal(err)
			}
		}
		if why := r.Braked("Provisioner", "test"); why != "" {
			stopped = at
			if !strings.Contains(why, "machines were of no use and 0 pods got a place") {
				t.Errorf("got %q", why)
			}
		}
	}
	if stopped == 0 {
		t.Fatalf("%d machines were bought, and nothing stopped it: %+v", r.begun, r.acc.yield)
	}
	before := r.begun
	r.pass(stopped + 2*time.Minute)
	if r.begun != before {
		t.Errorf("%d more were bought", r.begun-before)
	}
}
