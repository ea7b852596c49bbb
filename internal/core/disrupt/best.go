package disrupt

import (
	"slices"
	"time"

	"karpenter/internal/core/quantity"
	"karpenter/internal/core/reason"
	"karpenter/internal/core/world"
)

// Best is what would save money about one machine if nothing kept it: its pods
// go to other machines, or to a cheaper one that is bought. Blockers, budgets and
// the times of its pool are not asked. With no such move it says why.
func Best(s *world.Snapshot, now time.Time, node string, opt Options) (*Command, reason.Reason) {
	i := slices.IndexFunc(s.Nodes, func(n world.Node) bool { return n.Name == node })
	if i < 0 {
		return nil, Gone{}
	}
	var d Decision
	r := newRound(s, now, opt, &d)
	m := methods[len(methods)-1]
	c := r.candidate(&s.Nodes[i], m)
	if c.node.Claim == "" || c.pool == nil {
		return nil, NotOurs{}
	}
	w := r.whatIf([]candidate{c}, s)
	switch {
	case w.why != nil:
		return nil, w.why
	case len(w.replace) == 0:
		return w.command(m.name), nil
	case c.price == quantity.PriceUnknown:
		return nil, NoPrice{}
	}
	search := &search{round: r, method: m}
	w, why := search.cheaper([]candidate{c}, search.below(c.price))
	if _, nowhere := why.(NoOtherPlace); why == nil && len(w.replace) == 0 || nowhere {
		return nil, NotCheaper{Price: c.price}
	}
	if why != nil {
		return nil, why
	}
	return w.command(m.name), nil
}

// Price is what the machine costs per hour; quantity.PriceUnknown if nobody
// knows.
func Price(s *world.Snapshot, n *world.Node) quantity.Price {
	return prices{}.of(s, s.Pool(n.PoolKind, n.Pool), n)
}

// Cost is how many machines are owned, those on their way in or out included, and
// what they cost per hour, as far as their prices are known.
func Cost(s *world.Snapshot) (machines int, perHour quantity.Price) {
	known := prices{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Claim == "" {
			continue
		}
		machines++
		if price := known.of(s, s.Pool(n.PoolKind, n.Pool), n); price != quantity.PriceUnknown {
			perHour += price
		}
	}
	return machines, perHour
}
