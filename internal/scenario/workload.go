package scenario

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// workload is an object that stands for a number of equal pods.
type workload struct {
	meta     metav1.ObjectMeta
	owner    metav1.OwnerReference
	replicas int32
	template corev1.PodTemplateSpec
	// labels that the controller of the kind puts on its pods.
	labels map[string]string
	// volumes are templates of claims, one of each for every pod.
	volumes []corev1.PersistentVolumeClaim
}

// workloadOf recognises the kinds that make pods. A number of replicas that is
// not written counts as one, as the API server would fill it in.
func workloadOf(obj runtime.Object) (workload, bool) {
	one := int32(1)
	count := func(n *int32) int32 {
		if n == nil {
			n = &one
		}
		return *n
	}
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return workload{
			meta: o.ObjectMeta, owner: owner("apps/v1", "ReplicaSet", o.Name), replicas: count(o.Spec.Replicas), template: o.Spec.Template,
			labels: map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "new"},
		}, true
	case *appsv1.ReplicaSet:
		return workload{meta: o.ObjectMeta, owner: owner("apps/v1", "ReplicaSet", o.Name), replicas: count(o.Spec.Replicas), template: o.Spec.Template}, true
	case *appsv1.StatefulSet:
		return workload{
			meta: o.ObjectMeta, owner: owner("apps/v1", "StatefulSet", o.Name), replicas: count(o.Spec.Replicas), template: o.Spec.Template,
			volumes: o.Spec.VolumeClaimTemplates,
		}, true
	case *corev1.ReplicationController:
		if o.Spec.Template == nil {
			return workload{}, false
		}
		return workload{meta: o.ObjectMeta, owner: owner("v1", "ReplicationController", o.Name), replicas: count(o.Spec.Replicas), template: *o.Spec.Template}, true
	case *batchv1.Job:
		return workload{meta: o.ObjectMeta, owner: owner("batch/v1", "Job", o.Name), replicas: count(o.Spec.Parallelism), template: o.Spec.Template}, true
	}
	return workload{}, false
}

func owner(apiVersion, kind, name string) metav1.OwnerReference {
	controller := true
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(kind + "/" + name), Controller: &controller}
}

// mostReplicas is more than a cluster can hold; a greater number is a slip.
const mostReplicas = 200_000

// pods are the pods of the workload, named <name>-0, <name>-1, ….
func (w workload) pods() ([]*corev1.Pod, error) {
	if w.replicas < 0 || w.replicas > mostReplicas {
		return nil, fmt.Errorf("the number of pods must be from 0 to %d, not %d", mostReplicas, w.replicas)
	}
	pods := make([]*corev1.Pod, 0, w.replicas)
	for i := range w.replicas {
		p := &corev1.Pod{ObjectMeta: *w.template.ObjectMeta.DeepCopy(), Spec: *w.template.Spec.DeepCopy()}
		p.Namespace, p.Name = w.meta.Namespace, w.podName(i)
		p.OwnerReferences = []metav1.OwnerReference{w.owner}
		for key, value := range w.labels {
			metav1.SetMetaDataLabel(&p.ObjectMeta, key, value)
		}
		for _, v := range w.volumes {
			source := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: v.Name + "-" + p.Name}}
			p.Spec.Volumes = slices.DeleteFunc(p.Spec.Volumes, func(o corev1.Volume) bool { return o.Name == v.Name })
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: v.Name, VolumeSource: source})
		}
		pods = append(pods, p)
	}
	return pods, nil
}

// claims are the claims that are made for the pods, named <template>-<pod>.
func (w workload) claims() []*corev1.PersistentVolumeClaim {
	var out []*corev1.PersistentVolumeClaim
	for i := range w.replicas {
		for _, v := range w.volumes {
			c := v.DeepCopy()
			c.Namespace, c.Name = w.meta.Namespace, v.Name+"-"+w.podName(i)
			out = append(out, c)
		}
	}
	return out
}

func (w workload) podName(i int32) string { return fmt.Sprintf("%s-%d", w.meta.Name, i) }
