package agreement

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "karpenter/api/v1"
	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/convert"
	"karpenter/internal/kube/dialect"
)

// daemons are DaemonSets; their pods ask for what other pods may ask for too.
func daemons(d *draft) {
	count := d.between(0, 3) - 1
	for i := range count {
		name := fmt.Sprintf("daemon-%d", i)
		template := d.daemonTemplate(name, count == 1)
		for j := range template.Spec.Containers {
			template.Spec.Containers[j].Resources = corev1.ResourceRequirements{}
		}
		template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
			corev1.ResourceCPU: *milli(d.between(1, 20) * 50), corev1.ResourceMemory: *mebi(d.between(1, 20) * 50),
		}
		d.DaemonSets = append(d.DaemonSets, appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: template.Namespace, Name: name, UID: types.UID(name)},
			Spec: appsv1.DaemonSetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: template.Labels},
				Template: template,
			},
		})
	}
}

// daemonTemplate leaves away what binds pods of one set to each other: a daemon
// pod runs on its node or not at all. Rules and ports are for one that is alone:
// of several that conflict, whichever comes first would run.
func (d *draft) daemonTemplate(name string, alone bool) template {
	t := d.template()
	t.Spec.TopologySpreadConstraints, t.Spec.Volumes = nil, nil
	if !alone {
		t.Spec.HostNetwork = false
		for i := range t.Spec.Containers {
			t.Spec.Containers[i].Ports = nil
		}
	}
	if a := t.Spec.Affinity; a != nil {
		a.PodAffinity = nil
		if !alone {
			a.PodAntiAffinity = nil
		}
		if b := a.PodAntiAffinity; b != nil {
			b.RequiredDuringSchedulingIgnoredDuringExecution = slices.DeleteFunc(b.RequiredDuringSchedulingIgnoredDuringExecution,
				func(t corev1.PodAffinityTerm) bool { return t.TopologyKey != label.Hostname })
		}
	}
	if d.chance(0.7) {
		t.Namespace, t.Labels = "kube-system", map[string]string{"app": name}
	}
	return t
}

// boundTemplate is a pod that was scheduled before, and what others have to
// respect of it.
func (d *draft) boundTemplate() template {
	t := d.template()
	t.Spec = corev1.PodSpec{Containers: d.containers()}
	for _, c := range constraints {
		if (c.name == "pod anti-affinity" || c.name == "host ports" || c.name == "volumes") && d.chance(d.likely[c.name]/2) {
			c.add(d, &t)
		}
	}
	for i := range t.Spec.Volumes { // whoever runs has its volumes
		t.Spec.Volumes[i].VolumeSource = corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: own + "bound"}}
	}
	return t
}

// stage is how far a machine of ours has come.
type stage int

const (
	initialized stage = iota
	registered        // startup taints, and resources that are not reported yet
	joined            // the kubelet has made its Node, nothing is put right yet
	launched          // the instance exists, its Node does not
	begun             // the record exists, nothing was bought
	deleting          // initialised, and on its way out
	died              // initialised, and its kubelet does not answer
)

// machines are what the Provisioners have bought before.
func machines(d *draft) {
	for i := range d.between(0, 5) - 1 {
		claim, ok := d.claim(fmt.Sprintf("claim-%d", i))
		if !ok {
			continue
		}
		at := pick(d, []stage{initialized, initialized, initialized, registered, joined, launched, begun, deleting, died})
		if at == begun {
			d.Claims = append(d.Claims, *claim)
			continue
		}
		s := pick(d, survivors(d.Cluster, claim))
		buy(claim, s, d.Region)
		claim.Status.ProviderID = fmt.Sprintf("aws:///%s/i-%d", s.zone, i)
		n := machineNode(claim, s, d.Region, fmt.Sprintf("own-%d", i))
		if at != launched {
			d.age(n, claim, at)
			d.Nodes = append(d.Nodes, *n)
		}
		d.Claims = append(d.Claims, *claim)
	}
}

// claim writes the record of a machine that a Provisioner could have bought, as
// the planner would.
func (d *draft) claim(name string) (*karpv1.NodeClaim, bool) {
	p := pick(d, d.Provisioners)
	pool, err := convert.Pool(&p)
	if err != nil {
		return nil, false
	}
	open, ok := openLabels(d, &p)
	if !ok {
		return nil, false
	}
	m := convert.Machine{Labels: open, Requirements: pool.Requirements}
	m.Requirements = append(slices.Clone(m.Requirements), label.FromLabels(open)...)
	claim := convert.Claim(pool, m)
	claim.Name, claim.UID, claim.CreationTimestamp = name, types.UID(name), ago(30*time.Minute)
	all := slices.DeleteFunc(survivors(d.Cluster, claim), func(o option) bool {
		n := machineNode(claim, o, d.Region, name)
		return withDaemons(n, d.daemonPods(n)) == nil
	})
	if len(all) == 0 {
		return nil, false
	}
	// The planner names the types that are left; here a few of them.
	var kinds []string
	for _, s := range some(d, all, 4) {
		kinds = append(kinds, s.kind.Name)
	}
	m.Requirements = append(m.Requirements, label.Requirement{Key: label.InstanceType, Op: label.In, Values: kinds})
	claim.Spec.Requirements = convert.Claim(pool, m).Spec.Requirements
	return claim, true
}

