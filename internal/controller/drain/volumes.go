package drain

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/internal/core/lifecycle"
	"karpenter/internal/core/world"
)

// attachments returns the volumes that are attached to the node, with the pods
// of the node that use them. One that no pod uses any more is still attached.
func (c *Controller) attachments(ctx context.Context, p *pass) ([]lifecycle.Attachment, error) {
	var list storagev1.VolumeAttachmentList
	if err := c.Ledger.Client.List(ctx, &list); err != nil {
		return nil, err
	}
	users := map[string][]world.ObjectName{} // by PersistentVolume
	var out []lifecycle.Attachment
	for i := range list.Items {
		a := &list.Items[i]
		if a.Spec.NodeName != p.node.Name || a.Spec.Source.PersistentVolumeName == nil {
			continue
		}
		if len(users) == 0 {
			if err := c.volumes(ctx, p.pods, users); err != nil {
				return nil, err
			}
		}
		out = append(out, lifecycle.Attachment{Name: a.Name, UsedBy: users[*a.Spec.Source.PersistentVolumeName]})
	}
	slices.SortFunc(out, func(a, b lifecycle.Attachment) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// volumes adds, for each pod, the volumes it uses.
func (c *Controller) volumes(ctx context.Context, pods []corev1.Pod, users map[string][]world.ObjectName) error {
	for i := range pods {
		for _, v := range pods[i].Spec.Volumes {
			claim := ""
			switch {
			case v.PersistentVolumeClaim != nil:
				claim = v.PersistentVolumeClaim.ClaimName
			case v.Ephemeral != nil:
				claim = pods[i].Name + "-" + v.Name
			default:
				continue
			}
			pvc := &corev1.PersistentVolumeClaim{}
			err := c.Ledger.Client.Get(ctx, types.NamespacedName{Namespace: pods[i].Namespace, Name: claim}, pvc)
			if client.IgnoreNotFound(err) != nil {
				return err
			}
			if err == nil && pvc.Spec.VolumeName != "" {
				users[pvc.Spec.VolumeName] = append(users[pvc.Spec.VolumeName], name(&pods[i]))
			}
		}
	}
	return nil
}
