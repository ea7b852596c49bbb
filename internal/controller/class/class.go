// Package class keeps the status of classes: what their selectors find, and
// whether machines can be made from them. AWSNodeTemplates and EC2NodeClasses are
// looked at in the same way.
//
// It may import api, cloud and kube; the cloud comes through functions that fill
// in the status and clear up after a class.
package class

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
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	awsv1 "karpenter/api/aws/v1"
	apiv1 "karpenter/api/v1"
	"karpenter/internal/cloud"
	"karpenter/internal/kube/convert"
	"karpenter/internal/kube/dialect"
	"karpenter/internal/kube/event"
	"karpenter/internal/kube/feed"
)

const (
	whileReady = time.Minute
	whileNot   = 10 * time.Second
	messageMax = 1000
)

// Controller reconciles the classes of one kind.
type Controller struct {
	Client client.Client
	Kind   dialect.Dialect
	// Resolve finds what the class selects and writes it into the status of the
	// object, conditions apart; what could not be found stays as it was. The error
	// is the first that is in the way; trouble has one for each condition of the
	// kind, beside Ready, that does not hold.
	Resolve func(context.Context, client.Object) (trouble map[string]error, err error)
	// Release takes away what was made in the cloud for a class that goes; nil:
	// nothing is made.
	Release func(context.Context, client.Object) error
	Events  event.Recorder
	Now     func() time.Time
	Log     logr.Logger
}

// Reconcile brings the status of one class up to date.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	o := c.Kind.Class()
	if err := c.Client.Get(ctx, req.NamespacedName, o); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if o.GetDeletionTimestamp() != nil {
		return c.goes(ctx, o)
	}
	if err := errors.Join(c.hold(ctx, o), c.renew(ctx, o)); err != nil {
		return again(whileNot, err)
	}
	before := o.DeepCopyObject().(client.Object)
	trouble, err := c.Resolve(ctx, o)
	if ctx.Err() != nil {
		return reconcile.Result{}, ctx.Err()
	}
	c.conclude(o, trouble, err)
	after := whileReady
	if err != nil {
		after = whileNot
	}
	if equality.Semantic.DeepEqual(before, o) {
		return reconcile.Result{RequeueAfter: after}, nil
	}
	return again(after, c.Client.Status().Patch(ctx, o, locked(before)))
}

// again ends a pass. An object that has changed meanwhile is looked at again.
func again(after time.Duration, err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}
	return reconcile.Result{RequeueAfter: after}, client.IgnoreNotFound(err)
}

