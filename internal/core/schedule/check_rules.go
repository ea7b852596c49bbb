package schedule

import (
	"fmt"
	"maps"
	"slices"

	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
)

// stage is a cluster in which pods are placed one by one.
type stage struct{ nodes []*stageNode }

type stageNode struct {
	name   string
	labels map[string]string
	taints []world.Taint
	pods   []*world.Pod
	limits map[string]int64 // volumes per driver
}

// outcomes is how many of the ways are tried in which what is undecided may
// turn out.
const outcomes = 4

// play follows the plan in its order, for one outcome and with more machines that
// nobody asked for, and returns what comes of it and which pods may not come.
func (c *checker) play(turn int, more ...*stageNode) (*stage, []string) {
	var faults []string
	bad := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	s, at := c.stage(c.plan, turn)
	for _, n := range more {
		n.pods = slices.Clip(n.pods)
		s.nodes = append(s.nodes, n)
	}
	order := c.plan.Order
	if len(order) == 0 {
		for _, to := range c.plan.Placements {
			order = append(order, to.Pod)
		}
		for i := range c.plan.Machines {
			order = append(order, c.plan.Machines[i].Pods...)
		}
	}
	seen := map[world.ObjectName]bool{}
	for _, name := range order {
		pod, n := c.pods[name], at[name]
		if pod == nil || n == nil || seen[name] {
			bad("order names pod %s, which is not placed, or twice", name)
			continue
		}
		seen[name] = true
		if why := s.refuses(pod, n); why != "" {
			bad("outcome %d: pod %s may not come to %s: %s", turn, name, n.name, why)
		}
		n.pods = append(n.pods, pod)
	}
	if len(seen) != len(at) {
		bad("order names %d of %d placed pods", len(seen), len(at))
	}
	return s, faults
}

// stage is the cluster before the first pod is placed, with all machines, and
// where the pods are to go.
func (c *checker) stage(plan *Plan, turn int) (*stage, map[world.ObjectName]*stageNode) {
	s, at, standing := &stage{}, map[world.ObjectName]*stageNode{}, c.standing()
	for i := range c.s.Nodes {
		n := &c.s.Nodes[i]
		if n.Deleting {
			continue
		}
		node := &stageNode{name: n.Name, labels: ownLabels(n), taints: n.Taints, limits: map[string]int64{}}
		for _, ch := range n.Choices {
			if k := (turn + i) % (len(ch.Values) + 1); k < len(ch.Values) {
				node.labels[ch.Key] = ch.Values[k]
			} else if !ch.Absent {
				node.labels[ch.Key] = ch.Values[0]
			}
		}
		for _, l := range n.AttachLimits {
			node.limits[l.Name] = l.Value
		}
		for j := range n.Pods {
			if !n.Pods[j].Finished {
				node.pods = append(node.pods, &n.Pods[j])
			}
		}
		if !n.Unschedulable {
			at := place{labels: node.labels, taints: n.Taints, room: n.Allocatable.Sub(n.Requested())}
			for j := range c.s.Daemons {
				if d := &c.s.Daemons[j]; at.admits(&d.Template) && !hasDaemon(n, d) && d.Template.Requests.Fits(at.room) && standing.take(&d.Template, n.Name) {
					at.room = at.room.Sub(d.Template.Requests)
					node.pods = append(node.pods, &d.Template)
				}
			}
		}
		for _, to := range plan.Placements {
			if to.Claim == n.Claim && (to.Node == n.Name || to.Node == "" && !n.Joined) {
				at[to.Pod] = node
			}
		}
		s.nodes = append(s.nodes, node)
	}
	for i := range plan.Machines {
		m := &plan.Machines[i]
		p := c.s.Pool(m.PoolKind, m.Pool)
		if p == nil || len(m.Options) == 0 {
			continue
		}
		o := m.Options[turn*(i+1)%len(m.Options)]
		node := c.newNode(p, o, m.Labels)
		node.name = fmt.Sprintf("machine %d as %s %s %s", i+1, o.Type, o.Zone, o.CapacityType)
		node.labels[label.Hostname] = node.name
		for _, pod := range m.Pods {
			at[pod] = node
		}
		s.nodes = append(s.nodes, node)
	}
	return s, at
}

