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
	out := feed.Reconciler{Reconciler: c, Name: "claim", Workers: concurrency, Sources: []feed.Source{
		{Kind: &v1.NodeClaim{}},
		// Most updates of Nodes and pods are heartbeats and the news of containers.
		{Kind: &corev1.Node{}, Map: c.ofNode, Matters: feed.Updated(nodeChanged)},
		{Kind: &corev1.Pod{}, Map: c.ofPod, Matters: feed.Updated(podChanged)},
	}}
	for _, d := range c.Kinds {
		out.Sources = append(out.Sources,
			feed.Source{Kind: d.Pool(), Map: c.of(func(o client.Object, claim *v1.NodeClaim) bool { return claim.Labels[d.PoolLabel] == o.GetName() }), Matters: respecified},
			feed.Source{Kind: d.Class(), Map: c.of(func(o client.Object, claim *v1.NodeClaim) bool {
				return claim.Spec.NodeClassRef.Kind == d.ClassKind && claim.Spec.NodeClassRef.Name == o.GetName()
			}), Matters: respecified})
	}
	return out
}

// respecified: an object that is new is no news to machines.
func respecified(before, after client.Object) bool {
	return before != nil && after != nil && before.GetGeneration() != after.GetGeneration()
}

// of names the machines that the object concerns.
func (c *Controller) of(concerns func(client.Object, *v1.NodeClaim) bool) func(context.Context, client.Object) []reconcile.Request {
	return func(ctx context.Context, o client.Object) (out []reconcile.Request) {
		var all v1.NodeClaimList
		if err := c.Ledger.Client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
			return nil // every record is looked at again by itself
		}
		for i := range all.Items {
			if concerns(o, &all.Items[i]) {
				out = append(out, requests(&all.Items[i], nil)...)
			}
		}
		return out
	}
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
