package schedule

import (
	"math"

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
// What it returns is valid until the next call.
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
	n := len(total)
	room := pk.room[:n]
	for d, r := range total {
		room[d] = float64(r)
	}
	pk.taken = append(pk.taken[:0], make([]int, len(g.members))...)
	taken = pk.taken
	active := pk.active[:0] // that still fit
	for i := range g.members {
		if g.members[i].class.left() > 0 {
			active = append(active, i)
		}
	}
	pk.active = active
	weight := pk.weight[:n]
	var masks []label.Mask
	for {
		for d := range weight {
			weight[d] = 0
			if total[d] > 0 {
				weight[d] = room[d] / float64(total[d]) / float64(total[d])
			}
		}
		best, at := -1.0, -1
		keep := active[:0]
		pk.shop.stats.Evaluations += int64(len(active))
		for _, i := range active {
			score, fit := 0.0, true
			for d, r := range g.need[i*n : i*n+n] {
				fit = fit && (r <= room[d] || r == 0)
				score += weight[d] * r
			}
			if !fit || worth > 0 && worth+g.value[i] > pk.share {
				continue
			}
			if score *= g.keen[i]; score <= best {
				keep = append(keep, i)
				continue
			}
			m := &g.members[i]
			if taken[i] >= m.class.left() {
				continue
			}
			if m.way.masks != nil {
				if _, ok := meet(masks, m.way.masks); !ok {
					continue
				}
			}
			if r := m.class.rules; r != nil && r.onHost && pk.host.limit(r) == 0 {
				continue
			}
			keep = append(keep, i)
			best, at = score, i
		}
		active = keep
		if at < 0 {
			return taken, worth
		}
		m := &g.members[at]
		k := m.class.left() - taken[at]
		for d, r := range g.need[at*n : at*n+n] {
			if r > 0 {
				k = min(k, int(room[d]/r))
			}
		}
		if len(active) > 1 {
			k = max(1, k/8)
		}
		if more := (pk.share - worth) / m.class.value; float64(k) > more {
			k = max(1, int(more))
		}
		if r := m.class.rules; r != nil && r.onHost {
			k = min(k, pk.host.limit(r))
			pk.host.put(r, k)
		}
		taken[at] += k
		worth += float64(k) * m.class.value
		masks, _ = meet(masks, m.way.masks)
		for d, r := range g.need[at*n : at*n+n] {
			room[d] -= r * float64(k)
		}
	}
}

// prepare computes what fill needs to know of the members: what a pod asks for,
// is worth, and how much that is for what it takes.
func (g *candidates) prepare() {
	g.need, g.value, g.keen = g.need[:0], g.value[:0], g.keen[:0]
	for i := range g.members {
		c := g.members[i].class
		rent := 1e-9
		for d, r := range c.request {
			rent += g.most[d] * float64(r)
			g.need = append(g.need, float64(r))
		}
		// The root: shape matters more than worth, or the pods that would fill
		// the gaps are used up where they are worth most, and missed later.
		keen := math.Sqrt(c.value / rent)
		if r := c.rules; r != nil && r.onHost {
			keen *= 4 // few may share a machine: not to be left for the end
		}
		g.value, g.keen = append(g.value, c.value), append(g.keen, keen)
	}
}
