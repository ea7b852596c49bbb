package planner

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apiv1 "karpenter/api/v1"
	"karpenter/api/v1alpha5"
	"karpenter/internal/kube/convert"
	"karpenter/internal/kube/dialect"
	"karpenter/internal/kube/mirror"
	"karpenter/internal/kube/nominate"
)

// Watched are objects of the kinds whose changes the planner must hear of; pools
// are the kinds of pools that the API server knows, none: all.
func Watched(pools ...dialect.Dialect) []client.Object { return mirror.Reads(pools...) }

// Notice tells the planner of a change that a watch has shown: before is nil
// for a new object, after is nil for one that is gone. It reports whether the
// planner wants a pass because of it, sooner than it said, and is safe for
// concurrent use.
func (p *Planner) Notice(before, after client.Object) bool {
	if changed(before, after) {
		p.mu.Lock()
		p.changes++
		p.mu.Unlock()
	}
	if claim, ok := before.(*apiv1.NodeClaim); ok && after == nil {
		p.Mirror.Forget(claim.Name)
	}
	urgent := interrupted(after) && !interrupted(before)
	if !urgent && !p.matters(before, after) {
		return false
	}
	p.mu.Lock()
	if urgent { // the time is short, and nothing that follows changes the plan
		p.retryAt = p.Now()
	} else {
		p.window.Trigger(p.Now())
	}
	if isPool(after) {
		p.refused = nil // what was wrong may have been put right
	}
	p.mu.Unlock()
	select {
	case p.woken() <- struct{}{}:
	default: // it is awake already
	}
	return true
}

// changed reports whether a view may show the change: most updates of Nodes and
// pods are heartbeats and the news of containers.
func changed(before, after client.Object) bool {
	if before == nil || after == nil {
		return true
	}
	if before.GetUID() == after.GetUID() && before.GetResourceVersion() == after.GetResourceVersion() && after.GetResourceVersion() != "" {
		return false // told once more
	}
	switch now := after.(type) {
	case *corev1.Node:
		was, ok := before.(*corev1.Node)
		return !ok || was.UID != now.UID || was.Spec.ProviderID != now.Spec.ProviderID || !reflect.DeepEqual(convert.Node(was), convert.Node(now))
	case *corev1.Pod:
		was, ok := before.(*corev1.Pod)
		if !ok || was.UID != now.UID || convert.Provisionable(was) != convert.Provisionable(now) {
			return true
		}
		node, ours := nominate.Of(was)
		nodeNow, oursNow := nominate.Of(now)
		return node != nodeNow || ours != oursNow || !reflect.DeepEqual(convert.Pod(was), convert.Pod(now))
	}
	return true
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
	case *v1alpha5.Provisioner, *apiv1.NodePool:
		return after != nil && (before == nil || before.GetGeneration() != after.GetGeneration() || ready(before) != ready(after))
	}
	return false
}

func interrupted(o client.Object) bool {
	claim, ok := o.(*apiv1.NodeClaim)
	return ok && claim != nil && claim.Annotations[dialect.AnnotationInterrupted] != ""
}

func isPool(o client.Object) bool {
	switch o.(type) {
	case *v1alpha5.Provisioner, *apiv1.NodePool:
		return true
	}
	return false
}

func ready(pool client.Object) bool {
	return meta.IsStatusConditionTrue(*convert.Conditions(pool), apiv1.ConditionReady)
}

func firstOf(objects ...client.Object) client.Object {
	for _, o := range objects {
		if o != nil {
			return o
		}
	}
	return nil
}
