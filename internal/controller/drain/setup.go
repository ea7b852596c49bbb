package drain

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "karpenter/api/v1"
)

// concurrency is how many machines are taken down side by side.
const concurrency = 50

// SetupWithManager registers the controller: it runs while a record or its Node
// is being deleted.
func (c *Controller) SetupWithManager(m ctrl.Manager) error {
	leaving := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetDeletionTimestamp() != nil })
	return ctrl.NewControllerManagedBy(m).
		Named("drain").
		Watches(&v1.NodeClaim{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(leaving)).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(c.ofNode), builder.WithPredicates(leaving)).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		Complete(c)
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
