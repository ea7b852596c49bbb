package claim

import (
	"context"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "karpenter/api/v1"
	"karpenter/internal/kube/feed"
	"karpenter/internal/kube/ledger"
)

// concurrency is how many machines are looked at side by side. A launch holds
// its worker for the length of a cloud call.
const concurrency = 50

// Reconciler is the controller with what it is fed with: it runs when a record,
// its Node or a pod on that Node changes.
func (c *Controller) Reconciler() feed.Reconciler {
	return feed.Reconciler{Reconciler: c, Name: "claim", Workers: concurrency, Sources: []feed.Source{
		{Kind: &v1.NodeClaim{}},
		// Most updates of Nodes and pods are heartbeats and the news of containers.
		{Kind: &corev1.Node{}, Map: c.ofNode, Matters: feed.Updated(nodeChanged)},
		{Kind: &corev1.Pod{}, Map: c.ofPod, Matters: feed.Updated(podChanged)},
	}}
}

func nodeChanged(old, now *corev1.Node) bool {
	return !reflect.DeepEqual(ledger.Facts(old, nil, nil), ledger.Facts(now, nil, nil))
}

func podChanged(old, now *corev1.Pod) bool {
	return old.Spec.NodeName != now.Spec.NodeName || old.Status.Phase != now.Status.Phase || (old.DeletionTimestamp == nil) != (now.DeletionTimestamp == nil)
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
