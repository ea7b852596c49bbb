// Package class keeps the status of AWSNodeTemplates: what their selectors
// find, and whether machines can be made from them.
//
// It may import api; the cloud comes through a function that fills in the
// status.
package class

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/aws/v1alpha1"
	"karpenter/internal/cloud"
	"karpenter/internal/kube/event"
	"karpenter/internal/kube/feed"
)

const (
	whileReady = time.Minute
	whileNot   = 10 * time.Second
	messageMax = 1000
)

// ConditionReady says whether machines can be made from the class.
const ConditionReady = "Ready"

// Controller reconciles AWSNodeTemplates.
type Controller struct {
	Client client.Client
	// Resolve finds what the class selects. An error leaves what was found
	// before.
	Resolve func(context.Context, *v1alpha1.AWSNodeTemplate) (v1alpha1.AWSNodeTemplateStatus, error)
	Events  event.Recorder
	Now     func() time.Time
	Log     logr.Logger
}

// Reconcile brings the status of one class up to date.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	t := &v1alpha1.AWSNodeTemplate{}
	if err := c.Client.Get(ctx, req.NamespacedName, t); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if t.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	before := t.DeepCopy()
	found, err := c.Resolve(ctx, t)
	if ctx.Err() != nil {
		return reconcile.Result{}, ctx.Err()
	}
	condition := metav1.Condition{Type: ConditionReady, Status: metav1.ConditionTrue, Reason: "Ready",
		ObservedGeneration: t.Generation, LastTransitionTime: metav1.NewTime(c.Now())}
	again := whileReady
	var bad *cloud.BadClassError
	switch {
	case errors.As(err, &bad):
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, "NotUsable", bad.Field+": "+bad.Problem
		again = whileNot
	case err != nil:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionUnknown, "CloudNotReady", err.Error()
		again = whileNot
	default:
		t.Status.Subnets, t.Status.SecurityGroups, t.Status.AMIs = found.Subnets, found.SecurityGroups, found.AMIs
	}
	if len(condition.Message) > messageMax {
		condition.Message = strings.ToValidUTF8(condition.Message[:messageMax], "") + "…"
	}
	if old := meta.FindStatusCondition(t.Status.Conditions, ConditionReady); err != nil && (old == nil || old.Message != condition.Message) {
		c.Log.Info("class cannot be used", "awsnodetemplate", t.Name, "reason", condition.Message)
		c.Events.Event(t, corev1.EventTypeWarning, condition.Reason, condition.Message)
	}
	meta.SetStatusCondition(&t.Status.Conditions, condition)
	if !equality.Semantic.DeepEqual(before.Status, t.Status) {
		err := c.Client.Status().Patch(ctx, t, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if apierrors.IsConflict(err) {
			return reconcile.Result{RequeueAfter: time.Second}, nil // it has changed, and is looked at again
		}
		if client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// Reconciler is the controller with what it is fed with.
func (c *Controller) Reconciler() feed.Reconciler {
	return feed.Reconciler{Reconciler: c, Name: "class", Sources: []feed.Source{
		{Kind: &v1alpha1.AWSNodeTemplate{}, Matters: feed.Respecified}, // our status must not wake us
	}}
}
