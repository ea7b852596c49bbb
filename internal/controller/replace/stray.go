package replace

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	apiv1 "karpenter/api/v1"
	"karpenter/internal/kube/intent"
)

// stray opens the node of a machine that nobody has chosen any more: a person has
// taken the intent off, or a process died in the middle. An intent is written
// before the node is closed, so it is looked for once more after the node was
// seen closed.
func (c *Controller) stray(ctx context.Context, claim *apiv1.NodeClaim) error {
	node, err := c.node(ctx, claim)
	if err != nil || node == nil || !intent.Marked(node) {
		return err
	}
	if err := c.Client.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
		return client.IgnoreNotFound(err)
	}
	if _, marked, _ := intent.Read(claim.Annotations); marked {
		return nil
	}
	if err := intent.Unmark(ctx, c.Client, claim, node); err != nil {
		return fmt.Errorf("opening node %s, which nobody has chosen to go: %w", node.Name, err)
	}
	c.Log.Info("opened a node again that nobody has chosen to go", "nodeclaim", claim.Name, "node", node.Name)
	return nil
}

// unmarked: an intent was taken off.
func unmarked(before, after client.Object) bool {
	return before != nil && after != nil && before.GetAnnotations()[intent.Annotation] != "" && after.GetAnnotations()[intent.Annotation] == ""
}

// ofNode is the machine of a node.
func (c *Controller) ofNode(ctx context.Context, o client.Object) []reconcile.Request {
	var all apiv1.NodeClaimList
	if err := c.Client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the node changes again
	}
	for i := range all.Items {
		if claim := &all.Items[i]; claim.Status.NodeName == o.GetName() && claim.Annotations[intent.Annotation] == "" && claim.DeletionTimestamp == nil {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: claim.Name}}}
		}
	}
	return nil
}

func nodeNamed(name string) *corev1.Node {
	n := &corev1.Node{}
	n.Name, n.UID = name, types.UID(name) // as the kubelet does
	return n
}
