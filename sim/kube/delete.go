package kube

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deletion is how something is to be deleted.
type deletion struct {
	grace         *int64
	preconditions *metav1.Preconditions
	orphan        bool
	dry           bool
}

func newDeletion(o *client.DeleteOptions) deletion {
	d := deletion{grace: o.GracePeriodSeconds, preconditions: o.Preconditions, dry: len(o.DryRun) > 0}
	d.orphan = o.PropagationPolicy != nil && *o.PropagationPolicy == metav1.DeletePropagationOrphan
	return d
}

func (k *kind) preconditions(cur client.Object, p *metav1.Preconditions) error {
	switch {
	case p == nil:
	case p.UID != nil && *p.UID != cur.GetUID():
		return k.conflict(cur.GetName(), "Precondition failed: UID in precondition: %s, UID in object meta: %s", *p.UID, cur.GetUID())
	case p.ResourceVersion != nil && *p.ResourceVersion != cur.GetResourceVersion():
		return k.conflict(cur.GetName(), "Precondition failed: ResourceVersion in precondition: %s, ResourceVersion in object meta: %s", *p.ResourceVersion, cur.GetResourceVersion())
	}
	return nil
}

// delete asks for the end of an object: at once if nothing holds it, else it is
// marked. A pod that runs is held by its kubelet for its grace.
func (c *Cluster) delete(k *kind, cur client.Object, d deletion) error {
	if err := k.preconditions(cur, d.preconditions); err != nil {
		return err
	}
	grace := graceOf(cur, d.grace)
	if at := cur.GetDeletionTimestamp(); at != nil {
		left := cur.GetDeletionGracePeriodSeconds()
		if left == nil || *left == 0 {
			if len(cur.GetFinalizers()) > 0 {
				return nil
			}
			grace = 0
		} else if d.grace == nil || grace >= *left {
			return nil // on its way; the grace can only be shortened
		}
	}
	if d.dry {
		return nil
	}
	if d.orphan {
		c.orphan(cur.GetUID())
	}
	next := cur.DeepCopyObject().(client.Object)
	if cur.GetDeletionTimestamp() == nil && grace == 0 && len(cur.GetFinalizers()) == 0 {
		c.drop(k, next)
		return nil
	}
	start := c.now()
	if at := cur.GetDeletionTimestamp(); at != nil {
		if left := cur.GetDeletionGracePeriodSeconds(); left != nil {
			start = metav1.Time{Time: at.Add(-seconds(*left))}
		}
	} else if next.GetGeneration() > 0 {
		next.SetGeneration(next.GetGeneration() + 1)
	}
	end := metav1.Time{Time: start.Add(seconds(grace))}
	next.SetDeletionTimestamp(&end)
	next.SetDeletionGracePeriodSeconds(&grace)
	c.succeed(k, cur, next, false)
	return nil
}

// released reports whether an object is being deleted and nothing holds it.
func released(o client.Object) bool {
	grace := o.GetDeletionGracePeriodSeconds()
	return o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 && (grace == nil || *grace == 0)
}

// graceOf is how many seconds an object gets: only a pod that a kubelet runs
// gets any.
func graceOf(o client.Object, asked *int64) int64 {
	pod, ok := o.(*corev1.Pod)
	switch {
	case !ok, pod.Spec.NodeName == "", pod.Status.Phase == corev1.PodSucceeded, pod.Status.Phase == corev1.PodFailed:
		return 0
	case asked != nil:
		return max(*asked, 0)
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		return *pod.Spec.TerminationGracePeriodSeconds
	}
	return defaultGraceSeconds
}

// orphan takes the owner off its dependents.
func (c *Cluster) orphan(owner types.UID) {
	for _, k := range c.sorted {
		for _, e := range slices.Clone(k.list) {
			refs := e.obj.GetOwnerReferences()
			if !slices.ContainsFunc(refs, func(r metav1.OwnerReference) bool { return r.UID == owner }) {
				continue
			}
			next := e.obj.DeepCopyObject().(client.Object)
			next.SetOwnerReferences(slices.DeleteFunc(next.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner }))
			c.succeed(k, e.obj, next, false)
		}
	}
}

// Expunge takes an object out of the store at once, whatever holds it: what has
// vanished, not what was deleted. It is no error if it is not there.
func (c *Cluster) Expunge(o client.Object) error {
	c.mu.Lock()
	defer c.unlock()
	k, err := c.kindOf(o)
	if err != nil {
		return err
	}
	if cur := k.get(objectKey(o)); cur != nil {
		c.drop(k, cur.DeepCopyObject().(client.Object))
	}
	return nil
}
