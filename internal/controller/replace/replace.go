// Package replace finishes disruptions that wait for replacements: when they
// are ready the old machine goes; when they fail or come too late it stays.
//
// It may import api, core and kube. Everything that it needs is written on the
// NodeClaims, so a restart goes on where it was.
package replace

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	apiv1 "karpenter/api/v1"
	"karpenter/internal/core/disrupt"
	"karpenter/internal/kube/convert"
	"karpenter/internal/kube/event"
	"karpenter/internal/kube/feed"
	"karpenter/internal/kube/intent"
)

// Times of a replacement.
const (
	// checkedWithin: an intent that was not followed by a purchase for this
	// long belongs to a process that is gone.
	checkedWithin = time.Minute
	// visibleWithin: replacements that were bought show in the cache by then.
	visibleWithin = 10 * time.Second
	// readyWithin is how long replacements may take (9.5 minutes).
	readyWithin = 570 * time.Second
	// slowly: replacements that were launched and did not come up take this long
	// at least; those that were refused are given up sooner, and their offering is
	// avoided the next time.
	slowly = 5 * time.Minute
	poll   = 10 * time.Second
)

// Controller reconciles NodeClaims that carry an intent.
type Controller struct {
	Client client.Client
	Events event.Recorder
	Now    func() time.Time
	Log    logr.Logger
	// Disrupted counts a machine that goes, by reason and pool.
	Disrupted func(reason, pool string)
}

// state of the replacements of one command.
type state struct{ live, ready int }

// decide is what becomes of the machine.
func decide(in intent.Intent, s state, now time.Time) (remove bool, giveUp string, again time.Duration) {
	age := now.Sub(in.Since)
	switch {
	case !in.Bought && age >= checkedWithin:
		return false, "the command was not carried out", 0
	case !in.Bought:
		return false, "", checkedWithin - age
	case s.ready >= in.Replacements:
		return true, "", 0
	case s.live < in.Replacements && age >= visibleWithin:
		return false, "a replacement failed", 0
	case age >= readyWithin:
		return false, "the replacements were not ready in time", 0
	}
	return false, "", min(poll, readyWithin-age)
}

// Reconcile looks at one machine that was chosen to go.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	claim := &apiv1.NodeClaim{}
	if err := c.Client.Get(ctx, req.NamespacedName, claim); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	in, marked, err := intent.Read(claim.Annotations)
	if !marked || claim.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, c.keep(ctx, claim, in, false, "its intent cannot be read: "+err.Error())
	}
	if in.Method == disrupt.Drift && !meta.IsStatusConditionTrue(claim.Status.Conditions, apiv1.ConditionDrifted) {
		return reconcile.Result{}, c.keep(ctx, claim, in, false, "the machine is as it should be again")
	}
	s, err := c.look(ctx, in)
	if err != nil {
		return reconcile.Result{}, err
	}
	remove, giveUp, again := decide(in, s, c.Now())
	switch {
	case remove:
		return reconcile.Result{}, c.remove(ctx, claim, in)
	case giveUp != "":
		return reconcile.Result{}, c.keep(ctx, claim, in, in.Bought, giveUp)
	}
	if in.Bought {
		c.Events.Event(about(claim), corev1.EventTypeNormal, "DeprovisioningWaitingReadiness",
			fmt.Sprintf("%s waits until %d replacement(s) are ready", in.Method, in.Replacements))
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

func (c *Controller) look(ctx context.Context, in intent.Intent) (s state, err error) {
	var all apiv1.NodeClaimList
	if err := c.Client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return s, fmt.Errorf("looking for replacements: %w", err)
	}
	for i := range all.Items {
		o := &all.Items[i]
		if o.Annotations[intent.ReplacesAnnotation] != in.ID || o.DeletionTimestamp != nil {
			continue
		}
		s.live++
		if meta.IsStatusConditionTrue(o.Status.Conditions, apiv1.ConditionInitialized) {
			s.ready++
		}
	}
	return s, nil
}

func (c *Controller) remove(ctx context.Context, claim *apiv1.NodeClaim, in intent.Intent) error {
	err := client.IgnoreNotFound(c.Client.Delete(ctx, claim, client.Preconditions{UID: &claim.UID}))
	if err != nil {
		return fmt.Errorf("deleting NodeClaim %s: %w", claim.Name, err)
	}
	if c.Disrupted != nil {
		c.Disrupted(in.Method, convert.Record(claim).Pool)
	}
	c.Events.Event(about(claim), corev1.EventTypeNormal, "DeprovisioningTerminatingNode", "its replacements are ready, the node goes: "+in.Method)
	c.Log.Info("removing node, its replacements are ready", "nodeclaim", claim.Name, "node", claim.Status.NodeName, "method", in.Method, "command", in.ID)
	return nil
}

// keep opens the node again. Replacements that came up by half are left to the
// other methods. failed: it is they that did not come up.
func (c *Controller) keep(ctx context.Context, claim *apiv1.NodeClaim, in intent.Intent, failed bool, why string) error {
	var node *corev1.Node
	if claim.Status.NodeName != "" {
		node = &corev1.Node{}
		err := c.Client.Get(ctx, client.ObjectKey{Name: claim.Status.NodeName}, node)
		if apierrors.IsNotFound(err) {
			node = nil
		} else if err != nil {
			return err
		}
	}
	var notes []func(*apiv1.NodeClaim)
	if failed && c.Now().Sub(in.Since) >= slowly {
		notes = append(notes, func(o *apiv1.NodeClaim) { convert.AddFailure(o, c.Now(), why) })
	}
	if err := intent.Unmark(ctx, c.Client, claim, node, notes...); err != nil {
		return fmt.Errorf("taking back %s of NodeClaim %s: %w", in.Method, claim.Name, err)
	}
	c.Events.Event(about(claim), corev1.EventTypeWarning, "DisruptionRolledBack", in.Method+" was given up: "+why)
	c.Log.Info("rolled back", "nodeclaim", claim.Name, "node", claim.Status.NodeName, "method", in.Method, "command", in.ID, "reason", why)
	return nil
}

// about is the node, if it has joined, or else the claim.
func about(claim *apiv1.NodeClaim) client.Object {
	if claim.Status.NodeName == "" {
		return claim
	}
	n := &corev1.Node{}
	n.Name, n.UID = claim.Status.NodeName, types.UID(claim.Status.NodeName) // as the kubelet does
	return n
}

// Reconciler is the controller with what it is fed with: the machines that are
// to go, and those that were bought in their place.
func (c *Controller) Reconciler() feed.Reconciler {
	has := func(annotation string) func(before, after client.Object) bool {
		return feed.Latest(func(o client.Object) bool { return o.GetAnnotations()[annotation] != "" })
	}
	return feed.Reconciler{Reconciler: c, Name: "replace", Sources: []feed.Source{
		{Kind: &apiv1.NodeClaim{}, Matters: has(intent.Annotation)},
		{Kind: &apiv1.NodeClaim{}, Map: c.replacedBy, Matters: has(intent.ReplacesAnnotation)},
	}}
}

// replacedBy are the machines that wait for a replacement.
func (c *Controller) replacedBy(ctx context.Context, replacement client.Object) []reconcile.Request {
	var all apiv1.NodeClaimList
	if err := c.Client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the poll finds it
	}
	var out []reconcile.Request
	for i := range all.Items {
		in, ok, err := intent.Read(all.Items[i].Annotations)
		if ok && err == nil && in.ID == replacement.GetAnnotations()[intent.ReplacesAnnotation] {
			out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Name: all.Items[i].Name}})
		}
	}
	return out
}
