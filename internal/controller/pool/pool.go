// Package pool keeps the status of pools: what their machines add up to, and
// whether they can buy, with the reason why not.
//
// It may import api, admission, core and kube; the cloud comes through a small
// interface.
package pool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	apiv1 "karpenter/api/v1"
	"karpenter/api/v1alpha5"
	"karpenter/internal/cloud"
	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/convert"
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

// Controller reconciles Provisioners.
type Controller struct {
	Client client.Client
	// Class is an object of the kind that pools refer to.
	Class client.Object
	// Check tells what the pool can buy, as far as the cloud is concerned.
	Check  func(context.Context, world.Pool) (world.Catalog, error)
	Events event.Recorder
	Now    func() time.Time
	Log    logr.Logger
}

// Reconcile brings the status of one pool up to date.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	p := &v1alpha5.Provisioner{}
	if err := c.Client.Get(ctx, req.NamespacedName, p); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	before := p.DeepCopy()
	resources, err := c.resources(ctx, p.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	p.Status.Resources = resources
	reason, problem := c.problem(ctx, p)
	if ctx.Err() != nil {
		return reconcile.Result{}, ctx.Err()
	}
	c.set(p, reason, problem)
	again := whileReady
	if problem != "" {
		again = whileNot
	}
	if equality.Semantic.DeepEqual(before.Status, p.Status) {
		return reconcile.Result{RequeueAfter: again}, nil
	}
	err = c.Client.Status().Patch(ctx, p, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: time.Second}, nil // it has changed, and is looked at again
	}
	return reconcile.Result{RequeueAfter: again}, client.IgnoreNotFound(err)
}

// resources sums the capacity of the machines that were launched.
func (c *Controller) resources(ctx context.Context, name string) (corev1.ResourceList, error) {
	var claims apiv1.NodeClaimList
	if err := c.Client.List(ctx, &claims, client.MatchingLabels{label.Provisioner: name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the machines of provisioner %q: %w", name, err)
	}
	var sum corev1.ResourceList
	for i := range claims.Items {
		for key, q := range claims.Items[i].Status.Capacity {
			if q.IsZero() {
				continue
			}
			if sum == nil {
				sum = corev1.ResourceList{}
			}
			total := sum[key]
			total.Add(q)
			sum[key] = total
		}
	}
	return sum, nil
}

// problem says why the pool cannot buy; empty if it can.
func (c *Controller) problem(ctx context.Context, p *v1alpha5.Provisioner) (reason, problem string) {
	if p.DeletionTimestamp != nil {
		return "Deleting", "it is being deleted"
	}
	pool, err := convert.Pool(p)
	if err != nil {
		return "Invalid", err.Error()
	}
	catalog, err := c.Check(ctx, pool)
	var bad *cloud.BadClassError
	switch {
	case err == nil:
		if problem = pool.Unsuited(&catalog); problem != "" {
			reason = "NoInstanceTypes"
		}
		return reason, problem
	case errors.As(err, &bad):
		return bad.Class.Kind + "NotReady", err.Error()
	default:
		return "CloudNotReady", err.Error()
	}
}

func (c *Controller) set(p *v1alpha5.Provisioner, reason, problem string) {
	condition := metav1.Condition{Type: v1alpha5.ConditionReady, Status: metav1.ConditionTrue, Reason: "Ready",
		ObservedGeneration: p.Generation, LastTransitionTime: metav1.NewTime(c.Now())}
	if problem != "" {
		if len(problem) > messageMax {
			problem = strings.ToValidUTF8(problem[:messageMax], "") + "…"
		}
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, reason, problem
		if old := meta.FindStatusCondition(p.Status.Conditions, v1alpha5.ConditionReady); old == nil || old.Message != problem {
			c.Log.Info("provisioner cannot buy", "provisioner", p.Name, "reason", problem)
			c.Events.Event(p, corev1.EventTypeWarning, reason, problem)
		}
	} else if old := meta.FindStatusCondition(p.Status.Conditions, v1alpha5.ConditionReady); old != nil && old.Status == metav1.ConditionFalse {
		c.Log.Info("provisioner can buy again", "provisioner", p.Name)
	}
	meta.SetStatusCondition(&p.Status.Conditions, condition)
}

// Reconciler is the controller with what it is fed with. Statuses of pools and
// classes are left out: ours must not wake us, and what a class finds is asked,
// not read.
func (c *Controller) Reconciler() feed.Reconciler {
	return feed.Reconciler{Reconciler: c, Name: "pool", Sources: []feed.Source{
		{Kind: &v1alpha5.Provisioner{}, Matters: feed.Respecified},
		{Kind: &apiv1.NodeClaim{}, Map: owner},
		{Kind: c.Class, Map: c.users, Matters: feed.Respecified},
	}}
}

func owner(_ context.Context, claim client.Object) []reconcile.Request {
	if name := claim.GetLabels()[label.Provisioner]; name != "" {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
	}
	return nil
}

// users are the pools that refer to a class.
func (c *Controller) users(ctx context.Context, class client.Object) []reconcile.Request {
	var pools v1alpha5.ProvisionerList
	if err := c.Client.List(ctx, &pools, client.UnsafeDisableDeepCopy); err != nil {
		return nil // they are looked at again soon
	}
	var out []reconcile.Request
	for i := range pools.Items {
		if ref := pools.Items[i].Spec.ProviderRef; ref != nil && ref.Name == class.GetName() {
			out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Name: pools.Items[i].Name}})
		}
	}
	return out
}
