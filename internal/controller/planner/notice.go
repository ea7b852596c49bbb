package planner

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apiv1 "karpenter/api/v1"
	"karpenter/api/v1alpha5"
	"karpenter/internal/kube/convert"
)

// Watched are objects of the kinds whose changes the planner wants to hear of.
func Watched() []client.Object {
	return []client.Object{&corev1.Pod{}, &corev1.Node{}, &apiv1.NodeClaim{}, &v1alpha5.Provisioner{}}
}

// Notice tells the planner of a change that a watch has shown: before is nil
// for a new object, after is nil for one that is gone. It is safe for concurrent
// use.
func (p *Planner) Notice(before, after client.Object) {
	if claim, ok := before.(*apiv1.NodeClaim); ok && after == nil {
		p.Mirror.Forget(claim.Name)
	}
	if !p.matters(before, after) {
		return
	}
	p.mu.Lock()
	p.window.Trigger(p.Now())
	if _, pool := after.(*v1alpha5.Provisioner); pool {
		p.refused = nil // what was wrong may have been put right
	}
	p.mu.Unlock()
	select {
	case p.woken() <- struct{}{}:
	default: // it is awake already
	}
}

// matters reports whether the change may ask for a new plan at once. Whatever
// it misses is found by the next retry.
func (p *Planner) matters(before, after client.Object) bool {
	switch o := firstOf(after, before).(type) {
	case *corev1.Pod:
		if after == nil || !convert.Provisionable(o) {
			return false
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		return !p.known[o.UID] // a pod that was planned changes all the time while it waits
	case *apiv1.NodeClaim, *corev1.Node:
		// What was planned onto it needs another place.
		return after == nil || before != nil && before.GetDeletionTimestamp() == nil && after.GetDeletionTimestamp() != nil
	case *v1alpha5.Provisioner:
		old, _ := before.(*v1alpha5.Provisioner)
		return after != nil && (old == nil || old.Generation != o.Generation || ready(old) != ready(o))
	}
	return false
}

func ready(p *v1alpha5.Provisioner) bool {
	return meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha5.ConditionReady)
}

func firstOf(objects ...client.Object) client.Object {
	for _, o := range objects {
		if o != nil {
			return o
		}
	}
	return nil
}
