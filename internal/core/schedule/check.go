package schedule

import (
	"fmt"
	"maps"
	"slices"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

// Check holds a plan against its snapshot, slowly and without anything that
// Solve uses, and returns what is wrong with it: pods lost or placed twice,
// places too full or not allowed, machines that could be launched as something
// that does not suit their pods, limits exceeded, a pool passed over, and pods
// left pending that a machine within the limits would hold.
func Check(s *world.Snapshot, plan *Plan) []string {
	c := &checker{s: s, pods: map[world.ObjectName]*world.Pod{}, seen: map[world.ObjectName]string{}, left: map[*world.Pool]map[string]int64{}}
	for i := range s.Pools {
		p := &s.Pools[i]
		c.left[p] = map[string]int64{}
		for _, l := range p.Limits {
			c.left[p][l.Name] = l.Value - p.Used.Get(l.Name)
		}
	}
	for i := range s.Pending {
		c.pods[s.Pending[i].ObjectName] = &s.Pending[i]
	}
	c.nodes(plan)
	for i := range plan.Machines {
		c.machine(i, &plan.Machines[i])
	}
	c.plan = plan
	for turn := range outcomes {
		s, faults := c.play(turn)
		c.stages = append(c.stages, s)
		c.faults = append(c.faults, faults...)
	}
	for i := range plan.Unplaced {
		c.unplaced(&plan.Unplaced[i])
	}
	for name := range c.pods {
		if c.seen[name] == "" {
			c.bad("pod %s is lost", name)
		}
	}
	slices.Sort(c.faults)
	return c.faults
}

type checker struct {
	s      *world.Snapshot
	pods   map[world.ObjectName]*world.Pod
	seen   map[world.ObjectName]string
	left   map[*world.Pool]map[string]int64 // limits less used and planned, per pool
	rooms  []place
	plan   *Plan
	stages []*stage // the clusters that the plan may make
	faults []string
}

// place is a place for pods with what is left of it.
type place struct {
	name    string
	labels  map[string]string
	choices []world.Choice
	taints  []world.Taint
	room    quantity.Resources
}

func (c *checker) bad(format string, args ...any) {
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

func (c *checker) put(name world.ObjectName, where string) *world.Pod {
	pod := c.pods[name]
	switch {
	case pod == nil:
		c.bad("%s: unknown pod %s", where, name)
	case c.seen[name] != "":
		c.bad("pod %s is at %s and at %s", name, c.seen[name], where)
	}
	c.seen[name] = where
	return pod
}

// admits reports whether labels and taints of a place suit a pod, whatever the
// labels that are not decided become.
func (p *place) admits(pod *world.Pod) bool {
	return p.suits(pod, func(always, _ bool) bool { return always })
}

// mayAdmit reports whether they may suit it.
func (p *place) mayAdmit(pod *world.Pod) bool {
	return p.suits(pod, func(_, ever bool) bool { return ever })
}

func (p *place) suits(pod *world.Pod, outcome func(always, ever bool) bool) bool {
	match := func(reqs []label.Requirement) bool {
		return !slices.ContainsFunc(reqs, func(r label.Requirement) bool {
			for _, c := range p.choices {
				if c.Key == label.Normalize(r.Key) {
					return !outcome(c.Allows(r))
				}
			}
			return !label.Matches([]label.Requirement{r}, p.labels)
		})
	}
	if _, bad := world.FirstUntolerated(p.taints, pod.Tolerations); bad || !match(pod.Selector) {
		return false
	}
	if len(pod.Volumes) > 0 && !slices.ContainsFunc(pod.Volumes, match) {
		return false
	}
	return len(pod.Terms) == 0 || slices.ContainsFunc(pod.Terms, func(t []label.Requirement) bool { return len(t) > 0 && match(t) })
}

// standing is the cluster before anything is planned, without what will come.
func (c *checker) standing() *stage {
	s := &stage{}
	for i := range c.s.Nodes {
		if n := &c.s.Nodes[i]; !n.Deleting {
			out := &stageNode{name: n.Name, labels: ownLabels(n)}
			for j := range n.Pods {
				if !n.Pods[j].Finished {
					out.pods = append(out.pods, &n.Pods[j])
				}
			}
			s.nodes = append(s.nodes, out)
		}
	}
	return s
}

// ownLabels are the labels of a node once it is ready.
func ownLabels(n *world.Node) map[string]string {
	out := map[string]string{}
	maps.Copy(out, n.Labels)
	for _, key := range []string{label.Hostname, label.Registered, label.Initialized} {
		if v, ok := nodeLabel(n, key); ok {
			out[key] = v
		}
	}
	return out
}

// nodes checks what is placed on nodes that exist.
func (c *checker) nodes(plan *Plan) {
	standing := c.standing()
	for i := range c.s.Nodes {
		n := &c.s.Nodes[i]
		p := place{name: n.Name, labels: ownLabels(n), choices: n.Choices, taints: taintsOf(n), room: n.Allocatable.Sub(n.Requested())}
		for j := range c.s.Daemons {
			d := &c.s.Daemons[j]
			comes := len(n.Choices) > 0 || d.Template.Requests.Fits(p.room)
			if comes && p.mayAdmit(&d.Template) && !hasDaemon(n, d) && standing.take(&d.Template, n.Name) {
				p.room = p.room.Sub(d.Template.Requests)
			}
		}
		for _, to := range plan.Placements {
			if to.Claim != n.Claim || to.Node != "" && to.Node != n.Name || to.Node == "" && n.Joined {
				continue
			}
			pod := c.put(to.Pod, "node "+n.Name)
			switch {
			case pod == nil:
				continue
			case n.Deleting:
				c.bad("node %s takes no pods, it got %s", n.Name, to.Pod)
			case !p.admits(pod):
				c.bad("node %s does not suit pod %s", n.Name, to.Pod)
			}
			if !pod.Requests.Fits(p.room) {
				c.bad("node %s has no room for pod %s", n.Name, to.Pod)
			}
			p.room = p.room.Sub(pod.Requests)
		}
		if !n.Deleting {
			c.rooms = append(c.rooms, p)
		}
	}
}

// newPlace is an empty machine of an offering, with the labels of a machine.
func newPlace(p *world.Pool, cat *world.Catalog, t *world.InstanceType, o *world.Offering, labels map[string]string) place {
	out := place{labels: map[string]string{label.Registered: "true", label.Initialized: "true", label.Hostname: "\x00new"}, taints: p.Taints, room: t.Allocatable}
	if cat.Region != "" {
		out.labels[label.Region] = cat.Region
	}
	maps.Copy(out.labels, labels)
	maps.Copy(out.labels, t.Labels)
	out.labels[label.InstanceType], out.labels[label.Zone], out.labels[label.CapacityType] = t.Name, o.Zone, o.CapacityType
	return out
}

func (c *checker) machine(i int, m *Machine) {
	where := fmt.Sprintf("machine %d", i+1)
	p := c.s.Pool(m.PoolKind, m.Pool)
	if p == nil || p.NotReady != "" {
		c.bad("%s: pool %q cannot buy", where, m.Pool)
		return
	}
	var pods []*world.Pod
	for _, name := range m.Pods {
		if pod := c.put(name, where); pod != nil {
			pods = append(pods, pod)
			c.passedOver(p, pod, where)
		}
	}
	if len(pods) == 0 || len(m.Options) == 0 || m.Price != m.Options[0].Price {
		c.bad("%s: no pods, no options, or not the price of the first", where)
	}
	for k := 1; k < len(m.Options); k++ {
		if m.Options[k].Price < m.Options[k-1].Price {
			c.bad("%s: options are not in the order of price", where)
		}
	}
	cat := c.s.Catalogs[p.Catalog]
	listed := map[Option]bool{}
	for _, o := range m.Options {
		listed[o] = true
	}
	c.checkValues(where, p, m)
	found, greatest := 0, map[string]int64{}
	for t := range cat.Types {
		kind := &cat.Types[t]
		for o := range kind.Offerings {
			at := &kind.Offerings[o]
			place := newPlace(p, &cat, kind, at, m.Labels)
			if listed[Option{kind.Name, at.Zone, at.CapacityType, at.Price}] {
				found++
				if !at.Available {
					c.bad("%s: %s %s %s is not available", where, kind.Name, at.Zone, at.CapacityType)
				}
			} else if !at.Available || !label.Matches(m.Requirements, place.labels) {
				continue // neither an option nor covered by the requirements
			}
			c.holds(where, p, place, pods)
			for name := range c.left[p] {
				greatest[name] = max(greatest[name], kind.Counts(name))
			}
		}
	}
	if found != len(listed) || found != len(m.Options) {
		c.bad("%s: some options are not in the catalogue, or twice", where)
	}
	for name, size := range greatest {
		if size > 0 && size > c.left[p][name] {
			c.bad("%s exceeds the limit on %s of pool %s", where, name, p.Name)
		}
		c.left[p][name] -= size
	}
}

// holds checks one way of buying a machine.
func (c *checker) holds(where string, p *world.Pool, at place, pods []*world.Pod) {
	what := fmt.Sprintf("%s as %s %s %s", where, at.labels[label.InstanceType], at.labels[label.Zone], at.labels[label.CapacityType])
	if r, bad := label.FirstMismatch(p.Requirements, at.labels); bad {
		c.bad("%s: breaks the pool's requirement %s", what, r)
	}
	for k, v := range p.Labels {
		if at.labels[label.Normalize(k)] != v {
			c.bad("%s: has not the pool's label %s=%s", what, k, v)
		}
	}
	for i := range c.s.Daemons {
		if d := &c.s.Daemons[i]; at.admits(&d.Template) {
			at.room = at.room.Sub(d.Template.Requests)
		}
	}
	var sum quantity.Resources
	for _, pod := range pods {
		if !at.admits(pod) {
			c.bad("%s: does not suit pod %s", what, pod.ObjectName)
		}
		sum = sum.Add(pod.Requests)
	}
	if short, bad := sum.Shortage(at.room); bad {
		c.bad("%s: too full, wants %s of %s", what, short, at.room)
	}
}

// between reports whether there are rules between pods.
func (c *checker) between() bool {
	some := func(p *world.Pod) bool { return len(p.Spread)+len(p.Affinity)+len(p.AntiAffinity)+len(p.HostPorts) > 0 }
	for i := range c.s.Nodes {
		if slices.ContainsFunc(c.s.Nodes[i].Pods, func(p world.Pod) bool { return some(&p) }) {
			return true
		}
	}
	if slices.ContainsFunc(c.s.Daemons, func(d world.Daemon) bool { return some(&d.Template) }) {
		return true
	}
	return slices.ContainsFunc(c.s.Pending, func(p world.Pod) bool { return some(&p) })
}

// always reports whether something holds in all clusters that the plan may make.
func (c *checker) always(holds func(*stage) bool) bool {
	return !slices.ContainsFunc(c.stages, func(s *stage) bool { return !holds(s) })
}

// nodeTakes reports whether rules between pods let the pod on a node.
func (c *checker) nodeTakes(pod *world.Pod, name string) bool {
	return c.always(func(s *stage) bool {
		return !slices.ContainsFunc(s.nodes, func(n *stageNode) bool { return n.name == name && s.refuses(pod, n) != "" })
	})
}

// newTakes reports whether they let the pod on a new machine.
func (c *checker) newTakes(pod *world.Pod, p *world.Pool, o Option) bool {
	return slices.ContainsFunc(labelings(p), func(labels map[string]string) bool {
		n := c.newNode(p, o, labels)
		at := place{labels: n.labels}
		undecided := place{labels: maps.Clone(n.labels), taints: p.Taints}
		for key := range labels {
			if _, fixed := p.Labels[key]; !fixed {
				delete(undecided.labels, key)
			}
		}
		for i := range c.s.Daemons { // also those that may come
			if d := &c.s.Daemons[i].Template; !slices.Contains(n.pods, d) && possible(p, undecided, d) {
				n.pods = append(n.pods, d)
			}
		}
		return at.admits(&world.Pod{Selector: pod.Selector, Terms: pod.Terms}) && c.always(func(s *stage) bool {
			with := &stage{nodes: append(slices.Clip(s.nodes), n)}
			return with.refuses(pod, n) == ""
		}) && c.lets(n)
	})
}

// lets reports whether the plan holds also with one more machine, of which
// kube-scheduler knows from the first.
func (c *checker) lets(n *stageNode) bool {
	for turn := range c.stages {
		if _, faults := c.play(turn, n); len(faults) > 0 {
			return false
		}
	}
	return true
}

// passedOver checks that no pool of greater weight would have taken the pod.
func (c *checker) passedOver(p *world.Pool, pod *world.Pod, where string) {
	if c.between() {
		return // where the others are may decide it
	}
	for i := range c.s.Pools {
		q := &c.s.Pools[i]
		before := q.Weight > p.Weight || q.Weight == p.Weight && q.Name < p.Name
		shunned := slices.ContainsFunc(q.Taints, func(t world.Taint) bool {
			return t.Effect == world.PreferNoSchedule && !world.Tolerated(t, pod.Tolerations)
		})
		if before && !shunned && len(q.Limits) == 0 && c.wouldHold(q, pod) {
			c.bad("%s: pod %s is in pool %s, pool %s comes before it", where, pod.ObjectName, p.Name, q.Name)
		}
	}
}

// wouldHold reports whether a new machine of the pool would hold the pod alone.
func (c *checker) wouldHold(p *world.Pool, pod *world.Pod) bool {
	if p.NotReady != "" || c.insists(p) {
		return false
	}
	cat := c.s.Catalogs[p.Catalog]
	for t := range cat.Types {
		kind := &cat.Types[t]
		if slices.ContainsFunc(slices.Collect(maps.Keys(c.left[p])), func(name string) bool {
			size := kind.Counts(name)
			return size > 0 && size > c.left[p][name]
		}) {
			continue
		}
		for o := range kind.Offerings {
			at := newPlace(p, &cat, kind, &kind.Offerings[o], p.Labels)
			if kind.Offerings[o].Available && possible(p, at, pod) {
				for i := range c.s.Daemons {
					if d := &c.s.Daemons[i]; possible(p, at, &d.Template) {
						at.room = at.room.Sub(d.Template.Requests)
					}
				}
				o := Option{Type: kind.Name, Zone: kind.Offerings[o].Zone, CapacityType: kind.Offerings[o].CapacityType}
				if !overdrawn(at.room) && pod.Requests.Fits(at.room) && c.newTakes(pod, p, o) {
					return true
				}
			}
		}
	}
	return false
}

// overdrawn reports whether daemons ask for more than the machine has.
func overdrawn(room quantity.Resources) bool {
	return slices.ContainsFunc(room.Amounts(), func(a quantity.Amount) bool { return a.Value < 0 })
}

// possible reports whether the machine can be given values for the labels that
// the pool leaves open such that the pool's requirements and the pod's hold.
func possible(p *world.Pool, at place, pod *world.Pod) bool {
	if _, bad := world.FirstUntolerated(at.taints, pod.Tolerations); bad {
		return false
	}
	ways := [][]label.Requirement{pod.Selector}
	if len(pod.Terms) > 0 {
		ways = nil
		for _, t := range pod.Terms {
			if len(t) > 0 {
				ways = append(ways, slices.Concat(pod.Selector, t))
			}
		}
	}
	if len(pod.Volumes) > 0 {
		var both [][]label.Requirement
		for _, w := range ways {
			for _, v := range pod.Volumes {
				both = append(both, slices.Concat(w, v))
			}
		}
		ways = both
	}
	for k, v := range p.Labels {
		if at.labels[label.Normalize(k)] != v {
			return false
		}
	}
	return slices.ContainsFunc(ways, func(reqs []label.Requirement) bool {
		open := map[string][]label.Requirement{}
		for _, r := range p.Requirements {
			if _, fixed := at.labels[r.Key]; !fixed && !label.WellKnown(r.Key) {
				open[r.Key] = append(open[r.Key], r)
			} else if !label.Matches([]label.Requirement{r}, at.labels) {
				return false
			}
		}
		for _, r := range reqs {
			if _, ok := open[r.Key]; ok {
				open[r.Key] = append(open[r.Key], r)
			} else if !label.Matches([]label.Requirement{r}, at.labels) {
				return false
			}
		}
		for _, rs := range open {
			if !label.Satisfiable(rs...) {
				return false
			}
		}
		return true
	})
}

// unplaced checks that nothing could have taken the pod.
func (c *checker) unplaced(u *Unplaced) {
	pod := c.put(u.Pod, "pending")
	if len(u.Reasons) == 0 {
		c.bad("pod %s is pending without a reason", u.Pod)
	}
	if pod == nil || pod.Refused != "" {
		return
	}
	for i := range c.rooms {
		open := c.between() && len(c.rooms[i].choices) > 0 // it need not be counted on
		if !open && c.rooms[i].admits(pod) && pod.Requests.Fits(c.rooms[i].room) && c.nodeTakes(pod, c.rooms[i].name) {
			c.bad("pod %s is pending, a node has room for it", u.Pod)
		}
	}
	for i := range c.s.Pools {
		if c.wouldHold(&c.s.Pools[i], pod) {
			c.bad("pod %s is pending, pool %s could buy for it", u.Pod, c.s.Pools[i].Name)
		}
	}
}
