package agreement

import (
	corev1 "k8s.io/api/core/v1"
)

// gates hold some pods back: nothing is to be bought for them, whatever their
// condition says.
func gates(d *draft) {
	for i := range d.Pods {
		p := &d.Pods[i]
		if p.Spec.NodeName == "" && p.Status.NominatedNodeName == "" && !d.isPromised(nameOf(p)) && d.chance(0.02) {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/wait"}}
		}
	}
}

// nominations are nodes on which the scheduler keeps room for a pod, as after a
// preemption.
func nominations(d *draft) {
	for i := range d.Nodes {
		n := &d.Nodes[i]
		if n.DeletionTimestamp != nil || !d.chance(0.1) {
			continue
		}
		for j := range d.Pods {
			p := &d.Pods[j]
			if p.Spec.NodeName != "" || d.isPromised(nameOf(p)) || p.Status.NominatedNodeName != "" || !d.chance(0.2) || len(p.Spec.Volumes) > 0 {
				continue
			}
			if at := settled(n, d.claimOf(n)).node; daemonPod(asDaemon(p), at) != nil && d.hasRoom(at, p) {
				p.Status.NominatedNodeName = n.Name
				break
			}
		}
	}
}

// hasRoom reports whether the pod fits on the node beside what is bound and
// will be.
func (d *draft) hasRoom(n *corev1.Node, p *corev1.Pod) bool {
	all := append(d.daemonPods(n), p)
	for i := range d.Pods {
		if q := &d.Pods[i]; q.Spec.NodeName == n.Name && q.Status.Phase != corev1.PodSucceeded {
			all = append(all, q)
		}
	}
	return withDaemons(n, all) != nil
}

// priorities differ in some clusters: pods of one app are more important.
func priorities(d *draft) {
	if !d.chance(0.15) {
		return
	}
	app := pick(d, apps)
	for i := range d.Pods {
		if p := &d.Pods[i]; p.Labels["app"] == app {
			p.Spec.Priority = new(int32(1000))
		}
	}
}
