package agreement

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"karpenter/api/v1alpha5"
	"karpenter/internal/core/label"
	"karpenter/internal/core/reason"
	"karpenter/internal/core/world"
)

// complete looks for a place for every pod that the plan left pending. The
// judge must be in the cluster that the plan makes.
func (t *trial) complete(j *Judge) *Disagreement {
	var candidates []candidate
	asked := false
	for _, u := range t.plan.Unplaced {
		if len(u.Reasons) > 0 && u.Reasons[0].Code() == (reason.NotUnderstood{}).Code() {
			continue
		}
		if !asked {
			candidates, asked = t.candidates(), true
		}
		if d := t.couldGo(j, u.Pod, candidates); d != nil {
			return d
		}
	}
	return nil
}

func (t *trial) couldGo(j *Judge, name world.ObjectName, candidates []candidate) *Disagreement {
	bad := func(rule, format string, args ...any) *Disagreement {
		return &Disagreement{"complete", rule, fmt.Sprintf("pod %s is left pending, but would fit on ", name) + fmt.Sprintf(format, args...)}
	}
	q := j.ask(unbound(t.pod(name)))
	for _, p := range t.places {
		info, err := j.node(p.node.Name)
		if err != nil {
			return bad("harness", "%v", err)
		}
		if q.on(info) == "" {
			return bad("existing", "node %s, which exists", p.node.Name)
		}
	}
	for i := range t.machines {
		if m := &t.machines[i]; t.roomLeft(q, m) {
			return bad("planned", "planned machine %s of pool %s, whatever it becomes", m.claim.Name, m.planned.Pool)
		}
	}
	for _, c := range candidates {
		if why := q.on(c.node); why == "" {
			return bad("new", "a new %s in %s (%s) of pool %s", c.option.kind.Name, c.option.zone, c.option.market, c.pool)
		}
	}
	return nil
}

// roomLeft reports whether every option of a planned machine has room for one
// more pod.
func (t *trial) roomLeft(q *question, m *machine) bool {
	for _, o := range m.all {
		n := machineNode(m.claim, o, t.Region, m.claim.Name)
		on := t.daemonPods(n)
		for _, p := range m.planned.Pods {
			on = append(on, unbound(t.pod(p)))
		}
		if q.on(imagine(n, on)) != "" {
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
						out = append(out, candidate{p.Name, at, imagine(n, t.daemonPods(n))})
					}
				}
			}
		}
	}
	return out
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
