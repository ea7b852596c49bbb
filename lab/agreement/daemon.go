package agreement

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	daemoncontroller "k8s.io/kubernetes/pkg/controller/daemon"
)

// daemonPod asks the real DaemonSet controller whether the set runs on the
// node, and returns the pod that it would make, or nil. The pod is not bound.
func daemonPod(ds *appsv1.DaemonSet, n *corev1.Node) *corev1.Pod {
	if should, _ := daemoncontroller.NodeShouldRunDaemonPod(klog.Logger{}, n, ds); !should {
		return nil
	}
	return newDaemonPod(ds, n.Name)
}

// newDaemonPod makes the pod of a DaemonSet for a node. It is not bound.
func newDaemonPod(ds *appsv1.DaemonSet, node string) *corev1.Pod {
	yes := true
	p := daemoncontroller.NewPod(ds, "").DeepCopy()
	p.Name = ds.Name + "-" + node
	p.UID = types.UID(p.Name)
	p.CreationTimestamp = ago(0)
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: ds.Name, UID: ds.UID, Controller: &yes}}
	p.Status.Phase = corev1.PodPending
	admit(p)
	return p
}

// daemonPods are the pods of DaemonSets that will come to the node and are not
// there yet, by name: where they do not all fit, nobody can know which come.
func (c *Cluster) daemonPods(n *corev1.Node) []*corev1.Pod {
	var out []*corev1.Pod
	for i := range c.DaemonSets {
		p := daemonPod(&c.DaemonSets[i], n)
		if p != nil && !c.hasDaemonPod(&c.DaemonSets[i], n) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *corev1.Pod) int { return nameOf(a).Compare(nameOf(b)) })
	return out
}

func (c *Cluster) hasDaemonPod(ds *appsv1.DaemonSet, n *corev1.Node) bool {
	for i := range c.Pods {
		p := &c.Pods[i]
		if p.Spec.NodeName == n.Name && p.Status.Phase != corev1.PodSucceeded && metav1.IsControlledBy(p, ds) {
			return true
		}
	}
	return false
}

// bindTo makes the daemon pod one that only the node takes, the way the
// DaemonSet controller does, and leaves it to the scheduler.
func bindTo(p *corev1.Pod, node string) *corev1.Pod {
	p = p.DeepCopy()
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	if p.Spec.Affinity.NodeAffinity == nil {
		p.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	field := corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}
	p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{field}}},
	}
	return p
}

// asDaemon wraps a pod, to ask by labels and taints alone where it may run.
func asDaemon(p *corev1.Pod) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: p.Spec}}}
}