func locked(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

// hold puts our finalizer on a class for which something may be made, and the
// hash of what it says.
func (c *Controller) hold(ctx context.Context, o client.Object) error {
	class, ok := o.(*awsv1.EC2NodeClass)
	if !ok {
		return nil
	}
	before := class.DeepCopy()
	controllerutil.AddFinalizer(class, c.Kind.ClassFinalizer)
	metav1.SetMetaDataAnnotation(&class.ObjectMeta, dialect.AnnotationClassHash, convert.ClassHash(class))
	metav1.SetMetaDataAnnotation(&class.ObjectMeta, dialect.AnnotationClassHashVersion, convert.ClassHashVersion)
	if equality.Semantic.DeepEqual(before, class) {
		return nil
	}
	return c.Client.Patch(ctx, class, locked(before))
}

// renew gives machines whose hash was computed in another way, so that it cannot
// be compared, the present one, unless they have been found to differ already.
func (c *Controller) renew(ctx context.Context, o client.Object) error {
	class, ok := o.(*awsv1.EC2NodeClass)
	if !ok {
		return nil
	}
	var claims apiv1.NodeClaimList
	if err := c.Client.List(ctx, &claims, client.MatchingLabels{c.Kind.ClassLabel: class.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range claims.Items {
		before := &claims.Items[i]
		version, has := before.Annotations[dialect.AnnotationClassHashVersion]
		if !has || version == convert.ClassHashVersion || before.DeletionTimestamp != nil {
			continue
		}
		claim := before.DeepCopy()
		claim.Annotations[dialect.AnnotationClassHashVersion] = convert.ClassHashVersion
		if !meta.IsStatusConditionTrue(claim.Status.Conditions, apiv1.ConditionDrifted) {
			claim.Annotations[dialect.AnnotationClassHash] = convert.ClassHash(class)
		}
		if err := c.Client.Patch(ctx, claim, locked(before)); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// goes lets a class go when no machine refers to it any more, and clears up.
func (c *Controller) goes(ctx context.Context, o client.Object) (reconcile.Result, error) {
	if c.Kind.ClassFinalizer == "" || !controllerutil.ContainsFinalizer(o, c.Kind.ClassFinalizer) {
		return reconcile.Result{}, nil
	}
	var claims apiv1.NodeClaimList
	if err := c.Client.List(ctx, &claims, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, err
	}
	var users []string
	for i := range claims.Items {
		if c.refers(&claims.Items[i], o.GetName()) {
			users = append(users, claims.Items[i].Name)
		}
	}
	if len(users) > 0 {
		c.Events.Event(o, corev1.EventTypeNormal, "WaitingOnNodeClaimTermination", fmt.Sprintf("it goes when no NodeClaim refers to it; there are %d, among them %s", len(users), users[0]))
		return reconcile.Result{RequeueAfter: whileNot}, nil
	}
	if c.Release != nil {
		if err := c.Release(ctx, o); err != nil {
			return reconcile.Result{}, fmt.Errorf("clearing up after %s %q: %w", c.Kind.ClassKind, o.GetName(), err)
		}
	}
	before := o.DeepCopyObject().(client.Object)
	controllerutil.RemoveFinalizer(o, c.Kind.ClassFinalizer)
	_, err := again(0, c.Client.Patch(ctx, o, locked(before)))
	return reconcile.Result{}, err
}

func (c *Controller) refers(claim *apiv1.NodeClaim, class string) bool {
	r := claim.Spec.NodeClassRef
	return r.Name == class && r.Kind == c.Kind.ClassKind && r.Group == c.Kind.ClassGroup
}

// details are the conditions of an EC2NodeClass beside Ready, with the word for
// what keeps each from holding.
var details = []struct{ condition, reason string }{
	{awsv1.ConditionSubnetsReady, awsv1.ReasonSubnetsNotFound},
	{awsv1.ConditionSecurityGroupsReady, awsv1.ReasonSecurityGroupsNotFound},
	{awsv1.ConditionAMIsReady, awsv1.ReasonAMINotFound},
	{awsv1.ConditionInstanceProfileReady, awsv1.ReasonInstanceProfileNotFound},
	{awsv1.ConditionValidationSucceeded, awsv1.ReasonEC2NodeClassValidationFailed},
}

// conclude writes the conditions, and tells people of a new problem.
func (c *Controller) conclude(o client.Object, trouble map[string]error, err error) {
	ready := condition(awsv1.ConditionReady, "NotUsable", err)
	if c.Kind.ClassFinalizer != "" { // a kind that shows the details
		for _, d := range details {
			part := condition(d.condition, d.reason, trouble[d.condition])
			c.set(o, part)
			if part.Status != metav1.ConditionTrue && part.Message == ready.Message {
				ready.Reason = part.Reason
			}
		}
	}
	old := meta.FindStatusCondition(*convert.Conditions(o), ready.Type)
	if err != nil && (old == nil || old.Message != ready.Message) {
		c.Log.Info("class cannot be used", strings.ToLower(c.Kind.ClassKind), o.GetName(), "reason", ready.Message)
		c.Events.Event(o, corev1.EventTypeWarning, ready.Reason, ready.Message)
	}
	c.set(o, ready)
}

// condition is False for the reason given where a change of the object, or of our
// rights, would cure the error, and Unknown where the cloud does not answer.
func condition(kind, reason string, err error) metav1.Condition {
	out := metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind}
	var bad *cloud.BadClassError
	var right *cloud.MissingRightError
	switch {
	case errors.As(err, &right):
		out.Status, out.Reason, out.Message = metav1.ConditionFalse, right.Reason, right.Error()
	case errors.As(err, &bad):
		out.Status, out.Reason, out.Message = metav1.ConditionFalse, reason, bad.Field+": "+bad.Problem
	case err != nil:
		out.Status, out.Reason, out.Message = metav1.ConditionUnknown, "CloudNotReady", err.Error()
	}
	if len(out.Message) > messageMax {
		out.Message = strings.ToValidUTF8(out.Message[:messageMax], "") + "…"
	}
	return out
}

func (c *Controller) set(o client.Object, condition metav1.Condition) {
	condition.ObservedGeneration, condition.LastTransitionTime = o.GetGeneration(), metav1.NewTime(c.Now())
	meta.SetStatusCondition(convert.Conditions(o), condition)
}

// Reconciler is the controller with what it is fed with. Our own statuses must
// not wake it; that a machine has gone may let a class go.
func (c *Controller) Reconciler() feed.Reconciler {
	sources := []feed.Source{{Kind: c.Kind.Class(), Matters: respecifiedOrGoing}}
	if c.Kind.ClassFinalizer != "" {
		sources = append(sources, feed.Source{Kind: &apiv1.NodeClaim{}, Map: c.classOf, Matters: func(_, after client.Object) bool { return after == nil }})
	}
	return feed.Reconciler{Reconciler: c, Name: strings.ToLower(c.Kind.ClassKind), Sources: sources}
}

func respecifiedOrGoing(before, after client.Object) bool {
	return feed.Respecified(before, after) || before.GetDeletionTimestamp() == nil && after.GetDeletionTimestamp() != nil
}

func (c *Controller) classOf(_ context.Context, o client.Object) []reconcile.Request {
	claim, ok := o.(*apiv1.NodeClaim)
	if !ok || !c.refers(claim, claim.Spec.NodeClassRef.Name) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: claim.Spec.NodeClassRef.Name}}}
}
