package claim

import (
	"context"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "karpenter/api/v1"
	"karpenter/internal/kube/ledger"
)

// concurrency is how many machines are looked at side by side. A launch holds
// its worker for the length of a cloud call.
const concurrency = 50

// SetupWithManager registers the controller: it runs when a record, its Node or
// a pod on that Node changes.
func (c *Controller) SetupWithManager(m ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(m).
		Named("claim").
		For(&v1.NodeClaim{}).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(c.ofNode), builder.WithPredicates(changes(nodeChanged))).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(c.ofPod), builder.WithPredicates(changes(podChanged))).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		Complete(c)
}

// changes lets an update pass only if it may change a decision; most updates of
// Nodes and pods are heartbeats and the news of containers.
func changes[T client.Object](changed func(old, now T) bool) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		old, ok := e.ObjectOld.(T)
		now, ok2 := e.ObjectNew.(T)
		return !ok || !ok2 || changed(old, now)
	}}
}

func nodeChanged(old, now *corev1.Node) bool {
	return !reflect.DeepEqual(ledger.Facts(old, nil, nil), ledger.Facts(now, nil, nil))
}

func podChanged(old, now *corev1.Pod) bool {
	return old.Spec.NodeName != now.Spec.NodeName || old.Status.Phase != now.Status.Phase
}

func (c *Controller) ofNode(ctx context.Context, o client.Object) []reconcile.Request {
	claim, err := c.Ledger.Claim(ctx, o.(*corev1.Node).Spec.ProviderID)
	return requests(claim, err)
}

func (c *Controller) ofPod(ctx context.Context, o client.Object) []reconcile.Request {
	claim, err := c.Ledger.ClaimOfNode(ctx, o.(*corev1.Pod).Spec.NodeName)
	return requests(claim, err)
}

// requests leaves out what cannot be read: every record is looked at again by
// itself.
func requests(claim *v1.NodeClaim, err error) []reconcile.Request {
	if err != nil || claim == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: claim.Name}}}
}
