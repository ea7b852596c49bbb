// Package tag names machines in the cloud after the nodes that they became, so
// that people who look at the cloud's list see which is which.
//
// It may import api, cloud and kube. It keeps nothing: that a machine is tagged is
// written on its NodeClaim.
package tag

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	awsv1 "karpenter/api/aws/v1"
	apiv1 "karpenter/api/v1"
	"karpenter/internal/cloud"
	"karpenter/internal/kube/feed"
	"karpenter/internal/kube/ledger"
)

// Done is the annotation of a NodeClaim whose machine carries its name.
const Done = "karpenter.k8s.aws/tagged"

// Namer tags a machine with the names of its node and its NodeClaim. Where it
// must be slower it is *cloud.ThrottledError, which says when to come back.
type Namer interface {
	Name(ctx context.Context, class, instance, node, claim string) error
}

// Controller looks at one NodeClaim at a time.
type Controller struct {
	Ledger *ledger.Ledger
	Cloud  Namer
	Now    func() time.Time
}

// Reconcile tags the machine of a NodeClaim once it has joined. Machines of
// AWSNodeTemplates got their tags when they were bought.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	claim := &apiv1.NodeClaim{}
	if err := c.Ledger.Client.Get(ctx, req.NamespacedName, claim); err != nil || !ready(claim) {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	id, err := cloud.InstanceID(claim.Status.ProviderID)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("tagging the instance of NodeClaim %q: %w", claim.Name, err)
	}
	err = c.Cloud.Name(ctx, claim.Spec.NodeClassRef.Name, id, claim.Status.NodeName, claim.Name)
	var slow *cloud.ThrottledError
	var gone *cloud.NotFoundError
	switch {
	case errors.As(err, &slow):
		return reconcile.Result{RequeueAfter: max(slow.After, time.Second)}, nil
	case errors.As(err, &gone): // the loss of a machine is somebody else's business
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("tagging the instance of NodeClaim %q: %w", claim.Name, err)
	}
	before := claim.DeepCopy()
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	claim.Annotations[Done] = "true"
	return ledger.Result(c.Now(), time.Time{}, c.Ledger.Client.Patch(ctx, claim, client.MergeFrom(before)))
}

// ready reports whether the machine has joined and is not tagged yet.
func ready(claim *apiv1.NodeClaim) bool {
	return claim.DeletionTimestamp == nil && claim.Spec.NodeClassRef.Kind == awsv1.Kind && claim.Annotations[Done] == "" &&
		claim.Status.NodeName != "" && meta.IsStatusConditionTrue(claim.Status.Conditions, apiv1.ConditionRegistered)
}

// Reconciler is the controller with what it is fed with.
func (c *Controller) Reconciler() feed.Reconciler {
	return feed.Reconciler{Reconciler: c, Name: "tag", Sources: []feed.Source{{Kind: &apiv1.NodeClaim{}, Matters: func(_, after client.Object) bool {
		claim, ok := after.(*apiv1.NodeClaim)
		return ok && ready(claim)
	}}}}
}
