package play

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "karpenter/api/v1"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/schedule"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/mirror"
	"karpenter/sim/rig"
)

// ideal tells what the pods of a cluster would cost if it were empty and all of
// them came at once: what Solve would buy for them.
type ideal struct {
	rig *rig.Rig
	all *mirror.Mirror
}

func newIdeal(r *rig.Rig) *ideal {
	return &ideal{r, mirror.New(empty{r.Kube.Client("world")}, func(ctx context.Context, pool world.Pool) world.Catalog {
		c, _ := r.Process.All.Provider.Catalog(ctx, pool.Class, pool.Kubelet)
		return c
	})}
}

// price per hour of the machines for all pods but those of DaemonSets, which
// come along.
func (i *ideal) price(ctx context.Context) (sum quantity.Price, err error) {
	v, err := i.all.View(ctx, i.rig.Now(), world.DefaultPolicy(), time.Second)
	if err != nil {
		return 0, err
	}
	for _, m := range schedule.Solve(v.Snapshot, schedule.Options{}).Machines {
		sum += m.Price
	}
	return sum, nil
}

// empty reads a cluster as if it had no machines, and all its pods had come just
// now.
type empty struct{ client.Reader }

// List implements [client.Reader].
func (e empty) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	switch l := list.(type) {
	case *corev1.NodeList, *karpv1.NodeClaimList:
		return nil
	case *corev1.PodList:
		var all corev1.PodList
		if err := e.Reader.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
			return err
		}
		for _, p := range all.Items {
			ref := metav1.GetControllerOfNoCopy(&p)
			daemon := ref != nil && (ref.Kind == "DaemonSet" || ref.Kind == "Node")
			if daemon || p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
				continue
			}
			p.Spec.NodeName, p.Status = "", corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, LastTransitionTime: p.CreationTimestamp}}}
			l.Items = append(l.Items, p)
		}
		return nil
	}
	return e.Reader.List(ctx, list, opts...)
}
