package schedule

import (
	"karpenter/internal/core/label"
)

// refill computes what a machine of the candidate would hold of the pods that
// are left: next always the pods whose shape matches the room left best.
func (pk *packer) refill(g *candidates, c *candidate) {
	c.fresh, c.worth, c.fill = true, 0, c.fill[:0]
	if !pk.shop.affords(c.offer) {
		return
	}
	n := pk.shop.d.n()
	total := pk.shop.roomOf(c.offer)
	room := make([]int64, n)
	copy(room, total)
	weight := make([]float64, n)
	taken := make([]int, len(g.members))
	var masks []label.Mask
	active := make([]int, 0, len(g.members))
	for i := range g.members {
		if g.members[i].class.left() > 0 {
			active = append(active, i)
		}
	}
	for {
		for d := range weight {
			weight[d] = 0
			if total[d] > 0 {
				weight[d] = float64(room[d]) / float64(total[d]) / float64(total[d])
			}
		}
		best, at := -1.0, -1
		keep := active[:0]
		for _, i := range active {
			m := &g.members[i]
			pk.shop.stats.Evaluations++
			if taken[i] >= m.class.left() || !fits(m.class.request, room) {
				continue
			}
			if m.way.masks != nil {
				if _, ok := meet(masks, m.way.masks); !ok {
					continue
				}
			}
			keep = append(keep, i)
			score, share := 0.0, 0.0
			for d, r := range m.class.request {
				if r > 0 {
					score += weight[d] * float64(r)
					share += float64(r) / float64(total[d])
				}
			}
			if share > 0 {
				score *= m.class.value / share
			}
			if score > best {
				best, at = score, i
			}
		}
		active = keep
		if at < 0 {
			break
		}
		m := &g.members[at]
		k := times(m.class.request, room, m.class.left()-taken[at])
		if len(active) > 1 {
			k = max(1, k/8)
		}
		taken[at] += k
		c.worth += float64(k) * m.class.value
		masks, _ = meet(masks, m.way.masks)
		for d, r := range m.class.request {
			room[d] -= r * int64(k)
		}
	}
	for i, k := range taken {
		if k > 0 {
			c.fill = append(c.fill, portion{i, k})
		}
	}
}
