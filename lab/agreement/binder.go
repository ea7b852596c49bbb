package agreement

import (
	"context"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/storage/volume"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// binder is the scheduler's framework, but for the moment before a pod is bound:
// there it plays the controllers of volumes, for which the scheduler would wait
// a second each time.
type binder struct {
	framework.Framework
	f *freely
}

// RunPreBindPlugins gives the claims of the pod volumes that its node reaches.
func (b binder) RunPreBindPlugins(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	n, known := of[*corev1.Node](b.f, node)
	if !known {
		return nil
	}
	v := shelf{b.f.feeds[reflect.TypeFor[*corev1.PersistentVolumeClaim]()].GetIndexer(), b.f.feeds[reflect.TypeFor[*corev1.PersistentVolume]()].GetIndexer(), b.f.feeds[reflect.TypeFor[*storagev1.StorageClass]()].GetIndexer()}
	if err := v.bind(pod, n, func(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
		b.f.written(pv)
		b.f.written(claim)
	}); err != nil {
		return fwk.AsStatus(err)
	}
	return nil
}

// shelf is the storage of a cluster.
type shelf struct{ claims, volumes, classes cache.Indexer }

// bind gives the claims of a pod volumes that its node reaches: free ones if there
// are any, as the scheduler does, or new ones.
func (s shelf) bind(pod *corev1.Pod, n *corev1.Node, write func(*corev1.PersistentVolume, *corev1.PersistentVolumeClaim)) error {
	chosen := map[string]*corev1.PersistentVolume{}
	for i := range pod.Spec.Volumes {
		claim := s.claim(pod, &pod.Spec.Volumes[i])
		if claim == nil || claim.Spec.VolumeName != "" || claim.Spec.StorageClassName == nil {
			continue
		}
		name := *claim.Spec.StorageClassName
		var same []*corev1.PersistentVolume
		for _, o := range s.volumes.List() {
			if pv := o.(*corev1.PersistentVolume); pv.Spec.StorageClassName == name {
				same = append(same, pv)
			}
		}
		slices.SortFunc(same, func(a, b *corev1.PersistentVolume) int { return strings.Compare(a.Name, b.Name) })
		pv, err := volume.FindMatchingVolume(claim, same, n, chosen, true, false)
		if err != nil {
			return err
		}
		if pv == nil {
			o, _, _ := s.classes.GetByKey(name)
			class, _ := o.(*storagev1.StorageClass)
			pv = provision(class, claim, n)
		}
		pv, claim = pv.DeepCopy(), claim.DeepCopy()
		chosen[pv.Name] = pv
		pv.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
		pv.Status.Phase = corev1.VolumeBound
		claim.Spec.VolumeName, claim.Status.Phase = pv.Name, corev1.ClaimBound
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volume.AnnBindCompleted, "yes")
		write(pv, claim)
	}
	return nil
}

func (s shelf) claim(pod *corev1.Pod, v *corev1.Volume) *corev1.PersistentVolumeClaim {
	name := ""
	switch {
	case v.PersistentVolumeClaim != nil:
		name = v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil:
		name = pod.Name + "-" + v.Name
	}
	o, _, _ := s.claims.GetByKey(pod.Namespace + "/" + name)
	c, _ := o.(*corev1.PersistentVolumeClaim)
	return c
}

// provision makes a volume in the zone of the node.
func provision(class *storagev1.StorageClass, claim *corev1.PersistentVolumeClaim, n *corev1.Node) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + string(claim.UID)}}
	pv.Spec = corev1.PersistentVolumeSpec{
		Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes, StorageClassName: *claim.Spec.StorageClassName,
	}
	if class == nil {
		return pv
	}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: class.Provisioner, VolumeHandle: "vol-" + string(claim.UID)}
	if zone, ok := n.Labels[ebsZone]; ok && class.Provisioner == ebs {
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: ebsZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
		}}}}
	}
	return pv
}

// of is an object that the scheduler knows, by namespace and name.
func of[T object](f *freely, key string) (out T, known bool) {
	o, known, _ := f.feeds[reflect.TypeFor[T]()].GetIndexer().GetByKey(key)
	if known {
		out = o.(T)
	}
	return out, known
}

// all are the objects of a kind that the scheduler knows, by name.
func all[T object](f *freely) []T {
	var out []T
	for _, o := range f.feeds[reflect.TypeFor[T]()].GetIndexer().List() {
		out = append(out, o.(T))
	}
	slices.SortFunc(out, func(a, b T) int { return strings.Compare(a.GetName(), b.GetName()) })
	return out
}
