// Package notice acts on what the cloud says about machines: it writes down that
// one will be taken away, and when. That is what the planner, which buys the next
// one, and the end of the machine's own life go by.
//
// It may import api, core, cloud, kube and settings. A notice is taken off the
// queue after it was acted upon; one that comes again does no harm. Whatever
// cannot be read, or is about machines of others, is taken off as well.
package notice

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "karpenter/api/v1"
	"karpenter/internal/cloud"
	"karpenter/internal/core/label"
	"karpenter/internal/kube/dialect"
	"karpenter/internal/kube/event"
	"karpenter/internal/kube/ledger"
	"karpenter/internal/settings"
)

// Times of the loop.
const (
	wait = 20 * time.Second // for messages, in one call
	poll = 2 * time.Second  // between calls that brought nothing
	off  = 10 * time.Second // between looks at a setting that names no queue
	// After the first failure, doubled each time up to the last.
	firstRetry, lastRetry = time.Second, time.Minute
)

// Inbox is where the cloud tells about machines.
type Inbox interface {
	Receive(ctx context.Context, queue string, wait time.Duration) ([]cloud.Delivery, error)
	Acknowledge(ctx context.Context, queue string, list []cloud.Delivery) error
	// Unwell are notices about machines that are out of order, or for which
	// something is planned; they come again as long as that is so.
	Unwell(ctx context.Context) ([]cloud.Notice, error)
}

// Controller acts on notices.
type Controller struct {
	Ledger *ledger.Ledger
	Inbox  Inbox
	Events event.Recorder
	// Refuse keeps an offering from being bought for a while.
	Refuse   func(...cloud.OfferingKey)
	Settings func() settings.Settings
	Metrics  *Metrics
	Now      func() time.Time
	Log      logr.Logger

	trouble string // as last said; empty: the queue works
	retry   time.Duration
	checks  checks
}

// Pass receives what is in the queue, acts on it, and returns when it wants to
// run again. It is not safe for concurrent use.
func (c *Controller) Pass(ctx context.Context) (next time.Time, err error) {
	queue := c.Settings().InterruptionQueue
	if queue == "" {
		c.recovered(queue)
		return c.Now().Add(off), nil
	}
	list, err := c.Inbox.Receive(ctx, queue, wait)
	if err == nil {
		c.recovered(queue)
		err = c.act(ctx, queue, list)
	} else {
		c.degraded(queue, err)
		err = nil // it was said, once
	}
	switch {
	case err != nil || c.trouble != "":
		c.retry = min(max(2*c.retry, firstRetry), lastRetry)
		return c.Now().Add(c.retry), err
	case len(list) > 0:
		c.retry = 0
		return c.Now(), nil
	}
	c.retry = 0
	return c.Now().Add(poll), nil
}

// degraded says once what keeps notices from coming.
func (c *Controller) degraded(queue string, err error) {
	c.Metrics.works(false)
	if text := err.Error(); text != c.trouble {
		c.trouble = text
		c.Log.Error(err, "interruption notices cannot be received; machines that the cloud takes away are noticed late", "queue", queue)
	}
}

func (c *Controller) recovered(queue string) {
	c.Metrics.works(queue != "")
	if c.trouble != "" && queue != "" {
		c.Log.Info("interruption notices are received again", "queue", queue)
	}
	c.trouble = ""
}

// act carries the notices out and acknowledges those that are done with. The
// others come again.
func (c *Controller) act(ctx context.Context, queue string, list []cloud.Delivery) error {
	if len(list) == 0 {
		return nil
	}
	machines, err := c.machines(ctx)
	if err != nil {
		return err
	}
	var failed []error
	var finished []cloud.Delivery
	for _, d := range list {
		c.Metrics.received(d, c.Now())
		if d.Kind == cloud.NoNotice {
			c.Log.V(1).Info("a message says nothing about machines", "reason", d.Detail)
		}
		if err := c.one(ctx, d.Notice, machines); err != nil {
			failed = append(failed, err)
			continue
		}
		finished = append(finished, d)
	}
	if err := c.Inbox.Acknowledge(ctx, queue, finished); err != nil {
		failed = append(failed, fmt.Errorf("taking messages off queue %s: %w", queue, err))
	} else {
		c.Metrics.acknowledged(len(finished))
	}
	return errors.Join(failed...)
}

// machines are ours, by the id of the instance.
func (c *Controller) machines(ctx context.Context) (map[string]*v1.NodeClaim, error) {
	var all v1.NodeClaimList
	if err := c.Ledger.Client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing NodeClaims: %w", err)
	}
	out := map[string]*v1.NodeClaim{}
	for i := range all.Items {
		if id, err := cloud.InstanceID(all.Items[i].Status.ProviderID); err == nil {
			out[id] = &all.Items[i]
		}
	}
	return out, nil
}

