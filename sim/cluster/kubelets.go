package cluster

import (
	"context"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/sim/kube"
)

// dead is how often it is asked whether a kubelet that was down is back.
const dead = 10 * time.Second

// Kubelets run the pods on all nodes: they start what is bound, let end what has
// been asked to, and finish what runs for a while only. Where a node is down, or
// has no Node, nothing happens.
type Kubelets struct {
	client *kube.Client
	opt    Options
	queue  queue
	pods   map[id]*corev1.Pod
	nodes  map[string]*corev1.Node
	// stopping is when a pod was first seen being deleted.
	stopping map[id]time.Time
	on       map[string]map[id]bool // pods by node
}

func newKubelets(k *kube.Cluster, opt Options) *Kubelets {
	out := &Kubelets{client: k.Client("kubelet"), opt: opt, pods: map[id]*corev1.Pod{}, nodes: map[string]*corev1.Node{},
		stopping: map[id]time.Time{}, on: map[string]map[id]bool{}}
	k.Subscribe(out.see)
	return out
}

func (k *Kubelets) see(e kube.Event) {
	switch o := e.Object().(type) {
	case *corev1.Node:
		k.nodes[o.Name] = o
		if e.New == nil {
			delete(k.nodes, o.Name)
		}
		if e.New == nil || e.Old == nil {
			for i := range k.on[o.Name] {
				k.queue.add(i, time.Time{})
			}
		}
	case *corev1.Pod:
		i := idOf(o)
		if e.New == nil {
			delete(k.pods, i)
			delete(k.on[o.Spec.NodeName], i)
			delete(k.stopping, i)
			k.queue.drop(i)
			return
		}
		if o.Spec.NodeName == "" {
			return
		}
		k.pods[i] = o
		if k.on[o.Spec.NodeName] == nil {
			k.on[o.Spec.NodeName] = map[id]bool{}
		}
		k.on[o.Spec.NodeName][i] = true
		k.queue.add(i, time.Time{})
	}
}

// Step implements [Part].
func (k *Kubelets) Step(now time.Time) time.Time {
	for _, i := range k.queue.take(now) {
		p := k.pods[i]
		if p == nil || finished(p) && p.DeletionTimestamp == nil {
			continue
		}
		n := k.nodes[p.Spec.NodeName]
		if n == nil {
			continue // until there is one
		}
		again := now.Add(dead)
		if !k.opt.Down(n) {
			again = k.pod(p, i, now)
		}
		if !again.IsZero() {
			k.queue.add(i, again)
		}
	}
	return k.queue.next(now)
}

// pod does what is due for one pod, and returns when to look again.
func (k *Kubelets) pod(p *corev1.Pod, i id, now time.Time) time.Time {
	var due time.Time
	var do func() error
	switch {
	case p.DeletionTimestamp != nil:
		due, do = k.end(p, i, now), func() error { return k.remove(p) }
	case p.Status.Phase == corev1.PodPending || p.Status.Phase == "":
		due, do = boundAt(p).Add(seconds(p, AnnotationStart, k.opt.Start)), func() error { return k.start(p, now) }
	case condition(p, corev1.PodReady) == "": // running, and nobody has said how
		due, do = now, func() error { return k.start(p, now) }
	default:
		run := seconds(p, AnnotationRun, -1)
		if run < 0 || p.Status.StartTime == nil {
			return time.Time{}
		}
		due, do = p.Status.StartTime.Add(run), func() error { return k.finish(p, now) }
	}
	if due.After(now) {
		return due
	}
	if err := do(); client.IgnoreNotFound(err) != nil {
		return now.Add(retry)
	}
	return time.Time{} // its own event comes
}

// boundAt is when the pod was bound, which the API tells to the second; where it
// does not, when it was created.
func boundAt(p *corev1.Pod) time.Time {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime.Time
		}
	}
	return p.CreationTimestamp.Time
}

// end is when a pod that was asked to end will have ended.
func (k *Kubelets) end(p *corev1.Pod, i id, now time.Time) time.Time {
	if finished(p) {
		return now
	}
	since, ok := k.stopping[i]
	if !ok {
		since = now
		k.stopping[i] = now
	}
	end := since.Add(seconds(p, AnnotationShutdown, k.opt.Shutdown))
	if last := p.DeletionTimestamp.Time; last.Before(end) {
		return last
	}
	return end
}

func (k *Kubelets) remove(p *corev1.Pod) error {
	uid := p.UID
	return k.client.Delete(context.Background(), p, client.GracePeriodSeconds(0), client.Preconditions{UID: &uid})
}

func (k *Kubelets) start(p *corev1.Pod, now time.Time) error {
	at := metav1.Time{Time: now.Truncate(time.Second)}
	next := p.DeepCopy()
	next.Status.Phase = corev1.PodRunning
	if next.Status.StartTime == nil {
		next.Status.StartTime = &at
	}
	for _, c := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		set(next, corev1.PodCondition{Type: c, Status: corev1.ConditionTrue, LastTransitionTime: at})
	}
	return k.client.Status().Update(context.Background(), next)
}

func (k *Kubelets) finish(p *corev1.Pod, now time.Time) error {
	at := metav1.Time{Time: now.Truncate(time.Second)}
	next := p.DeepCopy()
	next.Status.Phase = corev1.PodSucceeded
	for _, c := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
		set(next, corev1.PodCondition{Type: c, Status: corev1.ConditionFalse, LastTransitionTime: at, Reason: "PodCompleted"})
	}
	return k.client.Status().Update(context.Background(), next)
}

// set sets a condition of a pod; the time of its last transition stays if it was
// so before.
func set(p *corev1.Pod, to corev1.PodCondition) {
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == to.Type {
			if c.Status == to.Status {
				to.LastTransitionTime = c.LastTransitionTime
			}
			*c = to
			return
		}
	}
	p.Status.Conditions = append(p.Status.Conditions, to)
}

// seconds reads an annotation that says how long something takes.
func seconds(p *corev1.Pod, annotation string, otherwise time.Duration) time.Duration {
	if n, err := strconv.Atoi(p.Annotations[annotation]); err == nil && n >= 0 {
		return time.Duration(n) * time.Second
	}
	return otherwise
}

func finished(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}
