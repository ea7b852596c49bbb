package disrupt

import (
	"time"

	"karpenter/internal/core/reason"
	"karpenter/internal/core/world"
)

// Confirm looks at a command for the last time before its machines go, when what
// was bought for them is ready: much may have happened since. It returns why
// machines may not go; a command is carried out whole or not at all. Those that
// do not exist any more are of no concern.
func Confirm(s *world.Snapshot, now time.Time, cmd Command, opt Options) []Kept {
	var d Decision
	r := newRound(s, now, opt, &d)
	m, known := methodNamed(cmd.Method)
	var set []candidate
	for _, t := range cmd.Remove {
		n := find(r.s, t)
		switch {
		case n == nil:
		case !known:
			r.keep(m, t.Node, NotDue{})
		default:
			c := r.candidate(n, m)
			if why := r.unconfirmed(m, c); why != nil {
				r.keep(m, t.Node, why)
			}
			set = append(set, c)
		}
	}
	if len(d.Kept) > 0 || len(set) == 0 {
		return d.Kept
	}
	w := r.whatIf(set, r.s)
	if why := w.short(); why != nil {
		for _, c := range set {
			r.keep(m, c.node.Name, why)
		}
	}
	return d.Kept
}

// Passes reports whether everything that keeps the machines may pass by itself
// within minutes, so that it is worth waiting for.
func Passes(kept []Kept) bool {
	for _, k := range kept {
		switch why := k.Reason.(type) {
		case Promised, PoolBudget, NoOtherPlace, WaitsFor, RoomTaken:
		case BudgetSpent:
			if why.Never {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// unconfirmed says why a machine that was chosen may not go after all.
func (r *round) unconfirmed(m method, c candidate) reason.Reason {
	lasts := m.lasts
	if lasts == nil {
		lasts = func(c candidate) bool { _, due := m.due(c); return due }
	}
	switch {
	case c.node.Disruption != m.name:
		return NotMarked{}
	case !lasts(c):
		return NotDue{}
	}
	if why := c.blocked(); why != nil {
		return why
	}
	return r.exceeds(m, c)
}

// exceeds says why the budgets of the pool, as they are now, do not let the
// machine go: so many others go, or were chosen and come before it.
func (r *round) exceeds(m method, c candidate) reason.Reason {
	machines, others := 0, 0
	for i := range r.s.Nodes {
		n := &r.s.Nodes[i]
		if n.Pool != c.node.Pool || n.PoolKind != c.node.PoolKind || !n.Initialized {
			continue
		}
		machines++
		chosen := n.Disruption != "" && n.Name >= c.node.Name
		if n.Name != c.node.Name && (!n.Ready || n.Deleting && !chosen) {
			others++
		}
	}
	return overBudget(c.pool, m.budget, machines, others)
}

// short says why there is not room for all of the pods on what is there; nil if
// there is.
func (w *whatIf) short() reason.Reason {
	if w.why == nil && len(w.replace) > 0 {
		return RoomTaken{Pod: w.replace[0].Pods[0]}
	}
	return w.why
}
