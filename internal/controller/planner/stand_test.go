package planner

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/v1alpha5"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/mirror"
	"karpenter/internal/settings"
)

// counted counts the views that were taken.
type counted struct {
	viewer
	views int
}

func (c *counted) View(ctx context.Context, now time.Time, policy world.Policy, window time.Duration) (*mirror.View, error) {
	c.views++
	return c.viewer.View(ctx, now, policy, window)
}

// resting is a cluster in which nothing is to be done.
func resting(t *testing.T) (*rig, *counted) {
	t.Helper()
	pool := provisioner(func(p *v1alpha5.Provisioner) { p.Spec.TTLSecondsUntilExpired = nil })
	r := newRig(t, slices.Concat([]client.Object{pool, pending("p", "3", on("a"))}, machine("a"))...)
	c := &counted{viewer: r.Mirror}
	r.Mirror = c
	r.pass(0)
	c.views = 0
	return r, c
}

func TestTheSameLookIsNotMadeTwice(t *testing.T) {
	r, c := resting(t)
	for at := tick; at < staysEvery; at += tick {
		r.quietPass(at)
	}
	if c.views != 0 {
		t.Errorf("%d views were taken although nothing had changed", c.views)
	}
	if r.quietPass(staysEvery); c.views != 1 {
		t.Errorf("%d views: it is to be said again why the machine stays", c.views)
	}
}

func TestALookIsMadeAnewWhenSomethingHasChanged(t *testing.T) {
	pod, node := pending("p", "3", on("a")), machine("a")[1].(*corev1.Node)
	restarted, beaten := pod.DeepCopy(), node.DeepCopy()
	restarted.ResourceVersion, beaten.ResourceVersion = "8", "8"
	restarted.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 3}}
	beaten.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(t0)
	gone, cordoned := pod.DeepCopy(), node.DeepCopy()
	gone.ResourceVersion, cordoned.ResourceVersion = "8", "8"
	gone.DeletionTimestamp = &metav1.Time{Time: t0}
	cordoned.Spec.Unschedulable = true
	for _, c := range []struct {
		what        string
		before, now client.Object
		want        int
	}{
		{"a heartbeat", node, beaten, 0}, {"the news of a container", pod, restarted, 0}, {"the same once more", node, node, 0},
		{"a node that was cordoned", node, cordoned, 1}, {"a pod that is going", pod, gone, 1}, {"a pod that went", pod, nil, 1},
		{"a volume that came", nil, &corev1.PersistentVolume{}, 1},
	} {
		r, count := resting(t)
		r.Notice(c.before, c.now)
		if r.quietPass(tick); count.views != c.want {
			t.Errorf("%s: %d views were taken, want %d", c.what, count.views, c.want)
		}
	}
}

func TestALookIsMadeAnewWhenOtherThingsAreForSaleOrSet(t *testing.T) {
	r, count := resting(t)
	set := r.Settings()
	set.MachineCost++
	r.Settings = func() settings.Settings { return set }
	if r.quietPass(tick); count.views != 1 {
		t.Errorf("other settings: %d views", count.views)
	}
	trouble := ""
	m := mirror.New(r.kube, func(context.Context, world.Pool) world.Catalog { return world.Catalog{Trouble: trouble} })
	count.viewer = m
	r.pass(2 * tick)
	count.views = 0
	if r.quietPass(3 * tick); count.views != 0 {
		t.Errorf("the same for sale: %d views", count.views)
	}
	trouble = "nothing to be had"
	if r.quietPass(4 * tick); count.views != 1 {
		t.Errorf("nothing for sale any more: %d views", count.views)
	}
	m.Expect("a", t0.Add(time.Hour))
	if r.quietPass(5 * tick); count.views != 2 {
		t.Errorf("pods are expected: %d views", count.views)
	}
}

// An empty machine is taken when its time has come, though nothing changes then.
func TestALookIsMadeAnewWhenItsTimeHasCome(t *testing.T) {
	r := newRig(t, slices.Concat([]client.Object{provisioner(func(p *v1alpha5.Provisioner) { p.Spec.TTLSecondsAfterEmpty = new(int64(300)) })}, machine("a", emptySince(t0)))...)
	r.pass(0)
	for at := tick; at < 300*time.Second; at += tick {
		r.quietPass(at)
	}
	if len(r.commands) != 0 {
		t.Error("the machine was chosen too early")
	}
	if r.quietPass(300 * time.Second); len(r.commands) != 1 {
		t.Error("the machine was not chosen when its time had come")
	}
}
