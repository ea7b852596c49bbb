package pool

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apiv1 "karpenter/api/v1"
	"karpenter/api/v1alpha5"
	"karpenter/internal/core/quantity"
	"karpenter/internal/kube/convert"
	"karpenter/internal/kube/dialect"
)

// show writes what the machines of the pool add up to.
func show(p client.Object, claims []apiv1.NodeClaim) {
	sum := corev1.ResourceList{}
	for i := range claims {
		for key, q := range claims[i].Status.Capacity {
			if !q.IsZero() {
				total := sum[key]
				total.Add(q)
				sum[key] = total
			}
		}
	}
	switch p := p.(type) {
	case *v1alpha5.Provisioner:
		p.Status.Resources = nil
		if len(sum) > 0 {
			p.Status.Resources = sum
		}
	case *apiv1.NodePool:
		for _, key := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods, corev1.ResourceEphemeralStorage} {
			if _, ok := sum[key]; !ok {
				sum[key] = resource.MustParse("0")
			}
		}
		nodes := int64(len(claims))
		sum[quantity.Nodes] = *resource.NewQuantity(nodes, resource.DecimalSI)
		p.Status.Resources, p.Status.Nodes = sum, &nodes
	}
}

// invalidReason is the word for an object that breaks the rules of the API.
func invalidReason(p client.Object) string {
	if _, ok := p.(*apiv1.NodePool); ok {
		return apiv1.ReasonNodePoolValidationFailed
	}
	return "Invalid"
}

// stamp writes on a NodePool the hash of what its machines are made from. Those
// of its machines that carry a hash of another version, which cannot be compared,
// get the present one, unless they have been found to differ already.
func (c *Controller) stamp(ctx context.Context, o client.Object, claims []apiv1.NodeClaim) error {
	p, ok := o.(*apiv1.NodePool)
	if !ok || p.DeletionTimestamp != nil {
		return nil
	}
	hash := convert.PoolHash(p)
	if err := c.annotate(ctx, p, hash); err != nil {
		return err
	}
	for i := range claims {
		claim := &claims[i]
		if claim.DeletionTimestamp != nil || claim.Annotations[dialect.AnnotationPoolHashVersion] == convert.PoolHashVersion {
			continue
		}
		own := hash
		if meta.IsStatusConditionTrue(claim.Status.Conditions, apiv1.ConditionDrifted) {
			own = claim.Annotations[dialect.AnnotationPoolHash]
		}
		if err := c.annotate(ctx, claim.DeepCopy(), own); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

func (c *Controller) annotate(ctx context.Context, o client.Object, hash string) error {
	before := o.DeepCopyObject().(client.Object)
	annotations := map[string]string{dialect.AnnotationPoolHash: hash, dialect.AnnotationPoolHashVersion: convert.PoolHashVersion}
	for key, value := range o.GetAnnotations() {
		if _, ours := annotations[key]; !ours {
			annotations[key] = value
		}
	}
	o.SetAnnotations(annotations)
	if equality.Semantic.DeepEqual(before, o) {
		return nil
	}
	return c.Client.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}
