package agreement

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"

	karpv1 "karpenter/api/v1"
	"karpenter/api/v1alpha5"
	"karpenter/internal/core/label"
	"karpenter/internal/core/reason"
	"karpenter/internal/core/world"
)

// complete looks for a place for every pod that the plan left pending. The
// judge must be in the cluster that the plan makes.
func (t *trial) complete(j *Judge) (*Disagreement, error) {
	var candidates []candidate
	asked := false
	for _, u := range t.plan.Unplaced {
		if len(u.Reasons) > 0 && u.Reasons[0].Code() == (reason.NotUnderstood{}).Code() {
			continue
		}
		if !asked {
			candidates, asked = t.candidates(), true
		}
		if d, err := t.couldGo(j, u.Pod, candidates); d != nil || err != nil {
			return d, err
		}
	}
	return nil, nil
}

func (t *trial) couldGo(j *Judge, name world.ObjectName, candidates []candidate) (*Disagreement, error) {
	incomplete := func(rule, format string, args ...any) (*Disagreement, error) {
		return &Disagreement{"complete", rule, fmt.Sprintf("pod %s is left pending, but would fit on %s", name, fmt.Sprintf(format, args...))}, nil
	}
	q := j.ask(unbound(t.pod(name)))
	for _, p := range t.places {
		info, err := j.node(p.node.Name)
		if err != nil {
			return nil, err
		}
		if q.on(info) == "" && !p.open {
			return incomplete("existing", "node %s, which exists or is on its way", p.node.Name)
		}
	}
	for i := range t.machines {
		if m := &t.machines[i]; t.roomLeft(q, m.claim, m.all, m.planned.Pods) {
			return incomplete("planned", "planned machine %s of pool %s, whichever of %d options it becomes", m.claim.Name, m.planned.Pool, len(m.all))
		}
	}
	for _, c := range candidates {
		if q.on(c.node) == "" {
			return incomplete("new", "a new %s in %s (%s) of pool %s", c.option.kind.Name, c.option.zone, c.option.market, c.pool)
		}
	}
	return nil, nil
}

// roomLeft reports whether every option of a record has room for one more pod
// beside those planned for it.
func (t *trial) roomLeft(q *question, claim *karpv1.NodeClaim, all []option, pods []world.ObjectName) bool {
	for _, o := range all {
		n := machineNode(claim, o, t.Region, claim.Name)
		on := t.daemonPods(n)
		for _, p := range pods {
			on = append(on, unbound(t.pod(p)))
		}
		if info := withDaemons(n, on); info == nil || q.on(info) != "" {
			return false
		}
	}
	return true
}

// candidate is a machine that could still be bought.
type candidate struct {
	pool   string
	option option
	node   fwk.NodeInfo // with its daemon pods
}

// candidates are all machines that ready Provisioners could still buy within
// their limits: every type, zone and market that is available, with every way
// to decide the labels that are open.
func (t *trial) candidates() []candidate {
	var out []candidate
	left := t.remaining()
	for i := range t.Provisioners {
		p := &t.Provisioners[i]
		if !ready(p) {
			continue
		}
		reqs, labelings := demands(p), t.labelings(p)
		for k := range t.Types {
			kind := &t.Types[k]
			if exceeds(kind, left[p.Name]) {
				continue
			}
			for _, o := range kind.Offerings {
				if !o.Available {
					continue
				}
				for _, labels := range labelings {
					at := option{kind, o.Zone, o.CapacityType}
					if n := t.newNode(p, at, labels); n != nil && meets(n.Labels, reqs) {
						if info := withDaemons(n, t.daemonPods(n)); info != nil {
							out = append(out, candidate{p.Name, at, info})
						}
					}
				}
			}
		}
	}
	return out
}

// withDaemons is an empty node with its daemon pods, or nil if they do not all
// fit: such a node is not to be bought.
func withDaemons(n *corev1.Node, daemons []*corev1.Pod) fwk.NodeInfo {
	info := framework.NewNodeInfo()
	info.SetNode(n)
	for _, p := range daemons {
		if len(noderesources.Fits(p, info, nil, noderesources.ResourceRequestsOptions{EnablePodLevelResources: true})) > 0 {
			return nil
		}
		info.AddPod(p)
	}
	return info
}

func exceeds(kind *world.InstanceType, left map[string]int64) bool {
	for name, n := range left {
		if size := kind.Capacity.Get(name); size > 0 && size > n {
			return true
		}
	}
	return false
}

// newNode is a node that the Provisioner could have, written down from the
// Provisioner itself; nil if one of its labels contradicts the option. A label
// that is well known is the machine's to have, not the Provisioner's to give.
func (t *trial) newNode(p *v1alpha5.Provisioner, o option, labels map[string]string) *corev1.Node {
	n := &corev1.Node{}
	n.Name = "candidate"
	n.Labels = cloudLabels(o, t.Region)
	for k, v := range labels {
		if have, ok := n.Labels[k]; ok && have != v || !ok && k != label.Provisioner && label.WellKnown(k) {
			return nil
		}
		n.Labels[k] = v
	}
	n.Labels["kubernetes.io/hostname"] = n.Name
	n.Labels["karpenter.sh/registered"], n.Labels["karpenter.sh/initialized"] = "true", "true"
	for _, taint := range p.Spec.Taints {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: taint.Key, Value: taint.Value, Effect: taint.Effect})
	}
	n.Status.Capacity, n.Status.Allocatable = list(o.kind.Capacity), list(o.kind.Allocatable)
	return n
}

func ready(p *v1alpha5.Provisioner) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == v1alpha5.ConditionReady {
			return c.Status == "True"
		}
	}
	return false
}
