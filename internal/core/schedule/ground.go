package schedule

import (
	"slices"

	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
)

// ground is the part of a snapshot that rules between pods look at and that a
// plan does not change: nodes, also those that take no more pods, and the pods
// on them.
type ground struct {
	book   *rulebook
	nodes  []*world.Node
	table  *table
	spots  []spot    // per node, without pods
	adds   [][]int32 // per node: the tallies that its pods count in
	places []int32   // per node of places, its number here
}

func newGround(book *rulebook, nodes []*world.Node, pl *places) *ground {
	g := &ground{book: book}
	for _, n := range nodes {
		if n.Deleting {
			continue
		}
		if len(g.places) < len(pl.nodes) && pl.nodes[len(g.places)] == n {
			g.places = append(g.places, int32(len(g.nodes)))
		}
		g.nodes = append(g.nodes, n)
	}
	g.table = newTable(len(g.nodes), func(i int, key string) (string, bool) { return nodeLabel(g.nodes[i], key) })
	g.spots, g.adds = make([]spot, len(g.nodes)), make([][]int32, len(g.nodes))
	for i, n := range g.nodes {
		s := &g.spots[i]
		s.values, s.may = make([]int32, len(book.keys)), make([][]int32, len(book.keys))
		for k, key := range book.keys {
			g.decide(s, n, k, key)
		}
		for j := range n.Pods {
			p := &n.Pods[j]
			if p.Finished {
				continue
			}
			s.ports = append(s.ports, p.HostPorts...)
			s.volumes = append(s.volumes, book.sharedBy(p)...)
			g.adds[i] = append(g.adds[i], book.bound(p)...)
		}
		s.counts = make([]byte, len(book.tallies))
	}
	for t, tally := range book.tallies {
		if tally.spread {
			g.filter(t, tally.filter)
		}
	}
	for _, c := range pl.coming {
		g.expect(pl.nodes[c.node], c.daemon)
	}
	return g
}

// expect adds the daemon pods that are still to come to a node.
func (g *ground) expect(n *world.Node, d *world.Daemon) {
	i := slices.Index(g.nodes, n)
	g.spots[i].ports = append(g.spots[i].ports, d.Template.HostPorts...)
	g.adds[i] = append(g.adds[i], g.book.bound(&d.Template)...)
}

// accompany finds the daemon pods that matter to rules, per shop.
func (b *rulebook) accompany(shops []*shop, daemons []world.Daemon) {
	for i := range daemons {
		r := &rules{adds: b.bound(&daemons[i].Template), ports: daemons[i].Template.HostPorts}
		if len(r.adds)+len(r.ports) == 0 {
			continue
		}
		for _, s := range shops {
			s.daemons = append(s.daemons, companion{daemons[i].String(), r, s.daemonOffers(&daemons[i])})
		}
	}
}

// bound are the tallies in which a pod on a node counts.
func (b *rulebook) bound(p *world.Pod) []int32 {
	n := b.kin(p)
	adds := n.counts
	if p.DeletedAt != nil {
		adds = n.leaving
	}
	if repellent(p) {
		adds = slices.Concat(adds, b.own(p).rule.adds)
	}
	return adds
}

// decide sets the value of a topology key.
func (g *ground) decide(s *spot, n *world.Node, k int, key string) {
	for _, c := range n.Choices {
		if c.Key == key {
			s.values[k] = open
			for _, v := range c.Values {
				s.may[k] = append(s.may[k], g.book.value(k, v))
			}
			return
		}
	}
	v, ok := nodeLabel(n, key)
	switch {
	case !ok:
		s.values[k] = absent
	case k == g.book.host:
		s.values[k] = unnamed
	default:
		s.values[k] = g.book.value(k, v)
	}
}

// filter finds the nodes that count for a tally.
func (g *ground) filter(t int, f *filter) {
	suits := fullSet(len(g.nodes))
	if f != nil && f.ways != nil {
		suits = newSet(len(g.nodes))
		for _, reqs := range f.ways {
			some := fullSet(len(g.nodes))
			for _, r := range reqs {
				some.and(g.table.matching(r))
			}
			suits.or(some)
		}
	}
	for i, n := range g.nodes {
		s := &g.spots[i]
		s.counts[t] = never
		if suits.has(i) {
			s.counts[t] = surely
		}
		if len(n.Choices) > 0 && f != nil && f.ways != nil {
			s.counts[t] = mayMatch(n, n.Choices, f.ways)
			if key := g.book.tallies[t].key; s.counts[t] == perhaps && s.values[key] == open {
				s.narrow(int32(t), func(v int32) bool {
					return mayMatch(n, decided(n.Choices, g.book.keys[key], g.book.name(key, v)), f.ways) != never
				}, key)
			}
		}
		if f == nil {
			continue
		}
		if f.taints {
			if _, bad := world.FirstUntolerated(n.Taints, f.tolerations); bad {
				s.counts[t] = never
			}
		}
		for _, k := range f.keys {
			if s.values[k] == absent {
				s.counts[t] = never
			}
		}
	}
}

// decided are the choices with the value for one of them.
func decided(all []world.Choice, key, value string) []world.Choice {
	out := slices.Clone(all)
	for i := range out {
		if out[i].Key == key {
			out[i] = world.Choice{Key: key, Values: []string{value}}
		}
	}
	return out
}

// mayMatch holds a node with undecided labels against the ways.
func mayMatch(n *world.Node, choices []world.Choice, ways [][]label.Requirement) (most byte) {
	for _, reqs := range ways {
		can := byte(surely)
		for _, r := range reqs {
			at := slices.IndexFunc(choices, func(c world.Choice) bool { return c.Key == r.Key })
			var always, ever bool
			if at >= 0 {
				always, ever = choices[at].Allows(r)
			} else {
				v, ok := nodeLabel(n, r.Key)
				always = r.Allows(v, ok)
				ever = always
			}
			switch {
			case !ever:
				can = never
			case !always:
				can = min(can, perhaps)
			}
		}
		most = max(most, can)
	}
	return most
}

// board is a new board with the ground on it.
func (g *ground) board() *board {
	b := newBoard(g.book)
	for i := range g.spots {
		s := g.spots[i]
		s.values, s.ports, s.volumes = slices.Clone(s.values), slices.Clip(s.ports), slices.Clip(s.volumes)
		b.join(&s)
		b.add(g.adds[i], &s)
	}
	return b
}