// take reports whether the pods that are there let a daemon pod come to the node.
func (s *stage) take(daemon *world.Pod, node string) bool {
	return !slices.ContainsFunc(s.nodes, func(n *stageNode) bool {
		return n.name == node && (s.anti(daemon, n) != "" || s.antiOfOthers(daemon, n) != "" || ports(daemon, n) != "")
	})
}

// newNode is a new machine of the option with its daemon pods.
func (c *checker) newNode(p *world.Pool, o Option, labels map[string]string) *stageNode {
	cat := c.s.Catalogs[p.Catalog]
	node := &stageNode{name: "new", taints: p.Taints, limits: map[string]int64{}}
	for t := range cat.Types {
		if kind := &cat.Types[t]; kind.Name == o.Type {
			place := newPlace(p, &cat, kind, &world.Offering{Zone: o.Zone, CapacityType: o.CapacityType}, labels)
			node.labels = place.labels
			for _, l := range kind.AttachLimits {
				node.limits[l.Name] = l.Value
			}
			for i := range c.s.Daemons {
				if d := &c.s.Daemons[i]; place.admits(&d.Template) {
					node.pods = append(node.pods, &d.Template)
				}
			}
		}
	}
	return node
}

// labelings are some ways to decide the labels that the pool leaves open: every
// value that its requirements name.
func labelings(p *world.Pool) []map[string]string {
	out := []map[string]string{p.Labels}
	open := map[string][]label.Requirement{}
	for _, r := range p.Requirements {
		if key := label.Normalize(r.Key); p.Labels[key] == "" && !label.WellKnown(key) {
			open[key] = append(open[key], r)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(open)) {
		domain := label.NewDomain(open[key])
		var next []map[string]string
		for _, v := range domain.Values(domain.Mask(open[key]...)) {
			for _, head := range out {
				with := maps.Clone(head)
				with[key] = v
				next = append(next, with)
			}
		}
		if label.Satisfiable(append(slices.Clip(open[key]), label.Requirement{Key: key, Op: label.DoesNotExist})...) {
			next = append(next, out...)
		}
		out = next
	}
	return out
}

func selects(s world.LabelSelector, pod *world.Pod) bool {
	return !s.Nothing && !slices.ContainsFunc(s.Requirements, func(r label.Requirement) bool {
		v, ok := pod.Labels[r.Key]
		return !r.Allows(v, ok)
	})
}

func termMatches(t *world.PodTerm, pod *world.Pod) bool {
	return (t.AllNamespaces || slices.Contains(t.Namespaces, pod.Namespace)) && selects(t.Selector, pod)
}

// refuses says which rule between pods keeps the pod off the node.
func (s *stage) refuses(pod *world.Pod, n *stageNode) string {
	for _, f := range []func(*world.Pod, *stageNode) string{s.spread, s.affinity, s.anti, s.antiOfOthers, s.followed, ports, volumes} {
		if why := f(pod, n); why != "" {
			return why
		}
	}
	return ""
}

func (s *stage) spread(pod *world.Pod, n *stageNode) string {
	var hard []*world.Spread
	for i := range pod.Spread {
		if !pod.Spread[i].Soft {
			hard = append(hard, &pod.Spread[i])
		}
	}
	for _, c := range hard {
		if _, ok := n.labels[label.Normalize(c.Key)]; !ok {
			return "no label " + c.Key
		}
		counts := map[string]int32{}
		for _, o := range s.nodes {
			if slices.ContainsFunc(hard, func(h *world.Spread) bool { _, ok := o.labels[label.Normalize(h.Key)]; return !ok }) {
				continue
			}
			at := place{labels: o.labels, taints: o.taints}
			if _, bad := world.FirstUntolerated(o.taints, pod.Tolerations); c.HonorTaints && bad {
				continue
			}
			at.taints = nil
			if !c.IgnoreAffinity && !at.admits(&world.Pod{Selector: pod.Selector, Terms: pod.Terms}) {
				continue
			}
			v := o.labels[label.Normalize(c.Key)]
			counts[v] += 0
			for _, p := range o.pods {
				if p.Namespace == pod.Namespace && p.DeletedAt == nil && len(c.Selector.Requirements) > 0 && selects(c.Selector, p) {
					counts[v]++
				}
			}
		}
		least := int32(1 << 30)
		for _, k := range counts {
			least = min(least, k)
		}
		if int32(len(counts)) < c.MinDomains {
			least = 0
		}
		self := int32(0)
		if selects(c.Selector, pod) {
			self = 1
		}
		if v := n.labels[label.Normalize(c.Key)]; counts[v]+self-least > c.MaxSkew {
			return fmt.Sprintf("spread over %s: %v, %s would be too many", c.Key, counts, v)
		}
	}
	return ""
}

func (s *stage) affinity(pod *world.Pod, n *stageNode) string {
	var terms []*world.PodTerm
	for i := range pod.Affinity {
		if pod.Affinity[i].Weight == 0 {
			terms = append(terms, &pod.Affinity[i])
		}
	}
	matchesAll := func(p *world.Pod) bool {
		return !slices.ContainsFunc(terms, func(t *world.PodTerm) bool { return !termMatches(t, p) })
	}
	anywhere, missing := false, ""
	for _, t := range terms {
		v, ok := n.labels[label.Normalize(t.Key)]
		if !ok {
			return "no label " + t.Key
		}
		here := false
		for _, o := range s.nodes {
			w, ok := o.labels[label.Normalize(t.Key)]
			if ok && slices.ContainsFunc(o.pods, matchesAll) {
				anywhere = true
				here = here || v == w
			}
		}
		if !here {
			missing = t.Key
		}
	}
	if missing != "" && (anywhere || !matchesAll(pod)) {
		return "no pod to be with over " + missing
	}
	return ""
}

func (s *stage) anti(pod *world.Pod, n *stageNode) string {
	for i := range pod.AntiAffinity {
		t := &pod.AntiAffinity[i]
		v, ok := n.labels[label.Normalize(t.Key)]
		for _, o := range s.nodes {
			if w, has := o.labels[label.Normalize(t.Key)]; t.Weight == 0 && ok && has && v == w &&
				slices.ContainsFunc(o.pods, func(p *world.Pod) bool { return termMatches(t, p) }) {
				return "repels a pod over " + t.Key
			}
		}
	}
	return ""
}

func (s *stage) antiOfOthers(pod *world.Pod, n *stageNode) string {
	for _, o := range s.nodes {
		for _, p := range o.pods {
			for i := range p.AntiAffinity {
				t := &p.AntiAffinity[i]
				v, ok := n.labels[label.Normalize(t.Key)]
				if w, has := o.labels[label.Normalize(t.Key)]; t.Weight == 0 && ok && has && v == w && termMatches(t, pod) {
					return fmt.Sprintf("pod %s repels it over %s", p.ObjectName, t.Key)
				}
			}
		}
	}
	return ""
}

// followed: a volume that is made for the first of its pods keeps the others in
// its zone.
func (s *stage) followed(pod *world.Pod, n *stageNode) string {
	for _, a := range pod.Attach {
		for _, o := range s.nodes {
			if a.Unmade && o.labels[label.Zone] != n.labels[label.Zone] && slices.ContainsFunc(o.pods, func(p *world.Pod) bool { return slices.Contains(p.Attach, a) }) {
				return "volume " + a.Volume + " will be in zone " + o.labels[label.Zone]
			}
		}
	}
	return ""
}

func ports(pod *world.Pod, n *stageNode) string {
	for _, p := range n.pods {
		for _, a := range p.HostPorts {
			if slices.ContainsFunc(pod.HostPorts, a.Conflicts) {
				return fmt.Sprintf("port %d is taken", a.Port)
			}
		}
	}
	return ""
}

func volumes(pod *world.Pod, n *stageNode) string {
	used, here := map[string]int64{}, map[world.Attachment]bool{}
	for _, p := range n.pods {
		for _, a := range p.Attach {
			if !here[a] {
				here[a] = true
				used[a.Driver]++
			}
		}
	}
	for _, a := range pod.Attach {
		if here[a] {
			continue
		}
		here[a] = true
		used[a.Driver]++
		if limit, ok := n.limits[a.Driver]; ok && used[a.Driver] > limit {
			return "too many volumes of " + a.Driver
		}
	}
	return ""
}
