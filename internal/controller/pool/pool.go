// Package pool keeps the status of pools: what their machines add up to, and
// whether they can buy, with the reason why not. Provisioners and NodePools are
// looked at in the same way; they differ in how much of it they show.
//
// It may import api, admission, core and kube; the cloud comes through a small
// interface.
package pool

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	apiv1 "karpenter/api/v1"
	"karpenter/internal/cloud"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/convert"
	"karpenter/internal/kube/dialect"
	"karpenter/internal/kube/event"
	"karpenter/internal/kube/feed"
)

// How soon a pool is looked at again when nothing has changed in the API
// server: what its class selects may have changed in the cloud.
const (
	whileReady = time.Minute
	whileNot   = 10 * time.Second
)

// messageMax is where the text of a condition is cut, in bytes.
const messageMax = 1000

// Controller reconciles the pools of one kind.
type Controller struct {
	Client client.Client
	Kind   dialect.Dialect
	// Check tells what the pool can buy, as far as the cloud is concerned.
	Check func(context.Context, world.Pool) (world.Catalog, error)
	// Braked says why a pool buys nothing for a while although nothing is wrong
	// with it; nil: nobody holds it.
	Braked func(kind, name string) string
	Events event.Recorder
	Now    func() time.Time
	Log    logr.Logger

	mu     sync.Mutex
	health map[string]*health // of NodePools, by name
}

