package schedule

import (
	"math"
	"slices"

	"karpenter/internal/core/label"
)

// refill puts pods on a machine of the candidate: next always those that match
// the shape of the room left best and are worth most for what they take.
func (pk *packer) refill(g *candidates, c *candidate) {
	c.fresh, c.worth, c.fill = true, 0, c.fill[:0]
	if !pk.shop.affords(c.offer) {
		return
	}
	taken, worth := pk.fill(g, c.offer)
	c.worth = worth
	for i, n := range taken {
		if n > 0 {
			c.fill = append(c.fill, portion{i, n})
		}
	}
}

// fill returns how many pods of each member the offer holds, and their worth.
func (pk *packer) fill(g *candidates, offer int) (taken []int, worth float64) {
	if pk.host != nil {
		pk.host.clear()
		for i := range pk.shop.daemons {
			if d := &pk.shop.daemons[i]; d.on.has(offer) {
				pk.host.put(d.rules, 1)
			}
		}
	}
	total := pk.shop.roomOf(offer)
	room := slices.Clone(total)
	weight := make([]float64, len(room))
	taken = make([]int, len(g.members))
	active := make([]int, 0, len(g.members)) // that still fit
	keen := make([]float64, len(g.members))  // worth for what they take, see below
	for i := range g.members {
		c := g.members[i].class
		if c.left() == 0 || !fits(c.request, room) {
			continue
		}
		rent := 1e-9
		for d, r := range c.request {
			rent += g.most[d] * float64(r)
		}
		// The root: shape matters more than worth, or the pods that would fill
		// the gaps are used up where they are worth most, and missed later.
		keen[i] = math.Sqrt(c.value / rent)
		active = append(active, i)
	}
	var masks []label.Mask
	for {
		for d := range weight {
			weight[d] = 0
			if total[d] > 0 {
				weight[d] = float64(room[d]) / float64(total[d]) / float64(total[d])
			}
		}
		best, at := -1.0, -1
		keep := active[:0]
		pk.shop.stats.Evaluations += int64(len(active))
		for _, i := range active {
			m := &g.members[i]
			if taken[i] >= m.class.left() || !fits(m.class.request, room) {
				continue
			}
			if m.way.masks != nil {
				if _, ok := meet(masks, m.way.masks); !ok {
					continue
				}
			}
			if m.class.rules != nil && m.class.rules.onHost && pk.host.limit(m.class.rules) == 0 {
				continue
			}
			keep = append(keep, i)
			score := 0.0
			for d, r := range m.class.request {
				score += weight[d] * float64(r)
			}
			if score *= keen[i]; score > best {
				best, at = score, i
			}
		}
		active = keep
		if at < 0 {
			return taken, worth
		}
		m := &g.members[at]
		k := times(m.class.request, room, m.class.left()-taken[at])
		if len(active) > 1 {
			k = max(1, k/8)
		}
		if r := m.class.rules; r != nil && r.onHost {
			k = min(k, pk.host.limit(r))
			pk.host.put(r, k)
		}
		taken[at] += k
		worth += float64(k) * m.class.value
		masks, _ = meet(masks, m.way.masks)
		for d, r := range m.class.request {
			room[d] -= r * int64(k)
		}
	}
}
