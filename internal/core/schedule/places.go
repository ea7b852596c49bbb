package schedule

import (
	"cmp"
	"slices"

	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
)

// places are the nodes and booting claims that may take pods.
type places struct {
	d     *dims
	stats *Stats
	nodes []*world.Node
	room  []int64
	table *table

	taints  [][]world.Taint // different sets of taints
	taintOf []int           // per node, into taints
	found   map[*profile]set
	coming  []coming
	open    []int // nodes with labels that are not decided yet
}

func newPlaces(nodes []*world.Node, d *dims, daemons []world.Daemon, stats *Stats) *places {
	p := &places{d: d, stats: stats, found: map[*profile]set{}}
	for _, n := range nodes {
		if !n.Deleting {
			p.nodes = append(p.nodes, n)
		}
	}
	p.table = newTable(len(p.nodes), func(i int, key string) (string, bool) { return nodeLabel(p.nodes[i], key) })
	for i, n := range p.nodes {
		if len(n.Choices) > 0 {
			p.open = append(p.open, i)
		}
		p.room = append(p.room, d.room(n.Allocatable.Sub(n.Requested()), n.AttachLimits, attached(n))...)
		taints := taintsOf(n)
		at := slices.IndexFunc(p.taints, func(t []world.Taint) bool { return slices.Equal(t, taints) })
		if at < 0 {
			at = len(p.taints)
			p.taints = append(p.taints, taints)
		}
		p.taintOf = append(p.taintOf, at)
	}
	p.reserve(daemons)
	return p
}

// cordon is the taint for which kube-scheduler takes spec.unschedulable.
var cordon = world.Taint{Key: "node.kubernetes.io/unschedulable", Effect: world.NoSchedule}

// taintsOf are the taints of a node, that of being cordoned among them.
func taintsOf(n *world.Node) []world.Taint {
	if !n.Unschedulable || slices.Contains(n.Taints, cordon) {
		return n.Taints
	}
	return append(slices.Clip(n.Taints), cordon)
}

// nodeLabel is a label of a node as it will be once the node is initialised.
func nodeLabel(n *world.Node, key string) (string, bool) {
	if v, ok := n.Labels[key]; ok {
		return v, true
	}
	switch key {
	case label.Hostname:
		return n.Name, !n.Joined
	case label.Registered, label.Initialized:
		return "true", n.Claim != "" && !n.Initialized
	}
	return "", false
}

// reserve keeps room for daemon pods that will come but are not there yet. A
// daemon pod that finds no room will not come. What is not known to be too
// small for it may still become a machine that has room for it.
func (p *places) reserve(daemons []world.Daemon) {
	if len(daemons) == 0 {
		return
	}
	repellers := p.repellers()
	for i := range daemons {
		d := &daemons[i]
		request := p.d.vector(d.Template.Requests)
		on := p.suiting(newProfile(&d.Template), true)
		for n := on.next(0); n >= 0; n = on.next(n + 1) {
			comes := len(p.nodes[n].Choices) > 0 || fits(request, p.roomOf(n))
			if comes && !hasDaemon(p.nodes[n], d) && !p.keptOff(&d.Template, p.nodes[n], repellers) {
				p.take(n, request, 1)
				p.coming = append(p.coming, coming{n, d})
			}
		}
	}
}

// resident is a pod on a place.
type resident struct {
	at  *world.Node
	pod *world.Pod
}

// repellers are the pods on places that keep others away.
func (p *places) repellers() (out []resident) {
	for _, n := range p.nodes {
		for i := range n.Pods {
			if pod := &n.Pods[i]; !pod.Finished && repellent(pod) {
				out = append(out, resident{n, pod})
			}
		}
	}
	return out
}

// keptOff reports whether pods that are there keep a daemon pod from ever running
// on the node: they have its ports, or one wants to be apart from the other.
func (p *places) keptOff(daemon *world.Pod, n *world.Node, repellers []resident) bool {
	if slices.ContainsFunc(repellers, func(r resident) bool { return apart(r.pod, r.at, daemon, n) }) {
		return true
	}
	for _, o := range p.nodes {
		if o != n && !repellent(daemon) {
			continue
		}
		if slices.ContainsFunc(o.Pods, func(q world.Pod) bool {
			_, taken := conflict(daemon.HostPorts, q.HostPorts)
			return !q.Finished && (o == n && taken || apart(daemon, n, &q, o))
		}) {
			return true
		}
	}
	return false
}

// apart reports whether a pod on one node keeps another one off a node.
func apart(p *world.Pod, at *world.Node, o *world.Pod, n *world.Node) bool {
	return slices.ContainsFunc(p.AntiAffinity, func(t world.PodTerm) bool {
		m := matcher{all: t.AllNamespaces, namespaces: t.Namespaces, selector: t.Selector}
		a, ok := nodeLabel(at, label.Normalize(t.Key))
		b, has := nodeLabel(n, label.Normalize(t.Key))
		return t.Weight == 0 && ok && has && a == b && m.matches(o)
	})
}

