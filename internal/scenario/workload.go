package scenario

import (
	"fmt"

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
		return workload{o.ObjectMeta, owner("apps/v1", "ReplicaSet", o.Name), count(o.Spec.Replicas), o.Spec.Template}, true
	case *appsv1.ReplicaSet:
		return workload{o.ObjectMeta, owner("apps/v1", "ReplicaSet", o.Name), count(o.Spec.Replicas), o.Spec.Template}, true
	case *appsv1.StatefulSet:
		return workload{o.ObjectMeta, owner("apps/v1", "StatefulSet", o.Name), count(o.Spec.Replicas), o.Spec.Template}, true
	case *corev1.ReplicationController:
		if o.Spec.Template == nil {
			return workload{}, false
		}
		return workload{o.ObjectMeta, owner("v1", "ReplicationController", o.Name), count(o.Spec.Replicas), *o.Spec.Template}, true
	case *batchv1.Job:
		return workload{o.ObjectMeta, owner("batch/v1", "Job", o.Name), count(o.Spec.Parallelism), o.Spec.Template}, true
	}
	return workload{}, false
}

func owner(apiVersion, kind, name string) metav1.OwnerReference {
	controller := true
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(kind + "/" + name), Controller: &controller}
}

// pods are the pods of the workload, named <name>-0, <name>-1, ….
func (w workload) pods() []*corev1.Pod {
	pods := make([]*corev1.Pod, 0, w.replicas)
	for i := range w.replicas {
		meta := *w.template.ObjectMeta.DeepCopy()
		meta.Namespace = w.meta.Namespace
		meta.Name = fmt.Sprintf("%s-%d", w.meta.Name, i)
		meta.OwnerReferences = []metav1.OwnerReference{w.owner}
		pods = append(pods, &corev1.Pod{ObjectMeta: meta, Spec: *w.template.Spec.DeepCopy()})
	}
	return pods
}
