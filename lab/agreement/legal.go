package agreement

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"karpenter/internal/core/quantity"
	"karpenter/internal/core/schedule"
	"karpenter/internal/core/world"
)

// legal follows the plan in its order and asks the judge about every pod. The
// judge is left in the cluster that the plan makes.
func (t *trial) legal(j *Judge) (*Disagreement, error) {
	if d := t.everyPodOnce(); d != nil {
		return d, nil
	}
	if d := t.withinLimits(); d != nil {
		return d, nil
	}
	for i := range t.machines {
		if d := t.sound(&t.machines[i]); d != nil {
			return d, nil
		}
	}
	return t.follow(j)
}

// follow places all pods in the order of the plan. There may be machines that the
// plan knows nothing of.
func (t *trial) follow(j *Judge, more ...*candidate) (*Disagreement, error) {
	nodes, bound := t.nodes(), slices.Clone(t.bound)
	for _, c := range more {
		nodes = append(nodes, c.node.Node())
		for _, p := range c.daemons {
			bound = append(bound, boundTo(p, c.node.Node().Name))
		}
	}
	if err := j.Enter(t.Cluster, nodes, bound); err != nil {
		return nil, err
	}
	for _, n := range t.nodes() {
		if d, err := t.inhabit(j, n); d != nil || err != nil {
			return d, err
		}
	}
	at, d := t.destinations()
	if d != nil {
		return d, nil
	}
	for _, name := range t.order() {
		if at[name] == nil {
			return illegal("order", "the plan's order names pod %s twice, or without a place", name), nil
		}
		if d, err := t.put(j, name, at[name]); d != nil || err != nil {
			return d, err
		}
		delete(at, name)
	}
	for name := range at {
		return illegal("order", "pod %s is planned, but not in the plan's order", name), nil
	}
	return nil, nil
}

// destinations are the nodes planned for the pods.
func (t *trial) destinations() (map[world.ObjectName]*corev1.Node, *Disagreement) {
	out := map[world.ObjectName]*corev1.Node{}
	for _, p := range t.plan.Placements {
		at, ok := t.placeOf(p)
		if !ok {
			return nil, illegal("no-such-place", "pod %s is planned onto node %q, claim %q, which takes no pods", p.Pod, p.Node, p.Claim)
		}
		out[p.Pod] = at.node
	}
	for i := range t.machines {
		for _, p := range t.machines[i].planned.Pods {
			out[p] = t.machines[i].node
		}
	}
	return out, nil
}

// order is the one in which the pods are to come; where the plan names none, any
// will do.
func (t *trial) order() []world.ObjectName {
	if len(t.plan.Order) > 0 {
		return t.plan.Order
	}
	var out []world.ObjectName
	for _, p := range t.plan.Placements {
		out = append(out, p.Pod)
	}
	for _, m := range t.plan.Machines {
		out = append(out, m.Pods...)
	}
	return out
}

func illegal(rule, format string, args ...any) *Disagreement {
	return &Disagreement{"legal", rule, fmt.Sprintf(format, args...)}
}

// inhabit binds what comes to a node before the planned pods: those promised to
// it before, and its daemon pods. On a machine that is bought all of these must
// find room.
func (t *trial) inhabit(j *Judge, n *corev1.Node) (*Disagreement, error) {
	for _, p := range t.reserved[n.Name] {
		if err := j.bind(p, n.Name); err != nil {
			return nil, err
		}
	}
	for _, p := range t.daemonPods(n) {
		why, err := j.try(p, n.Name)
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(why, "NodeResourcesFit") && t.isNew(n) {
			return illegal("daemon", "daemon pod %s may not go on new node %s: %s", p.Name, n.Name, why), nil
		}
	}
	return nil, nil
}

func (t *trial) put(j *Judge, name world.ObjectName, n *corev1.Node) (*Disagreement, error) {
	why, err := j.try(unbound(t.pod(name)), n.Name)
	if plugin, _, _ := strings.Cut(why, ":"); why != "" {
		return illegal("filter-"+plugin, "pod %s may not go on node %s: %s", name, n.Name, why), err
	}
	return nil, err
}

func (t *trial) isNew(n *corev1.Node) bool {
	return slices.ContainsFunc(t.machines, func(m machine) bool { return m.node == n })
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
			return illegal("empty-machine", "a machine of pool %s is bought for nobody", m.Pool)
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
			return illegal("once", "pod %s is planned %d times too few", p.ObjectName, left[p.ObjectName])
		}
		delete(left, p.ObjectName)
	}
	for name := range left {
		return illegal("once", "pod %s is planned, but was not pending", name)
	}
	return nil
}

// sound checks that the machine is one that its Provisioner may buy, whatever
// the cloud picks.
func (t *trial) sound(m *machine) *Disagreement {
	bad := func(rule, format string, args ...any) *Disagreement {
		return illegal(rule, "machine %s of pool %s: %s", m.claim.Name, m.planned.Pool, fmt.Sprintf(format, args...))
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
				return illegal("limit", "pool %s may exceed its limit of %s by %d", m.planned.Pool, name, -n)
			}
		}
	}
	return nil
}
