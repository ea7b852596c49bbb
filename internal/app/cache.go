package app

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/internal/kube/convert"
	"karpenter/internal/kube/nominate"
)

// cacheOptions keep the cache small: nothing is kept that no decision looks at.
// Objects are patched, never written back whole, so what was left out stays as
// it is in the API server.
func cacheOptions() cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:                   {Transform: slimPod},
			&corev1.Node{}:                  {Transform: slimNode},
			&corev1.Namespace{}:             {Transform: slimNamespace},
			&corev1.PersistentVolumeClaim{}: {Transform: slimClaim},
			&corev1.PersistentVolume{}:      {Transform: slimVolume},
			&storagev1.StorageClass{}:       {Transform: slimClass},
			&storagev1.CSINode{}:            {Transform: slimCSINode},
		},
	}
}

func slimPod(o any) (any, error) {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}
	nominate.Strip(p)
	delete(p.Annotations, corev1.LastAppliedConfigAnnotation)
	p.Status.ContainerStatuses = resized(p.Spec.Containers, p.Status.ContainerStatuses)
	p.Status.InitContainerStatuses = resized(p.Spec.InitContainers, p.Status.InitContainerStatuses)
	p.Status.EphemeralContainerStatuses, p.Spec.EphemeralContainers = nil, nil
	p.Spec.Volumes = slices.DeleteFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
		return v.ConfigMap != nil || v.Secret != nil || v.Projected != nil || v.DownwardAPI != nil || v.EmptyDir != nil || v.HostPath != nil
	})
	for _, list := range [][]corev1.Container{p.Spec.Containers, p.Spec.InitContainers} {
		for i := range list {
			c := &list[i]
			list[i] = corev1.Container{Name: c.Name, Ports: c.Ports, Resources: c.Resources, RestartPolicy: c.RestartPolicy}
		}
	}
	return p, nil
}

// resized keeps what the kubelet has given to containers that are being resized.
func resized(containers []corev1.Container, statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for _, s := range statuses {
		i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == s.Name })
		if i < 0 {
			continue
		}
		kept := corev1.ContainerStatus{Name: s.Name, AllocatedResources: s.AllocatedResources}
		if s.Resources != nil {
			kept.Resources = &corev1.ResourceRequirements{Requests: s.Resources.Requests}
		}
		asked := containers[i].Resources.Requests
		if differ(asked, kept.AllocatedResources) || kept.Resources != nil && differ(asked, kept.Resources.Requests) {
			out = append(out, kept)
		}
	}
	return out
}

func differ(asked, given corev1.ResourceList) bool {
	for name, q := range given {
		if a := asked[name]; q.Cmp(a) != 0 {
			return true
		}
	}
	return false
}

// slimMeta keeps of an object's metadata what tells it apart, and those
// annotations that are looked at.
func slimMeta(m metav1.ObjectMeta, annotations ...string) metav1.ObjectMeta {
	out := metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, Labels: m.Labels,
		CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp, OwnerReferences: m.OwnerReferences,
	}
	for _, key := range annotations {
		if v, ok := m.Annotations[key]; ok {
			metav1.SetMetaDataAnnotation(&out, key, v)
		}
	}
	return out
}

func slimNamespace(o any) (any, error) {
	if n, ok := o.(*corev1.Namespace); ok {
		return &corev1.Namespace{ObjectMeta: slimMeta(n.ObjectMeta)}, nil
	}
	return o, nil
}

func slimClaim(o any) (any, error) {
	c, ok := o.(*corev1.PersistentVolumeClaim)
	if !ok {
		return o, nil
	}
	c.ObjectMeta = slimMeta(c.ObjectMeta, corev1.BetaStorageClassAnnotation, convert.AnnotationSelectedNode)
	c.Labels = nil
	c.Status = corev1.PersistentVolumeClaimStatus{Phase: c.Status.Phase}
	return c, nil
}

func slimVolume(o any) (any, error) {
	v, ok := o.(*corev1.PersistentVolume)
	if !ok {
		return o, nil
	}
	v.ObjectMeta = slimMeta(v.ObjectMeta, corev1.BetaStorageClassAnnotation)
	if csi := v.Spec.CSI; csi != nil {
		v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: csi.Driver, VolumeHandle: csi.VolumeHandle}
	}
	v.Status = corev1.PersistentVolumeStatus{Phase: v.Status.Phase}
	return v, nil
}

func slimClass(o any) (any, error) {
	if c, ok := o.(*storagev1.StorageClass); ok {
		c.ManagedFields, c.Parameters = nil, nil
		delete(c.Annotations, corev1.LastAppliedConfigAnnotation)
	}
	return o, nil
}

func slimCSINode(o any) (any, error) {
	n, ok := o.(*storagev1.CSINode)
	if !ok {
		return o, nil
	}
	n.ObjectMeta = slimMeta(n.ObjectMeta)
	for i, d := range n.Spec.Drivers {
		n.Spec.Drivers[i] = storagev1.CSINodeDriver{Name: d.Name, Allocatable: d.Allocatable}
	}
	return n, nil
}

func slimNode(o any) (any, error) {
	if n, ok := o.(*corev1.Node); ok {
		n.ManagedFields, n.Status.Images = nil, nil
	}
	return o, nil
}
