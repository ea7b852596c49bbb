package agreement

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"karpenter/internal/core/quantity"
	"karpenter/internal/core/schedule"
	"karpenter/internal/core/world"
)

// legal follows the plan in its order and asks the judge about every pod. The
// judge is left in the cluster that the plan makes.
func (t *trial) legal(j *Judge) *Disagreement {
	bad := func(rule, format string, args ...any) *Disagreement {
		return &Disagreement{"legal", rule, fmt.Sprintf(format, args...)}
	}
	if d := t.everyPodOnce(); d != nil {
		return d
	}
	if d := t.withinLimits(); d != nil {
		return d
	}
	j.Enter(t.nodes(), t.bound)
	for _, n := range t.nodes() {
		for _, p := range append(t.daemonPods(n), t.reserved[n.Name]...) {
			if err := j.bind(p, n.Name); err != nil {
				return bad("harness", "%v", err)
			}
		}
	}
	put := func(name world.ObjectName, n *corev1.Node) *Disagreement {
		pod := unbound(t.pod(name))
		info, err := j.node(n.Name)
		if err != nil {
			return bad("harness", "%v", err)
		}
		if why := j.ask(pod).on(info); why != "" {
			return bad("filter", "pod %s may not go on node %s: %s", name, n.Name, why)
		}
		if err := j.bind(pod, n.Name); err != nil {
			return bad("harness", "%v", err)
		}
		return nil
	}
	for _, p := range t.plan.Placements {
		at, ok := t.placeOf(p)
		if !ok {
			return bad("no-such-place", "pod %s is planned onto node %q, claim %q, which takes no pods", p.Pod, p.Node, p.Claim)
		}
		if d := put(p.Pod, at.node); d != nil {
			return d
		}
	}
	for i := range t.machines {
		if d := t.sound(&t.machines[i]); d != nil {
			return d
		}
		for _, p := range t.machines[i].planned.Pods {
			if d := put(p, t.machines[i].node); d != nil {
				return d
			}
		}
	}
	return nil
}

// everyPodOnce checks that the plan speaks of every pending pod exactly once,
// and of no other.
func (t *trial) everyPodOnce() *Disagreement {
	left := map[world.ObjectName]int{}
	for _, p := range t.view.Pending {
		left[p.ObjectName]++
	}
	for _, p := range t.plan.Placements {
		left[p.Pod]--
	}
	for _, m := range t.plan.Machines {
		if len(m.Pods) == 0 {
			return &Disagreement{"legal", "empty-machine", "a machine of pool " + m.Pool + " is bought for nobody"}
		}
		for _, p := range m.Pods {
			left[p]--
		}
	}
	for _, u := range t.plan.Unplaced {
		left[u.Pod]--
	}
	for _, p := range t.view.Pending {
		if left[p.ObjectName] != 0 {
			return &Disagreement{"legal", "once", fmt.Sprintf("pod %s is planned %d times too few", p.ObjectName, left[p.ObjectName])}
		}
		delete(left, p.ObjectName)
	}
	for name := range left {
		return &Disagreement{"legal", "once", fmt.Sprintf("pod %s is planned, but was not pending", name)}
	}
	return nil
}

// sound checks that the machine is one that its Provisioner may buy, whatever
// the cloud picks.
func (t *trial) sound(m *machine) *Disagreement {
	bad := func(rule, format string, args ...any) *Disagreement {
		return &Disagreement{"legal", rule, fmt.Sprintf("machine %s of pool %s: ", m.claim.Name, m.planned.Pool) + fmt.Sprintf(format, args...)}
	}
	p := t.provisioner(m.planned.Pool)
	if !ready(p) {
		return bad("not-ready", "its Provisioner is not ready")
	}
	for _, o := range m.all {
		labels := machineNode(m.claim, o, t.Region, m.claim.Name).Labels
		for k, v := range p.Spec.Labels {
			if labels[k] != string(v) {
				return bad("labels", "its node has %s=%q, the Provisioner says %q", k, labels[k], v)
			}
		}
	}
	if labels := m.node.Labels; !meets(labels, demands(p)) {
		return bad("requirements", "its node does not meet the Provisioner's requirements: %v", labels)
	}
	for _, o := range m.planned.Options {
		if !m.allows(o) {
			return bad("options", "option %v is not among those that the record allows", o)
		}
	}
	return nil
}

func (m *machine) allows(o schedule.Option) bool {
	for _, s := range m.all {
		if s.kind.Name == o.Type && s.zone == o.Zone && s.market == o.CapacityType {
			return true
		}
	}
	return false
}

// remaining is what may still be bought, per Provisioner and limited resource:
// the limit, less what it has, less the most that each planned machine may
// become.
func (t *trial) remaining() map[string]map[string]int64 {
	out := map[string]map[string]int64{}
	for _, p := range t.view.Pools {
		left := map[string]int64{}
		for _, l := range p.Limits {
			left[l.Name] = l.Value
		}
		out[p.Name] = left
	}
	for i := range t.Claims {
		c := &t.Claims[i]
		left := out[c.Labels["karpenter.sh/provisioner-name"]]
		for name := range left {
			if len(c.Status.Capacity) > 0 {
				left[name] -= amountOf(c.Status.Capacity, name)
			} else {
				left[name] -= most(survivors(t.Cluster, c), name)
			}
		}
	}
	for _, m := range t.machines {
		for name := range out[m.planned.Pool] {
			out[m.planned.Pool][name] -= most(m.all, name)
		}
	}
	return out
}

func most(all []option, resource string) int64 {
	var n int64
	for _, o := range all {
		n = max(n, o.kind.Capacity.Get(resource))
	}
	return n
}

func amountOf(l corev1.ResourceList, name string) int64 {
	q := l[corev1.ResourceName(name)]
	if name == quantity.CPU {
		return q.MilliValue()
	}
	return q.Value()
}

// withinLimits checks that what is bought does not exceed a limit. A limit that
// was exceeded before forbids only machines that count against it.
func (t *trial) withinLimits() *Disagreement {
	left := t.remaining()
	for _, m := range t.machines {
		for name, n := range left[m.planned.Pool] {
			if n < 0 && most(m.all, name) > 0 {
				return &Disagreement{"legal", "limit", fmt.Sprintf("pool %s may exceed its limit of %s by %d", m.planned.Pool, name, -n)}
			}
		}
	}
	return nil
}
