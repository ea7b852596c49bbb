package intent

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apiv1 "karpenter/api/v1"
	"karpenter/internal/kube/dialect"
)

// Mark writes the intent on the NodeClaim and keeps new pods off the Node, in
// this order, so that a taint is never left without a word why. Both must be as
// they were read, or the answer is a conflict. node is nil where none has
// joined.
func Mark(ctx context.Context, c client.Client, claim *apiv1.NodeClaim, node *corev1.Node, in Intent) error {
	before := claim.DeepCopy()
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, Annotation, in.String())
	if err := c.Patch(ctx, claim, locked(before)); err != nil {
		return err
	}
	if node == nil || Marked(node) {
		return nil
	}
	old := node.DeepCopy()
	node.Spec.Taints = append(slices.Clone(node.Spec.Taints), dialect.TaintDisrupted)
	return c.Patch(ctx, node, locked(old))
}

// Unmark opens the Node again and takes the intent back, in this order. What is
// gone, or going for good, is left alone. notes are written on the NodeClaim
// together with that.
func Unmark(ctx context.Context, c client.Client, claim *apiv1.NodeClaim, node *corev1.Node, notes ...func(*apiv1.NodeClaim)) error {
	if claim.DeletionTimestamp != nil || node != nil && node.DeletionTimestamp != nil {
		return nil
	}
	if node != nil && Marked(node) {
		old := node.DeepCopy()
		node.Spec.Taints = slices.DeleteFunc(slices.Clone(node.Spec.Taints), isMark)
		if err := client.IgnoreNotFound(c.Patch(ctx, node, locked(old))); err != nil {
			return err
		}
	}
	if _, marked := claim.Annotations[Annotation]; !marked {
		return nil
	}
	before := claim.DeepCopy()
	delete(claim.Annotations, Annotation)
	for _, note := range notes {
		note(claim)
	}
	return client.IgnoreNotFound(c.Patch(ctx, claim, locked(before)))
}

// Marked reports whether the Node is closed to new pods because it was chosen.
func Marked(n *corev1.Node) bool { return slices.ContainsFunc(n.Spec.Taints, isMark) }

func isMark(t corev1.Taint) bool {
	return t.Key == dialect.TaintDisrupted.Key && t.Effect == dialect.TaintDisrupted.Effect
}

func locked(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}