// age takes a finished node back to an earlier stage, or on to a later one.
func (d *draft) age(n *corev1.Node, claim *karpv1.NodeClaim, at stage) {
	switch at {
	case registered, joined:
		delete(n.Labels, label.Initialized)
		n.Spec.Taints = append(n.Spec.Taints, coreTaints(claim.Spec.StartupTaints)...)
		if d.chance(0.5) {
			delete(n.Status.Allocatable, "nvidia.com/gpu")
			delete(n.Status.Capacity, "nvidia.com/gpu")
		}
		if at == joined {
			for k := range claim.Labels {
				if _, cloud := launchLabels[k]; !cloud {
					delete(n.Labels, k)
				}
			}
			delete(n.Labels, label.Registered)
			n.Spec.Taints = []corev1.Taint{dialect.TaintUnregistered, {Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}
		}
	case deleting:
		gone := ago(time.Minute)
		claim.DeletionTimestamp, n.DeletionTimestamp = &gone, &gone
		n.Finalizers = []string{dialect.FinalizerTermination}
		n.Spec.Taints = append(n.Spec.Taints, dialect.TaintDisrupted)
	case died:
		n.Spec.Taints = append(n.Spec.Taints,
			corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule}, corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute})
	}
}

// foreignNodes belong to nobody here; some are cordoned.
func foreignNodes(d *draft) {
	for i := range d.between(0, 4) - 1 {
		t := pick(d, d.Types)
		o := pick(d, t.Offerings)
		name := fmt.Sprintf("node-%d", i)
		n := corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: cloudLabels(option{&t, o.Zone, o.CapacityType}, d.Region), CreationTimestamp: ago(time.Hour)},
			Spec:       corev1.NodeSpec{ProviderID: "other:///" + name, Taints: d.taints(0.2)},
			Status:     corev1.NodeStatus{Capacity: list(t.Capacity), Allocatable: list(t.Allocatable)},
		}
		delete(n.Labels, label.CapacityType)
		n.Labels[label.Hostname] = name
		for _, w := range vocabulary {
			if w.custom && d.chance(0.3) {
				n.Labels[w.key] = pick(d, w.values)
			}
		}
		if d.chance(0.2) {
			n.Status.Allocatable["example.com/dongle"] = *count(2)
		}
		if d.chance(0.1) {
			n.Spec.Unschedulable = true
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
		}
		d.Nodes = append(d.Nodes, n)
	}
}

// boundPods fill existing nodes in part; some have finished.
func boundPods(d *draft) {
	for i := range d.Nodes {
		n := &d.Nodes[i]
		if len(n.Spec.Taints) > 0 && n.Spec.Taints[0].Key == dialect.TaintUnregistered.Key {
			continue
		}
		for _, ds := range d.DaemonSets {
			if p := daemonPod(&ds, n); p != nil && d.chance(0.6) {
				p.Spec.NodeName, p.Status.Phase = n.Name, corev1.PodRunning
				d.Pods = append(d.Pods, *p)
			}
		}
		for range d.between(0, 4) {
			p := d.newPod(d.boundTemplate())
			p.Spec.NodeName, p.Status.Phase = n.Name, corev1.PodRunning
			if d.chance(0.1) {
				p.Status.Phase = corev1.PodSucceeded
			} else if d.chance(0.1) {
				gone := ago(time.Minute)
				p.DeletionTimestamp = &gone
			}
			d.Pods = append(d.Pods, *p)
		}
	}
}

// promises gives some pending pods to machines that are still booting, as an
// earlier plan would have.
func promises(d *draft) {
	for i := range d.Claims {
		claim := &d.Claims[i]
		if claim.DeletionTimestamp != nil || d.inUse(claim) || !d.chance(0.5) {
			continue
		}
		var names []world.ObjectName
		for j := range d.Pods {
			if p := &d.Pods[j]; p.Spec.NodeName == "" && d.chance(0.1) && len(p.Spec.Volumes) == 0 && d.wouldHold(claim, p) {
				names = append(names, nameOf(p))
				break
			}
		}
		if len(names) > 0 {
			claim.Annotations[dialect.AnnotationPlannedPods] = names[0].String()
		}
	}
}

// isPromised reports whether a machine was bought for the pod.
func (d *draft) isPromised(name world.ObjectName) bool {
	return slices.ContainsFunc(d.Claims, func(c karpv1.NodeClaim) bool { return c.Annotations[dialect.AnnotationPlannedPods] == name.String() })
}

// inUse reports whether pods run on the record's machine.
func (d *draft) inUse(claim *karpv1.NodeClaim) bool {
	return slices.ContainsFunc(d.Nodes, func(n corev1.Node) bool {
		return n.Spec.ProviderID == claim.Status.ProviderID && (n.Labels[label.Initialized] == "true" ||
			slices.ContainsFunc(d.Pods, func(p corev1.Pod) bool { return p.Spec.NodeName == n.Name }))
	})
}
