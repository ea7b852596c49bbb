// Package cluster is what makes a simulated API server (sim/kube) a cluster:
// the owners of pods, a scheduler, kubelets, volumes, budgets, garbage
// collection and the life of nodes.
//
// It imports sim/kube and, for the rules of kube-scheduler, internal/kube/convert
// and internal/core; no controller. What always holds: every part does its work
// in Step and nothing in between, everything in a fixed order, so the same world
// with the same clock has the same history; a part writes through a client of
// its own, under its real name, so that faults can be laid on its calls, and
// tries again what was refused.
//
// Owners do as much as users see: what is rolled out, scaled and brought back.
// They keep no status.
package cluster

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/sim/kube"
)

// Annotations on pods that say how they behave, in seconds.
const (
	// AnnotationStart is from binding to running and ready.
	AnnotationStart = "cases/start-seconds"
	// AnnotationRun is from running to success; without it a pod runs for ever.
	AnnotationRun = "cases/run-seconds"
	// AnnotationShutdown is from being asked to end to the end, within its grace.
	AnnotationShutdown = "cases/shutdown-seconds"
)

// Options say how fast things happen. Zero stands for what is said here,
// negative for at once.
type Options struct {
	// Start is from binding to running (2 s), Shutdown from being asked to end
	// to the end of a pod (1 s). Annotations of a pod go before.
	Start, Shutdown time.Duration
	// Attach is from binding to the attachment of volumes (2 s), Detach from the
	// end of the pod to their release (5 s).
	Attach, Detach time.Duration
	// Orphaned is how long pods are kept whose node is gone (40 s).
	Orphaned time.Duration
	// Unreachable is after which time a node that is down is not ready (40 s).
	Unreachable time.Duration

	// Down reports whether no kubelet runs behind the Node; nil: one always does.
	Down func(*corev1.Node) bool
	// Daemons reports whether DaemonSets put pods on the Node; nil: they do.
	Daemons func(*corev1.Node) bool
	// Hold keeps the scheduler from looking at a pod; nil: it looks at all.
	Hold func(*corev1.Pod) bool
}

func (o *Options) setDefaults() {
	for _, d := range []struct {
		value *time.Duration
		usual time.Duration
	}{
		{&o.Start, 2 * time.Second}, {&o.Shutdown, time.Second}, {&o.Attach, 2 * time.Second}, {&o.Detach, 5 * time.Second},
		{&o.Orphaned, 40 * time.Second}, {&o.Unreachable, 40 * time.Second},
	} {
		if *d.value == 0 {
			*d.value = d.usual
		}
		*d.value = max(*d.value, 0)
	}
	if o.Down == nil {
		o.Down = func(*corev1.Node) bool { return false }
	}
	if o.Daemons == nil {
		o.Daemons = func(*corev1.Node) bool { return true }
	}
	if o.Hold == nil {
		o.Hold = func(*corev1.Pod) bool { return false }
	}
}

// Part is one of the things that work in a cluster.
type Part interface {
	// Step does what is due, and returns when the next thing will be, unless
	// something changes before; the zero time: not before.
	Step(now time.Time) time.Time
}

// Cluster is all parts together.
type Cluster struct {
	kube *kube.Cluster

	Collector *Collector
	Nodes     *Nodes
	Volumes   *Volumes
	Owners    *Owners
	Daemons   *Daemons
	Kubelets  *Kubelets
	Budgets   *Budgets
	Scheduler *Scheduler
}

// Fields by which pods and what they use are selected.
const (
	byOwner = "metadata.ownerReferences.controller"
	byNode  = "spec.nodeName"
)

// New puts the parts on top of an API server, and makes them look at what is
// there. There may be one cluster per API server.
func New(k *kube.Cluster, opt Options) (*Cluster, error) {
	opt.setDefaults()
	for _, kind := range []client.Object{&corev1.Pod{}, &appsv1.ReplicaSet{}} {
		err := k.IndexField(kind, byOwner, func(o client.Object) []string {
			if ref := metav1.GetControllerOfNoCopy(o); ref != nil {
				return []string{string(ref.UID)}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	out := &Cluster{
		kube: k, Collector: newCollector(k), Nodes: newNodes(k, opt), Volumes: newVolumes(k, opt), Owners: newOwners(k),
		Daemons: newDaemons(k, opt), Kubelets: newKubelets(k, opt), Budgets: newBudgets(k),
	}
	out.Scheduler = newScheduler(k, out.Volumes, opt)
	return out, nil
}

// most is how many rounds a moment may have; more means that parts answer each
// other for ever.
const most = 1000

// Background lets all parts but the scheduler work until none has anything left
// to do at this moment. It returns when the next thing is due.
func (c *Cluster) Background(now time.Time) time.Time {
	return c.settle(now, c.Collector, c.Nodes, c.Owners, c.Daemons, c.Volumes, c.Kubelets, c.Budgets)
}

// Step lets all parts work until none has anything left to do at this moment. It
// returns when the next thing is due.
func (c *Cluster) Step(now time.Time) time.Time {
	return c.settle(now, c.Collector, c.Nodes, c.Owners, c.Daemons, c.Volumes, c.Kubelets, c.Budgets, c.Scheduler)
}

func (c *Cluster) settle(now time.Time, parts ...Part) time.Time {
	for range most {
		before, next := c.kube.Version(), time.Time{}
		for _, p := range parts {
			next = earlier(next, p.Step(now))
		}
		if c.kube.Version() == before && (next.IsZero() || next.After(now)) {
			return next
		}
	}
	panic("sim/cluster: the parts of the cluster do not come to rest")
}

// earlier of two times, where zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
