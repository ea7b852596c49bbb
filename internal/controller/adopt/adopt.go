// Package adopt carries out that a NodePool takes over the machines of a
// Provisioner, and that it gives them back: labels, owner references and
// annotations of NodeClaims and Nodes, and tags of instances. No machine is
// replaced and no pod is touched.
//
// It may import api, cloud and kube. What is to be done is decided by kube/adopt.
package adopt

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	apiv1 "karpenter/api/v1"
	"karpenter/api/v1alpha5"
	"karpenter/internal/cloud"
	"karpenter/internal/kube/adopt"
	"karpenter/internal/kube/dialect"
	"karpenter/internal/kube/feed"
	"karpenter/internal/kube/ledger"
)

// Tagger changes the tags of an instance.
type Tagger interface {
	Tag(ctx context.Context, id string, set map[string]string, remove []string) error
}

// Controller looks at one NodeClaim at a time. It keeps nothing.
type Controller struct {
	Ledger *ledger.Ledger
	Cloud  Tagger
}

// Reconcile does what is to be done for one machine now. Each step is written
// down before the next, and may be repeated.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	kube := c.Ledger.Client
	claim := &apiv1.NodeClaim{}
	if err := kube.Get(ctx, req.NamespacedName, claim); err != nil || claim.DeletionTimestamp != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	pools, err := c.pools(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	if next, changed := pools.Claim(claim); changed {
		if err := kube.Patch(ctx, next, locked(claim)); err != nil {
			return ledger.Result(time.Time{}, time.Time{}, err)
		}
		_, from := dialect.Owner(claim.Labels)
		kind, to := dialect.Owner(next.Labels)
		log.FromContext(ctx).Info("machine has changed hands", "nodeclaim", claim.Name, "from", from, "to", kind+"/"+to)
		claim = next
	}
	if _, adopted := adopt.PastOf(claim); !adopted {
		return reconcile.Result{}, nil
	}
	nodes, err := c.Ledger.Nodes(ctx, claim.Status.ProviderID)
	if err != nil {
		return reconcile.Result{}, err
	}
	for i := range nodes {
		if next, changed := adopt.Node(&nodes[i], claim, ledger.Owner(claim)); changed && nodes[i].DeletionTimestamp == nil {
			if err := kube.Patch(ctx, next, locked(&nodes[i])); err != nil {
				return ledger.Result(time.Time{}, time.Time{}, err)
			}
		}
	}
	if err := c.tag(ctx, claim); err != nil {
		return reconcile.Result{}, fmt.Errorf("tagging the instance of NodeClaim %q: %w", claim.Name, err)
	}
	if next, changed := adopt.Tagged(claim); changed {
		return ledger.Result(time.Time{}, time.Time{}, kube.Patch(ctx, next, locked(claim)))
	}
	return reconcile.Result{}, nil
}

// tag makes the tags of the instance right. One that is gone has none.
func (c *Controller) tag(ctx context.Context, claim *apiv1.NodeClaim) error {
	set, remove, todo := adopt.Tags(claim)
	if !todo {
		return nil
	}
	id, err := cloud.InstanceID(claim.Status.ProviderID)
	if err != nil {
		return err
	}
	err = c.Cloud.Tag(ctx, id, set, remove)
	var gone *cloud.NotFoundError
	if errors.As(err, &gone) {
		return nil
	}
	return err
}

func (c *Controller) pools(ctx context.Context) (*adopt.Pools, error) {
	var provisioners v1alpha5.ProvisionerList
	var nodePools apiv1.NodePoolList
	for _, list := range []client.ObjectList{&provisioners, &nodePools} {
		if err := c.Ledger.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
	}
	return &adopt.Pools{Provisioners: provisioners.Items, NodePools: nodePools.Items}, nil
}

func locked(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

// Reconciler is the controller with what it is fed with: machines, their Nodes,
// and NodePools, whose annotation may concern any machine.
func (c *Controller) Reconciler() feed.Reconciler {
	return feed.Reconciler{Reconciler: c, Name: "adopt", Sources: []feed.Source{
		{Kind: &apiv1.NodeClaim{}},
		{Kind: &corev1.Node{}, Map: c.ofNode, Matters: func(before, after client.Object) bool { return before == nil && after != nil }},
		{Kind: &apiv1.NodePool{}, Map: c.all, Matters: annotated},
		{Kind: &v1alpha5.Provisioner{}, Map: c.all, Matters: func(before, after client.Object) bool { return before == nil || after == nil }},
	}}
}

// annotated reports whether a NodePool adopts, or no longer adopts, another
// Provisioner than before.
func annotated(before, after client.Object) bool {
	of := func(o client.Object) string {
		if o == nil || o.GetDeletionTimestamp() != nil {
			return ""
		}
		return o.GetAnnotations()[dialect.AnnotationAdopt]
	}
	return of(before) != of(after)
}

func (c *Controller) ofNode(ctx context.Context, o client.Object) []reconcile.Request {
	node, ok := o.(*corev1.Node)
	if !ok {
		return nil
	}
	claim, err := c.Ledger.Claim(ctx, node.Spec.ProviderID)
	if err != nil || claim == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: claim.Name}}}
}

func (c *Controller) all(ctx context.Context, _ client.Object) (out []reconcile.Request) {
	var list apiv1.NodeClaimList
	if err := c.Ledger.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "listing NodeClaims; a change of a pool may be followed late")
		return nil
	}
	for i := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Name: list.Items[i].Name}})
	}
	return out
}
