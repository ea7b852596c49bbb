// Package replace finishes disruptions that wait for replacements. When they are
// ready, everything is looked at once more, and the old machines go if that still
// is right; a machine whose reason to go is gone, or whose replacements fail or
// come too late, stays and is opened again. That is the last moment: what is
// deleted cannot be had back.
//
// It may import api, core, kube and journal. Everything that it needs is written
// on the NodeClaims, so a restart goes on where it was.
package replace

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	apiv1 "karpenter/api/v1"
	"karpenter/internal/core/disrupt"
	"karpenter/internal/core/reason"
	"karpenter/internal/core/world"
	"karpenter/internal/journal"
	"karpenter/internal/kube/dialect"
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
	// Look takes a snapshot of the cluster as it is now.
	Look func(context.Context) (*world.Snapshot, error)
	// Journal takes down what was given up.
	Journal *journal.Journal
	// Disrupted counts a machine that goes, by reason and pool; GivenUp counts a
	// command that is not carried out, by method and cause. nil: nobody counts.
	Disrupted func(reason, pool string)
	GivenUp   func(method, cause string)
}

// command are the machines that go together, as far as they are still there.
type command struct {
	intent.Intent
	machines []*apiv1.NodeClaim
}

// state of the replacements of one command.
type state struct{ live, ready int }

// decide is what becomes of the machine: it may go, it is given up for a reason,
// or it is looked at again after a while.
func decide(in intent.Intent, s state, now time.Time) (ready bool, giveUp reason.Reason, again time.Duration) {
	age := now.Sub(in.Since)
	switch {
	case !in.Bought && age >= checkedWithin:
		return false, disrupt.NotCarriedOut{}, 0
	case !in.Bought:
		return false, nil, checkedWithin - age
	case s.ready >= in.Replacements:
		return true, nil, 0
	case s.live < in.Replacements && age >= visibleWithin:
		return false, disrupt.ReplacementFailed{}, 0
	case age >= readyWithin:
		return false, disrupt.ReplacementsLate{Ready: s.ready, Wanted: in.Replacements}, 0
	}
	return false, nil, min(poll, readyWithin-age)
}

// Reconcile looks at one machine that was chosen to go.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	claim := &apiv1.NodeClaim{}
	if err := c.Client.Get(ctx, req.NamespacedName, claim); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	in, marked, err := intent.Read(claim.Annotations)
	switch {
	case claim.DeletionTimestamp != nil:
		return reconcile.Result{}, nil
	case !marked:
		return reconcile.Result{}, c.stray(ctx, claim)
	case err != nil:
		return reconcile.Result{}, c.keep(ctx, claim, in, disrupt.Unreadable{Problem: err.Error()})
	}
	s, machines, err := c.look(ctx, in)
	if err != nil {
		return reconcile.Result{}, err
	}
	ready, giveUp, again := decide(in, s, c.Now())
	switch {
	case ready:
		return c.finish(ctx, command{in, machines})
	case giveUp != nil:
		return reconcile.Result{}, c.keep(ctx, claim, in, giveUp)
	}
	if in.Bought {
		c.Events.Event(about(claim), corev1.EventTypeNormal, words(claim).WaitingReadiness,
			fmt.Sprintf("%s waits until %d replacement(s) are ready", in.Method, in.Replacements))
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// look counts the replacements and finds the machines that go together.
func (c *Controller) look(ctx context.Context, in intent.Intent) (s state, machines []*apiv1.NodeClaim, err error) {
	var all apiv1.NodeClaimList
	if err := c.Client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return s, nil, fmt.Errorf("looking for replacements: %w", err)
	}
	for i := range all.Items {
		o := &all.Items[i]
		if o.DeletionTimestamp != nil {
			continue
		}
		if other, ok, err := intent.Read(o.Annotations); ok && err == nil && other.ID == in.ID {
			machines = append(machines, o.DeepCopy())
		}
		if o.Annotations[intent.ReplacesAnnotation] != in.ID {
			continue
		}
		s.live++
		if meta.IsStatusConditionTrue(o.Status.Conditions, apiv1.ConditionInitialized) {
			s.ready++
		}
	}
	return s, machines, nil
}

// words are how the generation of the machine's pool calls what is told about it.
func words(claim *apiv1.NodeClaim) dialect.Events {
	kind, _ := dialect.Owner(claim.Labels)
	return dialect.Of(kind).Events
}

// about is the node, if it has joined, or else the claim.
func about(claim *apiv1.NodeClaim) client.Object {
	if claim.Status.NodeName == "" {
		return claim
	}
	return nodeNamed(claim.Status.NodeName)
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
		{Kind: &apiv1.NodeClaim{}, Matters: unmarked},
		{Kind: &corev1.Node{}, Map: c.ofNode, Matters: feed.Latest(func(o client.Object) bool { return intent.Marked(o.(*corev1.Node)) })},
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
