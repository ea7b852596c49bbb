package drain

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "karpenter/api/v1"
	"karpenter/internal/kube/feed"
)

// concurrency is how many machines are taken down side by side.
const concurrency = 50

// Reconciler is the controller with what it is fed with: it runs while a record
// or its Node is being deleted.
func (c *Controller) Reconciler() feed.Reconciler {
	leaving := feed.Latest(func(o client.Object) bool { return o.GetDeletionTimestamp() != nil })
	return feed.Reconciler{Reconciler: c, Name: "drain", Workers: concurrency, Sources: []feed.Source{
		{Kind: &v1.NodeClaim{}, Matters: leaving},
		{Kind: &corev1.Node{}, Map: c.ofNode, Matters: leaving},
	}}
}

func (c *Controller) ofNode(ctx context.Context, o client.Object) []reconcile.Request {
	name := o.GetName()
	claim, err := c.Ledger.Claim(ctx, o.(*corev1.Node).Spec.ProviderID)
	if err != nil {
		return nil
	}
	if claim != nil {
		name = claim.Name
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
}