// Reconcile brings the status of one pool up to date.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	p := c.Kind.Pool()
	if err := c.Client.Get(ctx, req.NamespacedName, p); err != nil {
		c.forget(req.Name)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var claims apiv1.NodeClaimList
	if err := c.Client.List(ctx, &claims, client.MatchingLabels{c.Kind.PoolLabel: p.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing the machines of %s: %w", c.name(p), err)
	}
	if err := c.stamp(ctx, p, claims.Items); err != nil {
		return c.again(whileNot, err)
	}
	before := p.DeepCopyObject().(client.Object)
	show(p, claims.Items)
	c.judge(ctx, p, claims.Items)
	findings := c.look(ctx, p)
	if ctx.Err() != nil {
		return reconcile.Result{}, ctx.Err()
	}
	again := whileReady
	if c.conclude(p, findings) {
		again = whileNot
	}
	if equality.Semantic.DeepEqual(before, p) {
		return reconcile.Result{RequeueAfter: again}, nil
	}
	return c.again(again, c.Client.Status().Patch(ctx, p, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}

// again ends a pass. An object that has changed meanwhile is looked at again.
func (c *Controller) again(after time.Duration, err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}
	return reconcile.Result{RequeueAfter: after}, client.IgnoreNotFound(err)
}

// name of the pool for people.
func (c *Controller) name(p client.Object) string {
	return fmt.Sprintf("%s %q", strings.ToLower(c.Kind.Kind), p.GetName())
}

// finding is the answer to one question about the pool.
type finding struct {
	// condition that shows the answer, where the kind has it; empty: Ready alone.
	condition       string
	reason, problem string // empty: nothing is wrong
	unknown         bool   // nobody can tell
}

// look asks, in this order, whether the object is right, its class is ready, and
// there is something that it can buy. It stops at the first that is not so.
func (c *Controller) look(ctx context.Context, p dialect.Object) (out []finding) {
	pool, err := convert.PoolOf(p)
	valid := finding{condition: apiv1.ConditionValidationSucceeded}
	switch {
	case p.GetDeletionTimestamp() != nil:
		return []finding{{reason: "Deleting", problem: "it is being deleted"}}
	case err != nil:
		valid.reason, valid.problem = invalidReason(p), err.Error()
		return []finding{valid}
	}
	out = append(out, valid)
	if c.Kind.ClassLabel != "" { // a kind that shows the state of its class
		class := c.class(ctx, &pool)
		if out = append(out, class); class.problem != "" {
			return out
		}
	}
	f := c.buyable(ctx, pool)
	if why := c.braked(pool.Name); f.problem == "" && why != "" {
		f.reason, f.problem = "MachinesDoNotHelp", why
	}
	return append(out, f)
}

// braked asks whether what the pool has bought lately did not help.
func (c *Controller) braked(name string) string {
	if c.Braked == nil {
		return ""
	}
	return c.Braked(c.Kind.Kind, name)
}

// buyable asks what the pool can buy.
func (c *Controller) buyable(ctx context.Context, pool world.Pool) (f finding) {
	catalog, err := c.Check(ctx, pool)
	var bad *cloud.BadClassError
	switch {
	case err == nil:
		if f.problem = pool.Unsuited(&catalog); f.problem != "" {
			f.reason = "NoInstanceTypes"
		}
	case errors.As(err, &bad):
		f.reason, f.problem = bad.Class.Kind+"NotReady", err.Error()
	default:
		f.reason, f.problem = "CloudNotReady", err.Error()
	}
	return f
}

// class reads whether the class of the pool is ready, as the class itself says.
func (c *Controller) class(ctx context.Context, pool *world.Pool) finding {
	f := finding{condition: apiv1.ConditionNodeClassReady}
	if pool.Class.Group != c.Kind.ClassGroup || pool.Class.Kind != c.Kind.ClassKind {
		f.reason, f.problem = apiv1.ReasonNodeClassNotFound, fmt.Sprintf("%s.%s is not a kind of class that is known here: use %s.%s",
			pool.Class.Kind, pool.Class.Group, c.Kind.ClassKind, c.Kind.ClassGroup)
		return f
	}
	class := c.Kind.Class()
	err := c.Client.Get(ctx, client.ObjectKey{Name: pool.Class.Name}, class)
	ready := meta.FindStatusCondition(*convert.Conditions(class), apiv1.ConditionReady)
	switch {
	case apierrors.IsNotFound(err):
		f.reason, f.problem = apiv1.ReasonNodeClassNotFound, fmt.Sprintf("there is no %s %q: create it, or change nodeClassRef.name", pool.Class.Kind, pool.Class.Name)
	case err != nil:
		f.unknown, f.reason, f.problem = true, apiv1.ReasonNodeClassReadinessUnknown, err.Error()
	case class.GetDeletionTimestamp() != nil:
		f.reason, f.problem = apiv1.ReasonNodeClassTerminating, fmt.Sprintf("%s %q is being deleted", pool.Class.Kind, pool.Class.Name)
	case ready == nil || ready.ObservedGeneration < class.GetGeneration() || ready.Status == metav1.ConditionUnknown:
		f.unknown, f.reason, f.problem = true, apiv1.ReasonNodeClassReadinessUnknown, fmt.Sprintf("%s %q is being checked", pool.Class.Kind, pool.Class.Name)
	case ready.Status != metav1.ConditionTrue:
		f.reason, f.problem = ready.Reason, fmt.Sprintf("%s %q: %s", pool.Class.Kind, pool.Class.Name, ready.Message)
	}
	return f
}

// conclude writes the conditions, tells people what has changed, and reports
// whether there is a problem.
func (c *Controller) conclude(p client.Object, findings []finding) bool {
	list := convert.Conditions(p)
	ready := finding{condition: apiv1.ConditionReady}
	shown := c.Kind.ClassLabel != ""
	for _, f := range findings {
		if f.condition != "" && shown {
			c.set(p, f)
		}
		if f.problem != "" {
			ready.reason, ready.problem, ready.unknown = f.reason, f.problem, f.unknown
		}
	}
	old := meta.FindStatusCondition(*list, apiv1.ConditionReady)
	was := ""
	if old != nil && old.Status != metav1.ConditionTrue {
		was = old.Message
	}
	c.set(p, ready)
	switch now := meta.FindStatusCondition(*list, apiv1.ConditionReady).Message; {
	case now != "" && (old == nil || was != now):
		c.Log.Info("pool cannot buy", strings.ToLower(c.Kind.Kind), p.GetName(), "reason", now)
		c.Events.Event(p, corev1.EventTypeWarning, ready.reason, now)
	case now == "" && was != "":
		c.Log.Info("pool can buy again", strings.ToLower(c.Kind.Kind), p.GetName())
	}
	return ready.problem != ""
}

func (c *Controller) set(p client.Object, f finding) {
	condition := metav1.Condition{Type: f.condition, Status: metav1.ConditionTrue, Reason: f.condition,
		ObservedGeneration: p.GetGeneration(), LastTransitionTime: metav1.NewTime(c.Now())}
	if f.problem != "" {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, f.reason, f.problem
		if f.unknown {
			condition.Status = metav1.ConditionUnknown
		}
		if len(f.problem) > messageMax {
			condition.Message = strings.ToValidUTF8(f.problem[:messageMax], "") + "…"
		}
	}
	meta.SetStatusCondition(convert.Conditions(p), condition)
}

// Reconciler is the controller with what it is fed with. Statuses of pools are
// left out: ours must not wake us. Those of classes count for kinds that show
// them.
func (c *Controller) Reconciler() feed.Reconciler {
	matters := feed.Respecified
	if c.Kind.ClassLabel != "" {
		matters = classChanged
	}
	return feed.Reconciler{Reconciler: c, Name: strings.ToLower(c.Kind.Kind), Sources: []feed.Source{
		{Kind: c.Kind.Pool(), Matters: feed.Respecified},
		{Kind: &apiv1.NodeClaim{}, Map: c.owner, Matters: feed.Updated(claimChanged)},
		{Kind: c.Kind.Class(), Map: c.users, Matters: matters},
	}}
}

// claimChanged reports whether a machine counts differently: most of what happens
// to it on its way up is no matter of its pool.
func claimChanged(before, after *apiv1.NodeClaim) bool {
	state := func(c *apiv1.NodeClaim) (out [3]metav1.ConditionStatus) {
		for i, kind := range []string{apiv1.ConditionLaunched, apiv1.ConditionRegistered, apiv1.ConditionDrifted} {
			if cond := meta.FindStatusCondition(c.Status.Conditions, kind); cond != nil {
				out[i] = cond.Status
			}
		}
		return out
	}
	return before.UID != after.UID || (before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) || state(before) != state(after) ||
		!maps.Equal(before.Labels, after.Labels) || !maps.Equal(before.Annotations, after.Annotations) || !equality.Semantic.DeepEqual(before.Status.Capacity, after.Status.Capacity)
}

func classChanged(before, after client.Object) bool {
	if feed.Respecified(before, after) || before.GetDeletionTimestamp() == nil && after.GetDeletionTimestamp() != nil {
		return true
	}
	x := meta.FindStatusCondition(*convert.Conditions(before), apiv1.ConditionReady)
	y := meta.FindStatusCondition(*convert.Conditions(after), apiv1.ConditionReady)
	return !equality.Semantic.DeepEqual(x, y)
}

func (c *Controller) owner(_ context.Context, claim client.Object) []reconcile.Request {
	if name := claim.GetLabels()[c.Kind.PoolLabel]; name != "" {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
	}
	return nil
}

// users are the pools that refer to a class.
func (c *Controller) users(ctx context.Context, class client.Object) (out []reconcile.Request) {
	pools := c.Kind.Pools()
	if err := c.Client.List(ctx, pools, client.UnsafeDisableDeepCopy); err != nil {
		return nil // they are looked at again soon
	}
	_ = meta.EachListItem(pools, func(o runtime.Object) error {
		if pool := o.(client.Object); convert.ClassName(pool) == class.GetName() {
			out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Name: pool.GetName()}})
		}
		return nil
	})
	return out
}
