package replace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	apiv1 "karpenter/api/v1"
	"karpenter/internal/core/disrupt"
	"karpenter/internal/core/reason"
	"karpenter/internal/journal"
	"karpenter/internal/kube/convert"
	"karpenter/internal/kube/intent"
)

// finish lets the machines of a command go, if that is still right; what stands
// in the way for a moment is waited for as long as replacements are.
func (c *Controller) finish(ctx context.Context, cmd command) (reconcile.Result, error) {
	kept, err := c.confirm(ctx, cmd)
	if err != nil {
		return reconcile.Result{}, err
	}
	var failed []error
	if len(kept) == 0 {
		c.moveNow(ctx, cmd)
		for _, claim := range cmd.machines {
			failed = append(failed, c.remove(ctx, claim, cmd.Intent))
		}
		return reconcile.Result{}, errors.Join(failed...)
	}
	if left := readyWithin - c.Now().Sub(cmd.Since); left > 0 && disrupt.Passes(kept) {
		for _, k := range kept {
			c.Events.Event(nodeNamed(k.Node), corev1.EventTypeNormal, "DisruptionBlocked", cmd.Method+": its replacements are ready, and it waits: "+k.Reason.String())
		}
		return reconcile.Result{RequeueAfter: min(poll, left)}, nil
	}
	for _, claim := range cmd.machines {
		failed = append(failed, c.keep(ctx, claim, cmd.Intent, whyOf(kept, claim)))
	}
	return reconcile.Result{}, errors.Join(failed...)
}

// moveNow writes on the replacements when pods come to them. Without it others of
// the same owners may be left alone instead, which is no reason not to go on.
func (c *Controller) moveNow(ctx context.Context, cmd command) {
	var all apiv1.NodeClaimList
	err := c.Client.List(ctx, &all)
	for i := range all.Items {
		claim := &all.Items[i]
		before := claim.DeepCopy()
		if claim.Annotations[intent.ReplacesAnnotation] != cmd.ID || claim.DeletionTimestamp != nil || !convert.MoveNow(claim, c.Now()) {
			continue
		}
		err = errors.Join(err, c.Client.Patch(ctx, claim, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
	}
	if err != nil {
		c.Log.Info("could not write down when pods are moved", "command", cmd.ID, "error", err.Error())
	}
}

// confirm asks why machines of the command may not go any more.
func (c *Controller) confirm(ctx context.Context, cmd command) ([]disrupt.Kept, error) {
	s, err := c.Look(ctx)
	if err != nil {
		return nil, fmt.Errorf("looking once more before machines go: %w", err)
	}
	again := disrupt.Command{Method: cmd.Method}
	for _, claim := range cmd.machines {
		r := convert.Record(claim)
		again.Remove = append(again.Remove, disrupt.Target{Node: cmp.Or(claim.Status.NodeName, claim.Name), Claim: claim.Name, Pool: r.Pool, PoolKind: r.PoolKind})
	}
	slices.SortFunc(again.Remove, func(a, b disrupt.Target) int { return strings.Compare(a.Node, b.Node) })
	return disrupt.Confirm(s, c.Now(), again, disrupt.Options{}), nil
}

// whyOf is why the machine stays: for a reason of its own, or for another's.
func whyOf(kept []disrupt.Kept, claim *apiv1.NodeClaim) reason.Reason {
	for _, k := range kept {
		if k.Node == claim.Status.NodeName {
			return k.Reason
		}
	}
	return disrupt.Reduced{}
}

func (c *Controller) remove(ctx context.Context, claim *apiv1.NodeClaim, in intent.Intent) error {
	err := client.IgnoreNotFound(c.Client.Delete(ctx, claim, client.Preconditions{UID: &claim.UID}))
	if err != nil {
		return fmt.Errorf("deleting NodeClaim %s: %w", claim.Name, err)
	}
	if c.Disrupted != nil {
		c.Disrupted(in.Method, convert.Record(claim).Pool)
	}
	c.Events.Event(about(claim), corev1.EventTypeNormal, words(claim).Terminating, "its replacements are ready, the node goes: "+in.Method)
	c.Log.Info("removing node, its replacements are ready", "nodeclaim", claim.Name, "node", claim.Status.NodeName, "method", in.Method, "command", in.ID)
	return nil
}

// keep opens the node again. What was bought for it is left to the other methods:
// it is a machine like any other, and goes if nobody uses it.
func (c *Controller) keep(ctx context.Context, claim *apiv1.NodeClaim, in intent.Intent, why reason.Reason) error {
	node, err := c.node(ctx, claim)
	if err != nil {
		return err
	}
	var notes []func(*apiv1.NodeClaim)
	if inVain(why) && in.Bought && c.Now().Sub(in.Since) >= slowly {
		notes = append(notes, func(o *apiv1.NodeClaim) { convert.AddFailure(o, c.Now(), why.String()) })
	}
	if err := intent.Unmark(ctx, c.Client, claim, node, notes...); err != nil {
		return fmt.Errorf("taking back %s of NodeClaim %s: %w", in.Method, claim.Name, err)
	}
	if c.GivenUp != nil {
		c.GivenUp(in.Method, why.Code())
	}
	text := in.Method + " was given up: " + why.String()
	c.Journal.Add(journal.Entry{Time: c.Now(), Kind: journal.RolledBack, Command: in.ID, Summary: cmp.Or(claim.Status.NodeName, claim.Name) + ": " + text})
	c.Events.Event(about(claim), corev1.EventTypeWarning, "DisruptionRolledBack", text)
	c.Log.Info("rolled back", "nodeclaim", claim.Name, "node", claim.Status.NodeName, "method", in.Method, "command", in.ID, "code", why.Code(), "reason", why.String())
	return nil
}

// inVain reports whether what was bought did not help, so that buying the same
// again at once would not either.
func inVain(why reason.Reason) bool {
	switch why.(type) {
	case disrupt.ReplacementFailed, disrupt.ReplacementsLate, disrupt.RoomTaken, disrupt.NoOtherPlace:
		return true
	}
	return false
}

// node is that of the machine; nil if none has joined, or it is gone.
func (c *Controller) node(ctx context.Context, claim *apiv1.NodeClaim) (*corev1.Node, error) {
	if claim.Status.NodeName == "" {
		return nil, nil
	}
	node := &corev1.Node{}
	err := c.Client.Get(ctx, client.ObjectKey{Name: claim.Status.NodeName}, node)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return node, err
}