// coming is a daemon pod that is expected on a place.
type coming struct {
	node   int
	daemon *world.Daemon
}

func hasDaemon(n *world.Node, d *world.Daemon) bool {
	return slices.ContainsFunc(n.Pods, func(pod world.Pod) bool {
		return pod.IsDaemon() && pod.Owner.Name == d.Name && pod.Namespace == d.Namespace && !pod.Finished
	})
}

func (p *places) roomOf(node int) []int64 {
	n := p.d.n()
	return p.room[node*n : node*n+n]
}

func (p *places) take(node int, request []int64, times int64) {
	room := p.roomOf(node)
	for d, r := range request {
		room[d] -= r * times
	}
}

// matching returns the nodes whose labels and taints suit the profile.
func (p *places) matching(prof *profile) set {
	s, ok := p.found[prof]
	if !ok {
		s = p.suiting(prof, false)
		p.found[prof] = s
	}
	return s
}

// satisfying returns the nodes on which the requirement holds, however the
// labels that are not decided turn out; or, if maybe, where it may hold.
func (p *places) satisfying(r label.Requirement, maybe bool) set {
	s := p.table.matching(r)
	cloned := false
	for _, n := range p.open {
		for _, c := range p.nodes[n].Choices {
			if c.Key != r.Key {
				continue
			}
			if !cloned {
				s, cloned = slices.Clone(s), true
			}
			if always, ever := c.Allows(r); always || maybe && ever {
				s.add(n)
			} else {
				s.remove(n)
			}
		}
	}
	return s
}

// suiting returns the nodes whose labels and taints suit the profile, or may.
func (p *places) suiting(prof *profile, maybe bool) set {
	out := newSet(len(p.nodes))
	for _, reqs := range prof.ways {
		some := fullSet(len(p.nodes))
		for _, r := range reqs {
			some.and(p.satisfying(r, maybe))
		}
		out.or(some)
	}
	if len(p.taints) > 1 || len(p.taints) == 1 && len(p.taints[0]) > 0 {
		tolerated := make([]bool, len(p.taints))
		for i, t := range p.taints {
			tolerated[i], _ = prof.tolerates(t)
		}
		for n := out.next(0); n >= 0; n = out.next(n + 1) {
			if !tolerated[p.taintOf[n]] {
				out.remove(n)
			}
		}
	}
	return out
}

// indifferent reports whether pods of the profile like all places equally.
func (p *places) indifferent(prof *profile) bool {
	return len(prof.preferred) == 0 && !slices.ContainsFunc(p.taints, func(t []world.Taint) bool {
		may, gladly := prof.tolerates(t)
		return may && !gladly
	})
}

// ranked returns the nodes that suit the profile, those it prefers first.
func (p *places) ranked(prof *profile) []int {
	suits := p.matching(prof)
	var order []int
	for n := suits.next(0); n >= 0; n = suits.next(n + 1) {
		order = append(order, n)
	}
	shunned := make([]int32, len(p.taints))
	plain := len(prof.preferred) == 0
	for i, t := range p.taints {
		for _, taint := range t {
			if taint.Effect == world.PreferNoSchedule && !world.Tolerated(taint, prof.tolerations) {
				shunned[i]++
				plain = false
			}
		}
	}
	if plain {
		return order
	}
	score := make([]int32, len(p.nodes))
	for _, n := range order {
		score[n] = -100 * shunned[p.taintOf[n]]
	}
	for _, pref := range prof.preferred {
		if len(pref.Term) == 0 {
			continue
		}
		liked := fullSet(len(p.nodes))
		for _, r := range pref.Term {
			liked.and(p.satisfying(r, false))
		}
		for _, n := range order {
			if liked.has(n) {
				score[n] += pref.Weight
			}
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(score[b], score[a]) })
	return order
}

// times returns how often the request fits into the room, at most limit.
func times(request, room []int64, limit int) int {
	for d, r := range request {
		if r > 0 {
			limit = min(limit, int(max(0, room[d])/r))
		}
	}
	return limit
}

// fill puts as many pods of the class as fit on the nodes, in order, and calls
// put for each node that takes some.
func (p *places) fill(c *class, order []int, limit int, put func(node int, pods []int32)) {
	for _, n := range order {
		if limit == 0 {
			return
		}
		p.stats.Evaluations++
		if k := times(c.request, p.roomOf(n), limit); k > 0 {
			p.take(n, c.request, int64(k))
			put(n, c.take(k))
			limit -= k
		}
	}
}
