package agreement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"karpenter/internal/core/label"
)

// csiNode is what the CSI drivers of a node will have told once it is ready.
func (c *Cluster) csiNode(n *corev1.Node) *storagev1.CSINode {
	out := csiNode(n.Name)
	for i := range c.CSINodes {
		if c.CSINodes[i].Name == n.Name {
			out = *c.CSINodes[i].DeepCopy()
		}
	}
	exists := slices.ContainsFunc(c.Nodes, func(o corev1.Node) bool {
		return o.Name == n.Name && (o.Labels[label.Provisioner] == "" && c.claimOf(&o) == nil || o.Labels[label.Initialized] == "true")
	})
	if kind := c.kind(n.Labels[label.InstanceType]); kind != nil && !exists {
		for _, l := range kind.AttachLimits {
			at := slices.IndexFunc(out.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == l.Name })
			if at < 0 {
				at = len(out.Spec.Drivers)
				out.Spec.Drivers = append(out.Spec.Drivers, storagev1.CSINodeDriver{Name: l.Name, NodeID: n.Name})
			}
			if d := &out.Spec.Drivers[at]; d.Allocatable == nil {
				d.Allocatable = &storagev1.VolumeNodeResources{Count: new(int32(l.Value))}
			}
		}
	}
	return &out
}

// allClaims are the claims as the controllers of Kubernetes leave them: with those
// that they make for ephemeral volumes, and with the default class.
func (c *Cluster) allClaims() []*corev1.PersistentVolumeClaim {
	var out []*corev1.PersistentVolumeClaim
	known := map[string]bool{}
	for i := range c.VolumeClaims {
		known[c.VolumeClaims[i].Namespace+"/"+c.VolumeClaims[i].Name] = true
		out = append(out, &c.VolumeClaims[i])
	}
	for i := range c.Pods {
		p := &c.Pods[i]
		for j := range p.Spec.Volumes {
			if v := &p.Spec.Volumes[j]; v.Ephemeral != nil && !known[p.Namespace+"/"+p.Name+"-"+v.Name] {
				out = append(out, ephemeralClaim(p, v))
			}
		}
	}
	class := slices.IndexFunc(c.Classes, func(s storagev1.StorageClass) bool { return s.Annotations[defaultClass] == "true" })
	for i, pvc := range out {
		if class >= 0 && pvc.Spec.StorageClassName == nil {
			out[i] = pvc.DeepCopy()
			out[i].Spec.StorageClassName = &c.Classes[class].Name
		}
	}
	return out
}
