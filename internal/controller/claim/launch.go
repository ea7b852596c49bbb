package claim

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"karpenter/internal/cloud"
	"karpenter/internal/core/lifecycle"
	"karpenter/internal/kube/convert"
	"karpenter/internal/kube/dialect"
)

// poolGone is how often a record is looked at whose pool is gone; Kubernetes is
// about to delete it.
const poolGone = 10 * time.Second

// unseen is how long the cache may not show what was just written; meanwhile
// the launch is not sent again, though that would do no harm.
const unseen = 10 * time.Second

// launch writes the launch down, sends it, and writes down what came of it. It
// may die between any two of the three: what was written is sent again with the
// same token, which gives the same machine.
func (c *Controller) launch(ctx context.Context, p *pass, step lifecycle.Step) (time.Time, error) {
	if step.Prepare {
		if p.in.Record.Pool != "" && !p.hasPool {
			return p.in.Now.Add(poolGone), nil
		}
		asked := request(p)
		hash, _, err := c.Ledger.Class(ctx, asked.Class) // before the class is used: a change after that is seen
		if err != nil {
			return time.Time{}, err
		}
		prepared, err := c.Cloud.Prepare(ctx, asked)
		if err != nil {
			return c.failed(ctx, p, err)
		}
		if err := c.Ledger.Prepared(ctx, p.claim, prepared, hash); err != nil {
			return time.Time{}, fmt.Errorf("writing down the launch of NodeClaim %q: %w", p.claim.Name, err)
		}
		p.in.Record = convert.Record(p.claim)
	}
	instance, err := c.send(ctx, p)
	if err != nil {
		return c.failed(ctx, p, err)
	}
	if err := c.Ledger.Launched(ctx, p.claim, instance); err != nil {
		return time.Time{}, fmt.Errorf("writing down instance %s of NodeClaim %q: %w", instance.ID, p.claim.Name, err)
	}
	c.remember(p.claim, func(m *memory) { m.retryAt = p.in.Now.Add(unseen) })
	log.FromContext(ctx).Info("launched a machine", "nodeclaim", p.claim.Name, "instance", instance.ID,
		"type", instance.Type, "zone", instance.Zone, "capacityType", instance.CapacityType)
	return p.in.Now.Add(lifecycle.Recheck), nil
}

// send sends the launch that is written down. Where it goes together with others
// from now on, that is written down first.
func (c *Controller) send(ctx context.Context, p *pass) (cloud.Instance, error) {
	instance, err := c.Cloud.Launch(ctx, p.in.Record.Token, cloud.Prepared(p.in.Record.LaunchRequest))
	var rewritten *cloud.RewrittenError
	if !errors.As(err, &rewritten) {
		return instance, err
	}
	if err := c.Ledger.Prepared(ctx, p.claim, rewritten.Prepared, ""); err != nil {
		return cloud.Instance{}, fmt.Errorf("writing down the launch of NodeClaim %q: %w", p.claim.Name, err)
	}
	return c.Cloud.Launch(ctx, p.in.Record.Token, rewritten.Prepared)
}

func request(p *pass) cloud.LaunchRequest {
	r := &p.in.Record
	out := cloud.LaunchRequest{
		Claim: r.Name, Token: r.Token, Pool: r.Pool, PoolLabel: dialect.Of(r.PoolKind).PoolLabel, Class: r.Class,
		Requirements: r.Requirements, Requests: r.Requests, Labels: r.Labels, Taints: r.Taints, StartupTaints: r.StartupTaints,
	}
	if p.hasPool {
		out.Class, out.Kubelet = p.pool.Class, p.pool.Kubelet
	}
	return out
}

// failed writes down why a launch failed and returns when to look again. No
// capacity, a class that cannot be used and a refusal mean that this record never
// gets a machine: it goes, and the next plan makes another one. Everything else may
// have started a machine, and is repeated.
func (c *Controller) failed(ctx context.Context, p *pass, cause error) (time.Time, error) {
	var none *cloud.NoCapacityError
	var bad *cloud.BadClassError
	var refused *cloud.RefusedError
	var slow *cloud.ThrottledError
	var early *cloud.NotYetError
	switch {
	case errors.As(cause, &refused):
		return time.Time{}, c.refused(ctx, p, "LaunchRefused", lifecycle.LaunchRefused, cause)
	case errors.As(cause, &none):
		return time.Time{}, c.refused(ctx, p, "InsufficientCapacityError", lifecycle.InsufficientCapacity, cause)
	case errors.As(cause, &bad):
		return time.Time{}, c.refused(ctx, p, "NodeClassNotReady", lifecycle.ClassNotReady, cause)
	}
	reason := "LaunchFailed"
	switch {
	case errors.As(cause, &slow):
		reason = lifecycle.HeldBack
	case errors.As(cause, &early):
		reason = "NotYet"
	}
	var failing time.Duration
	if l := p.in.Record.Launched; l.Status == lifecycle.Unknown {
		failing = p.in.Now.Sub(l.Since)
	}
	again := p.in.Now.Add(lifecycle.Backoff(p.in.Record.Token, failing))
	switch {
	case early != nil:
		again = p.in.Now.Add(early.After)
	case slow != nil && slow.After > 0: // the cloud's side gave out a turn
		again = p.in.Now.Add(slow.After)
	}
	c.remember(p.claim, func(m *memory) {
		if m.retryAt = again; slow != nil {
			m.heldBack = again
		}
	})
	log.FromContext(ctx).Error(cause, "launch failed", "nodeclaim", p.claim.Name, "retry", again, "requestID", requestID(cause))
	if reason == "LaunchFailed" {
		c.Events.Event(p.claim, corev1.EventTypeWarning, reason, cause.Error())
	}
	return again, c.Ledger.Note(ctx, p.claim, "", lifecycle.Condition{Type: lifecycle.Launched, Status: lifecycle.Unknown, Reason: reason, Message: cause.Error()})
}

// requestID is what the cloud's support asks for; empty where the error is not
// an answer of the cloud.
func requestID(err error) string {
	var answer interface {
		error
		ServiceRequestID() string
	}
	if errors.As(err, &answer) {
		return answer.ServiceRequestID()
	}
	return ""
}

// refused writes down that there is no machine and never will be, so that
// nobody has to look for it, and gives the record up.
func (c *Controller) refused(ctx context.Context, p *pass, word, reason string, cause error) error {
	c.Events.Event(p.claim, corev1.EventTypeWarning, word, cause.Error())
	err := c.Ledger.Note(ctx, p.claim, "", lifecycle.Condition{Type: lifecycle.Launched, Status: lifecycle.False, Reason: word, Message: cause.Error()})
	if err != nil {
		return err
	}
	return c.giveUp(ctx, p.claim, reason)
}
