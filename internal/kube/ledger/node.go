package ledger

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "karpenter/api/v1"
	"karpenter/internal/core/lifecycle"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/convert"
	"karpenter/internal/kube/dialect"
)

// Owner returns the reference that the Node of a record must carry, and no
// other: to its Provisioner in v1alpha5, else to the NodeClaim.
func Owner(claim *v1.NodeClaim) metav1.OwnerReference {
	yes := true
	if pool := metav1.GetControllerOf(claim); pool != nil && pool.Kind == dialect.KindProvisioner {
		return metav1.OwnerReference{APIVersion: pool.APIVersion, Kind: pool.Kind, Name: pool.Name, UID: pool.UID, BlockOwnerDeletion: &yes}
	}
	return metav1.OwnerReference{APIVersion: v1.GroupVersion.String(), Kind: v1.Kind, Name: claim.Name, UID: claim.UID, BlockOwnerDeletion: &yes}
}

// Facts reads a Node as it is. Claim is the record of its machine, or nil.
func Facts(n *corev1.Node, claim *v1.NodeClaim, pods []corev1.Pod) lifecycle.Node {
	out := lifecycle.Node{
		Name:          n.Name,
		ProviderID:    n.Spec.ProviderID,
		Created:       n.CreationTimestamp.Time,
		Labels:        n.Labels,
		Annotations:   n.Annotations,
		Held:          controllerutil.ContainsFinalizer(n, dialect.FinalizerTermination),
		Owned:         claim == nil || owned(n, Owner(claim)),
		Unschedulable: n.Spec.Unschedulable,
		Allocatable:   convert.Resources(n.Status.Allocatable, false),
	}
	for _, t := range n.Spec.Taints {
		out.Taints = append(out.Taints, world.Taint{Key: t.Key, Value: t.Value, Effect: world.Effect(t.Effect)})
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			out.Ready = c.Status == corev1.ConditionTrue
		}
	}
	if t := n.DeletionTimestamp; t != nil {
		out.DeletedAt = &t.Time
	}
	for i := range pods {
		out.Pods = append(out.Pods, convert.Pod(&pods[i]))
	}
	slices.SortFunc(out.Pods, func(a, b world.Pod) int { return a.Compare(b.ObjectName) })
	return out
}

func owned(n *corev1.Node, by metav1.OwnerReference) bool {
	return len(n.OwnerReferences) == 1 && n.OwnerReferences[0].UID == by.UID && n.OwnerReferences[0].Kind == by.Kind
}

// PatchNode carries a patch out, in one write, on the version that was read.
// Claim gives the owner reference; it may be nil if the patch does not ask for
// one.
func (l *Ledger) PatchNode(ctx context.Context, n *corev1.Node, claim *v1.NodeClaim, p lifecycle.NodePatch) error {
	if p.IsZero() {
		return nil
	}
	before := n.DeepCopy()
	for key, value := range p.Labels {
		metav1.SetMetaDataLabel(&n.ObjectMeta, key, value)
	}
	for key, value := range p.Annotations {
		metav1.SetMetaDataAnnotation(&n.ObjectMeta, key, value)
	}
	for _, key := range p.DropAnnotations {
		delete(n.Annotations, key)
	}
	for _, t := range p.AddTaints {
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, sameTaint(t))
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
	}
	for _, t := range p.DropTaints {
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, sameTaint(t))
	}
	if p.Hold {
		controllerutil.AddFinalizer(n, dialect.FinalizerTermination)
	}
	if p.Own && claim != nil {
		n.OwnerReferences = []metav1.OwnerReference{Owner(claim)}
	}
	if p.Cordon {
		n.Spec.Unschedulable = true
	}
	return l.Client.Patch(ctx, n, locked(before))
}

func sameTaint(t world.Taint) func(corev1.Taint) bool {
	return func(o corev1.Taint) bool { return o.Key == t.Key && string(o.Effect) == string(t.Effect) }
}

// DeleteNode asks for the end of a Node. One that is gone already is no error.
func (l *Ledger) DeleteNode(ctx context.Context, n *corev1.Node) error {
	return client.IgnoreNotFound(l.Client.Delete(ctx, n, client.Preconditions{UID: &n.UID}))
}
