package disrupt

import (
	"time"

	"karpenter/internal/core/reason"
	"karpenter/internal/core/world"
)

// Idle says of the machines about which a decision says nothing why they stay:
// no method wants them.
func Idle(s *world.Snapshot, now time.Time, d Decision) []Kept {
	named := map[string]bool{}
	for _, k := range d.Kept {
		named[k.Node] = true
	}
	for _, c := range d.Commands {
		for _, t := range c.Remove {
			named[t.Node] = true
		}
	}
	var out []Kept
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Claim == "" || named[n.Name] {
			continue
		}
		c := candidate{clock: &clock{now: now}, snap: s, node: n, pool: s.Pool(n.PoolKind, n.Pool)}
		out = append(out, Kept{Node: n.Name, Reason: c.unwanted()})
	}
	return out
}

func (c candidate) unwanted() reason.Reason {
	switch {
	case c.node.Deleting:
		return Deleting{}
	case c.pool == nil:
		return NotOurs{}
	case !c.pool.Consolidate:
		return PoolKeeps{Pool: c.node.Pool}
	}
	until, _ := consolidatable(c)
	return NotQuiet{Until: until}
}
