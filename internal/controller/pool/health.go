package pool

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apiv1 "karpenter/api/v1"
	"karpenter/internal/core/lifecycle"
)

// Whether machines of a pool join the cluster is judged by the last few that
// came to an end: unhealthy if half of them, or more, did not.
const (
	lastMachines = 4
	tooMany      = 2
)

// health is what is remembered of how the machines of one pool came up. A restart
// loses all but what the condition says.
type health struct {
	pool   types.UID
	failed []bool // the latest machines, oldest first: did it fail?
	seen   map[types.UID]bool
	// reason and message of the last failure.
	reason, message string
}

// failure says why a machine that is given up never joined; empty if it joined,
// or was given up for another reason.
func failure(c *apiv1.NodeClaim) (reason, message string) {
	if c.DeletionTimestamp == nil || meta.IsStatusConditionTrue(c.Status.Conditions, apiv1.ConditionRegistered) {
		return "", ""
	}
	limits := lifecycle.DefaultLimits()
	launched := meta.FindStatusCondition(c.Status.Conditions, apiv1.ConditionLaunched)
	registered := meta.FindStatusCondition(c.Status.Conditions, apiv1.ConditionRegistered)
	lasted := func(since metav1.Time, limit time.Duration) bool { return c.DeletionTimestamp.Sub(since.Time) >= limit }
	switch {
	case launched != nil && launched.Status == metav1.ConditionFalse: // refused, which is no fault of the machine
	case (launched == nil || launched.Status != metav1.ConditionTrue) && lasted(c.CreationTimestamp, limits.Launch):
		if launched != nil && launched.Reason != "" {
			return launched.Reason, launched.Message
		}
		return apiv1.ReasonRegistrationFailed, "a machine was not launched in time"
	case registered != nil && lasted(registered.LastTransitionTime, limits.Registration):
		return apiv1.ReasonRegistrationFailed, registered.Message
	}
	return "", ""
}

// look takes note of machines that have come to an end since the last look.
func (h *health) look(claims []apiv1.NodeClaim) {
	there := map[types.UID]bool{}
	for i := range claims {
		c := &claims[i]
		there[c.UID] = true
		if h.seen[c.UID] {
			continue
		}
		reason, message := failure(c)
		switch {
		case reason != "":
			h.add(true)
			h.reason, h.message = reason, message
		case meta.IsStatusConditionTrue(c.Status.Conditions, apiv1.ConditionRegistered):
			h.add(false)
		default:
			continue
		}
		h.seen[c.UID] = true
	}
	for uid := range h.seen {
		if !there[uid] {
			delete(h.seen, uid)
		}
	}
}

func (h *health) add(failed bool) {
	h.failed = append(h.failed, failed)
	h.failed = h.failed[max(0, len(h.failed)-lastMachines):]
}

// condition is what the machines say.
func (h *health) condition() metav1.Condition {
	out := metav1.Condition{Type: apiv1.ConditionNodeRegistrationHealthy, Status: metav1.ConditionUnknown, Reason: "AwaitingMachines", Message: "no machine has come up since pool or class were changed"}
	failures := 0
	for _, f := range h.failed {
		if f {
			failures++
		}
	}
	switch {
	case failures >= tooMany:
		out.Status, out.Reason = metav1.ConditionFalse, h.reason
		out.Message = fmt.Sprintf("%d of the last %d machines did not join the cluster: %s", failures, len(h.failed), h.message)
	case slices.Contains(h.failed, false):
		out.Status, out.Reason, out.Message = metav1.ConditionTrue, out.Type, ""
	}
	return out
}

// remembered begins anew where nothing is known: with what the condition says,
// and without counting machines that have joined long ago.
func (c *Controller) remembered(p *apiv1.NodePool, claims []apiv1.NodeClaim) *health {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h, ok := c.health[p.Name]; ok && h.pool == p.UID {
		return h
	}
	h := &health{pool: p.UID, seen: map[types.UID]bool{}}
	h.look(claims)
	h.failed = nil
	if old := meta.FindStatusCondition(p.Status.Conditions, apiv1.ConditionNodeRegistrationHealthy); old != nil {
		switch old.Status {
		case metav1.ConditionTrue:
			h.failed = []bool{false}
		case metav1.ConditionFalse:
			h.failed, h.reason, h.message = slices.Repeat([]bool{true}, tooMany), old.Reason, "as found before a restart"
		}
	}
	if c.health == nil {
		c.health = map[string]*health{}
	}
	c.health[p.Name] = h
	return h
}

func (c *Controller) forget(pool string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.health, pool)
}

// judge writes whether the machines of a NodePool join the cluster. What was found
// with another pool or class says nothing about those of today.
func (c *Controller) judge(ctx context.Context, o client.Object, claims []apiv1.NodeClaim) {
	p, ok := o.(*apiv1.NodePool)
	if !ok {
		return
	}
	h := c.remembered(p, claims)
	h.look(claims)
	old := meta.FindStatusCondition(p.Status.Conditions, apiv1.ConditionNodeRegistrationHealthy)
	generation := p.Status.NodeClassObservedGeneration
	class := c.Kind.Class()
	if err := c.Client.Get(ctx, client.ObjectKey{Name: p.Spec.Template.Spec.NodeClassRef.Name}, class); err == nil {
		generation = class.GetGeneration()
	}
	if old != nil && old.ObservedGeneration != p.Generation || generation != p.Status.NodeClassObservedGeneration {
		h.failed = nil
	}
	p.Status.NodeClassObservedGeneration = generation
	now := h.condition()
	now.ObservedGeneration, now.LastTransitionTime = p.Generation, metav1.NewTime(c.Now())
	meta.SetStatusCondition(&p.Status.Conditions, now)
}
