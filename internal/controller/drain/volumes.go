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
// Those that pods of DaemonSets use, or used until they were evicted, are left
// out: nothing moves with them. A restart forgets the second kind, which costs
// the wait until they are detached.
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
		if c.ofDaemons(p, *a.Spec.Source.PersistentVolumeName, users) {
			continue
		}
		out = append(out, lifecycle.Attachment{Name: a.Name, UsedBy: users[*a.Spec.Source.PersistentVolumeName]})
	}
	slices.SortFunc(out, func(a, b lifecycle.Attachment) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// ofDaemons reports whether only pods of DaemonSets use the volume, or were the
// last to use it.
func (c *Controller) ofDaemons(p *pass, volume string, users map[string][]world.ObjectName) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	pods := users[volume]
	if len(pods) == 0 {
		return c.daemonVolumes[p.node.Name][volume]
	}
	for i := range p.in.Node.Pods {
		if o := &p.in.Node.Pods[i]; !o.IsDaemon() && slices.Contains(pods, o.ObjectName) {
			return false
		}
	}
	if c.daemonVolumes == nil {
		c.daemonVolumes = map[string]map[string]bool{}
	}
	if c.daemonVolumes[p.node.Name] == nil {
		c.daemonVolumes[p.node.Name] = map[string]bool{}
	}
	c.daemonVolumes[p.node.Name][volume] = true
	return true
}

// volume is the name of what the claim is bound to; empty if it is not, or is
// gone.
func (c *Controller) volume(ctx context.Context, namespace, claim string) (string, error) {
	pvc := &corev1.PersistentVolumeClaim{}
	err := c.Ledger.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: claim}, pvc)
	return pvc.Spec.VolumeName, client.IgnoreNotFound(err)
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
			volume, err := c.volume(ctx, pods[i].Namespace, claim)
			if err != nil {
				return err
			}
			if volume != "" {
				users[volume] = append(users[volume], name(&pods[i]))
			}
		}
	}
	return nil
}
