package disrupt

import (
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/reason"
)

// line is the least score of a move that a balanced pool makes. A move scores
// its share of what the pool costs, divided by its share of what would be
// disturbed if the whole pool went. Source of formula and line: the public
// documentation of the policy in v1; half is the greatest line that lets a
// machine be replaced by one of the same family and half its size.
const line = 0.5

// whole is what all machines of a pool cost per hour, as far as that is known,
// and what it would disturb to remove them.
type whole struct {
	cost     quantity.Price
	disturbs float64
}

// wholeOf sums up a pool as it was when the round began.
func (r *round) wholeOf(k poolKey) whole {
	if r.wholes == nil {
		r.wholes = map[poolKey]whole{}
		for i := range r.began.Nodes {
			n := &r.began.Nodes[i]
			if n.Claim == "" {
				continue
			}
			k := poolKey{n.PoolKind, n.Pool}
			w := r.wholes[k]
			if price := r.prices.of(r.began, r.began.Pool(n.PoolKind, n.Pool), n); price != quantity.PriceUnknown {
				w.cost += price
			}
			w.disturbs += disturbance(n)
			r.wholes[k] = w
		}
	}
	return r.wholes[k]
}

// unbalanced says why a balanced pool does not make a move that saves so much
// per hour; nil if all pools make it. What a move over several pools saves is
// shared out as their machines cost.
func (r *round) unbalanced(set []candidate, saves quantity.Price) reason.Reason {
	parts := map[poolKey]whole{}
	var keys []poolKey
	var sum quantity.Price
	for _, c := range set {
		k := c.poolKey()
		p, known := parts[k]
		if !known && c.pool.Disruption.Balanced {
			keys = append(keys, k)
		}
		if c.price != quantity.PriceUnknown {
			p.cost, sum = p.cost+c.price, sum+c.price
		}
		p.disturbs += c.disturbs
		parts[k] = p
	}
	for _, k := range keys {
		all, part := r.wholeOf(k), parts[k]
		score := 0.0
		if all.cost > 0 && all.disturbs > 0 && sum > 0 && saves > 0 {
			share := float64(saves) * float64(part.cost) / float64(sum)
			score = share / float64(all.cost) / (part.disturbs / all.disturbs)
		}
		if score < line {
			return Unbalanced{Pool: k.name, Score: score, Saves: saves, Disturbs: part.disturbs}
		}
	}
	return nil
}