// events are what people read on the Node, by kind of notice.
var events = map[cloud.NoticeKind]struct{ reason, text string }{
	cloud.SpotInterrupted:        {"InstanceSpotInterrupted", "the cloud wants the spot machine back"},
	cloud.RebalanceRecommended:   {"InstanceSpotRebalanceRecommendation", "the spot machine is likelier than others to be wanted back"},
	cloud.ScheduledChange:        {"InstanceUnhealthy", "the cloud will stop or restart the machine"},
	cloud.InstanceStopped:        {"InstanceStopping", "the machine stops"},
	cloud.InstanceTerminated:     {"InstanceTerminating", "the machine ends"},
	cloud.ReservationInterrupted: {"CapacityReservationInstanceInterrupted", "the cloud wants the reserved capacity back"},
	cloud.InstanceImpaired:       {"InstanceStatusUnhealthy", "the cloud finds the machine out of order"},
	cloud.SystemImpaired:         {"SystemStatusUnhealthy", "the cloud finds what the machine runs on out of order"},
}

// one acts on one notice.
func (c *Controller) one(ctx context.Context, n cloud.Notice, machines map[string]*v1.NodeClaim) error {
	var failed []error
	for _, id := range n.Instances {
		claim := machines[id].DeepCopy()
		if claim == nil {
			continue // somebody else's, or gone
		}
		machines[id] = claim // as it will be, for the notices that follow
		if err := c.machine(ctx, n, claim); err != nil {
			failed = append(failed, fmt.Errorf("acting on %s of instance %s, NodeClaim %s: %w", n.Kind, id, claim.Name, err))
		}
	}
	return errors.Join(failed...)
}

// machine acts on a notice about one of ours.
func (c *Controller) machine(ctx context.Context, n cloud.Notice, claim *v1.NodeClaim) error {
	kind := corev1.EventTypeWarning
	if !n.Kind.EndsMachine() {
		kind = corev1.EventTypeNormal
	}
	if e, known := events[n.Kind]; known {
		c.Events.Event(about(claim), kind, e.reason, e.text)
	}
	if n.Kind == cloud.SpotInterrupted && c.Refuse != nil {
		c.Refuse(cloud.OfferingKey{Type: claim.Labels[label.InstanceType], Zone: claim.Labels[label.Zone], CapacityType: label.Spot})
	}
	if !n.Kind.EndsMachine() {
		return nil
	}
	known := claim.DeletionTimestamp != nil || claim.Annotations[dialect.AnnotationInterrupted] != ""
	if err := c.Ledger.Interrupt(ctx, claim, string(n.Kind), c.deadline(n)); err != nil || known {
		return client.IgnoreNotFound(err)
	}
	c.Events.Event(about(claim), corev1.EventTypeWarning, "NodeTerminatingOnInterruption", "the node is drained, and its pods get another one: "+string(n.Kind))
	c.Log.Info("draining an interrupted machine", "nodeclaim", claim.Name, "node", claim.Status.NodeName, "messageKind", n.Kind, "detail", n.Detail)
	return nil
}

// deadline is when the machine ends: now if the cloud gave no time, as it has
// ended or nobody knows when it will.
func (c *Controller) deadline(n cloud.Notice) time.Time {
	if now := c.Now(); n.Deadline.Before(now) {
		return now
	}
	return n.Deadline
}

// about is the node, if it has joined, or else the claim.
func about(claim *v1.NodeClaim) client.Object {
	if claim.Status.NodeName == "" {
		return claim
	}
	n := &corev1.Node{}
	n.Name, n.UID = claim.Status.NodeName, types.UID(claim.Status.NodeName) // as the kubelet does
	return n
}

// Run passes until the context ends. Status checks are looked at beside the queue,
// as a call to the queue may wait.
func (c *Controller) Run(ctx context.Context) error {
	checked := make(chan struct{})
	go func() {
		defer close(checked)
		c.loop(ctx, c.Check)
	}()
	c.loop(ctx, c.Pass)
	<-checked
	return nil
}

func (c *Controller) loop(ctx context.Context, pass func(context.Context) (time.Time, error)) {
	for ctx.Err() == nil {
		next, err := pass(ctx)
		if err != nil && ctx.Err() == nil {
			c.Log.Error(err, "some notices could not be acted upon; they come again")
		}
		if next.IsZero() {
			return
		}
		timer := time.NewTimer(next.Sub(c.Now()))
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}
