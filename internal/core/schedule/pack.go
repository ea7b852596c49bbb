package schedule

import (
	"math"
	"slices"

	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
)

// packer buys machines in one shop: always the one that costs least for what
// it holds, where a pod is worth what its requests cost at the unit prices of
// the cheapest fractional mix. A machine for picky pods is filled up with
// others, but a dear offer is not bought for pods that do not ask for it,
// because they are worth no more there than elsewhere.
type packer struct {
	stock
	shop      *shop
	policy    world.Policy
	groups    []*candidates
	appraiser *appraiser
	tie       float64 // how much dearer than the best a machine may be that holds more
}

// candidates are offers that suit the same classes. Of two of which one is
// better in every respect, only that one is kept.
type candidates struct {
	members []member
	offers  []candidate
	rent    []float64 // the most that a member pays for a unit of each resource asked for
}

// candidate is an offer with what a machine of it would hold.
type candidate struct {
	offer int
	cost  float64
	fresh bool // fill was computed with the present worths
	// worth is that of the pods held; until fill is computed, the most that
	// any fill could be worth.
	worth float64
	fill  []portion
}

// purchase is count machines of one offer with the same pods.
type purchase struct {
	group *candidates
	offer int
	fill  []portion
	count int
}

func newPacker(s *shop, classes []*class, policy world.Policy, book *rulebook) *packer {
	pk := &packer{stock: newStock(classes, s.stats, book), shop: s, policy: policy, appraiser: newAppraiser(s, classes, policy), tie: 1}
	for _, seed := range pk.flavours() {
		pk.addCandidates(seed)
	}
	return pk
}

// flavours are the different demands on open labels: only nil, nothing, in
// most pools.
func (pk *packer) flavours() [][]label.Mask {
	var out [][]label.Mask
	for _, c := range pk.classes {
		for _, w := range pk.shop.demand(c.profile).ways {
			same := func(m []label.Mask) bool { return slices.EqualFunc(m, w.masks, slices.Equal[label.Mask]) }
			if !slices.ContainsFunc(out, same) {
				out = append(out, w.masks)
			}
		}
	}
	return out
}

// meet narrows masks by others, per open key; nil leaves a key alone. ok is
// false if a key has nothing left. Neither argument is changed.
func meet(a, b []label.Mask) (both []label.Mask, ok bool) {
	if b == nil {
		return a, true
	}
	if a == nil {
		return b, true
	}
	both = slices.Clone(a)
	for i := range both {
		switch {
		case b[i] == nil:
		case both[i] == nil:
			both[i] = b[i]
		case !both[i].Meets(b[i]):
			return nil, false
		default:
			both[i] = both[i].And(b[i])
		}
	}
	return both, true
}

// addCandidates sorts the offers by which classes may use them, when the open
// labels are as the seed wants them.
func (pk *packer) addCandidates(seed []label.Mask) {
	var usable []member
	union := newSet(len(pk.shop.market.offers))
	for n, c := range pk.classes {
		ways := pk.shop.demand(c.profile).ways
		for i := range ways {
			if _, ok := meet(seed, ways[i].masks); ok {
				usable = append(usable, member{n, &ways[i]})
				union.or(ways[i].offers.set)
			}
		}
	}
	for _, offers := range pk.alike(usable, union) {
		g := &candidates{}
		for _, m := range usable {
			last := len(g.members) - 1
			if m.way.offers.has(offers[0]) && (last < 0 || g.members[last].class != m.class) {
				g.members = append(g.members, m)
			}
		}
		for _, o := range pk.pareto(offers) {
			g.offers = append(g.offers, candidate{offer: o, cost: cost(pk.shop.market.offers[o], pk.policy)})
		}
		pk.groups = append(pk.groups, g)
	}
}

// alike splits the offers into those that the same members may use.
func (pk *packer) alike(members []member, union set) [][]int {
	groupOf := make([]int32, len(pk.shop.market.offers))
	groups := int32(1)
	done := map[*offerSet]bool{}
	for _, m := range members {
		if done[m.way.offers] {
			continue
		}
		done[m.way.offers] = true
		split := map[int32]int32{}
		for o := union.next(0); o >= 0; o = union.next(o + 1) {
			if !m.way.offers.has(o) {
				continue
			}
			to, ok := split[groupOf[o]]
			if !ok {
				to = groups
				groups++
				split[groupOf[o]] = to
			}
			groupOf[o] = to
		}
	}
	at := make([]int, groups)
	var out [][]int
	for o := union.next(0); o >= 0; o = union.next(o + 1) {
		g := groupOf[o]
		if at[g] == 0 {
			out = append(out, nil)
			at[g] = len(out)
		}
		out[at[g]-1] = append(out[at[g]-1], o)
	}
	return out
}

// pareto keeps the offers, which come cheapest first, that no cheaper one beats
// in every respect.
func (pk *packer) pareto(offers []int) []int {
	var kept []int
	for _, o := range offers {
		if !slices.ContainsFunc(kept, func(k int) bool { return pk.beats(k, o) }) {
			kept = append(kept, o)
		}
	}
	return kept
}

// beats reports whether offer a has at least the room of b and counts no more
// against any limit.
func (pk *packer) beats(a, b int) bool {
	x, y := pk.shop.roomOf(a), pk.shop.roomOf(b)
	for d := range x {
		if x[d] < y[d] {
			return false
		}
	}
	for i := range pk.shop.limits {
		if size := pk.shop.limits[i].size; size[a] > size[b] {
			return false
		}
	}
	return true
}

// run buys for all classes, as far as limits and offers allow. Of answers that
// cost the same within the tie tolerance it takes the one with fewer machines.
func (pk *packer) run() []machine {
	bought := pk.improve(pk.greedy())
	if tolerance := 1 + float64(pk.policy.TieToleranceMicros)/1e6; tolerance > 1 && pk.placed() {
		pk.undo(bought)
		pk.tie = tolerance
		fewer := pk.greedy()
		if pk.placed() && machines(fewer) < machines(bought) && pk.total(fewer) <= tolerance*pk.total(bought) {
			return pk.deliver(fewer)
		}
		pk.undo(fewer)
		pk.redo(bought)
	}
	return pk.deliver(bought)
}

// placed reports whether nothing is left.
func (pk *packer) placed() bool {
	return !slices.ContainsFunc(pk.left, func(n int) bool { return n > 0 })
}

func machines(bought []purchase) (n int) {
	for _, b := range bought {
		n += b.count
	}
	return n
}

// total is what the machines count for.
func (pk *packer) total(bought []purchase) float64 {
	sum := 0.0
	for _, b := range bought {
		sum += float64(b.count) * cost(pk.shop.market.offers[b.offer], pk.policy)
	}
	return sum
}

// greedy buys until nothing is left that fits. When the best machine has become
// dearer for what it holds than at the last appraisal, worths are out of date:
// what is left asks for other shapes.
func (pk *packer) greedy() []purchase {
	var out []purchase
	pk.appraise()
	start, bought := 0.0, false
	for {
		g, c := pk.cheapest()
		if c == nil {
			return out
		}
		rate := c.cost / c.worth
		switch {
		case start == 0:
			start = rate
		case rate > start*staleRate && bought:
			pk.appraise()
			start, bought = 0, false
			continue
		}
		bought = true
		out = append(out, pk.take(g, c.offer, c.fill, math.MaxInt))
		pk.portion()
	}
}

// remaining is what the pods that are left are worth.
func (pk *packer) remaining() float64 {
	sum := 0.0
	for i, n := range pk.left {
		sum += pk.value[i] * float64(n)
	}
	return sum
}

// staleRate is how much dearer a machine may be than the first after an
// appraisal before worths are computed again.
const staleRate = 1.05

// appraise sets worths for what is left, which makes every fill stale.
func (pk *packer) appraise() {
	pk.appraiser.run()
	pk.priced()
	pk.portion()
	for _, g := range pk.groups {
		g.rent = pk.rent(g.members)
		for i := range g.offers {
			c := &g.offers[i]
			c.fresh, c.worth = false, 1e-9*float64(len(pk.shop.market.offers))
			for d, room := range pk.roomFor(c.offer) {
				c.worth += g.rent[d] * room
			}
		}
	}
}

// cheapest returns the candidate that costs least for what it holds. A fill is
// computed only when it might win, and again only when the pods for it are gone:
// with fewer pods left a machine seldom becomes better than it was. Of those
// that are dearer by no more than the tie tolerance, the one that holds most.
func (pk *packer) cheapest() (*candidates, *candidate) {
	for {
		var group *candidates
		var best *candidate
		rate := math.Inf(1)
		for _, g := range pk.groups {
			for i := range g.offers {
				if c := &g.offers[i]; c.worth > 0 && c.cost < rate*c.worth {
					group, best, rate = g, c, c.cost/c.worth
				}
			}
		}
		if best == nil {
			return nil, nil
		}
		if !pk.current(group, best) {
			pk.refill(group, best)
			continue
		}
		if pk.tie <= 1 {
			return group, best
		}
		for _, g := range pk.groups {
			for i := range g.offers {
				c := &g.offers[i]
				within := func() bool { return c.worth > best.worth && c.cost <= rate*pk.tie*c.worth }
				if within() && !pk.current(g, c) {
					pk.refill(g, c)
				}
				if within() {
					group, best = g, c
				}
			}
		}
		return group, best
	}
}

// current reports whether the fill was computed with the present worths and can
// still be bought as it is.
func (pk *packer) current(g *candidates, c *candidate) bool {
	return c.fresh && pk.stands(g, c)
}

// stands reports whether the fill can still be bought as it is.
func (pk *packer) stands(g *candidates, c *candidate) bool {
	for _, p := range c.fill {
		if p.n > pk.left[g.members[p.member].class] {
			return false
		}
	}
	return pk.shop.affords(c.offer)
}

// take buys as many machines as the pods left can fill and the limits allow.
func (pk *packer) take(g *candidates, offer int, fill []portion, most int) purchase {
	for _, p := range fill {
		most = min(most, pk.left[g.members[p.member].class]/p.n)
	}
	for i := range pk.shop.limits {
		l := &pk.shop.limits[i]
		if size := l.size[offer]; size > 0 {
			most = min(most, int(max(0, l.left)/size))
		}
	}
	for _, p := range fill {
		to := g.members[p.member].class
		pk.left[to] -= p.n * most
		pk.classes[to].next += p.n * most
	}
	for i := range pk.shop.limits {
		pk.shop.limits[i].left -= pk.shop.limits[i].size[offer] * int64(most)
	}
	return purchase{g, offer, slices.Clone(fill), most}
}

// undo gives everything back.
func (pk *packer) undo(bought []purchase) {
	for _, b := range bought {
		for _, p := range b.fill {
			to := b.group.members[p.member].class
			pk.left[to] += p.n * b.count
			pk.classes[to].next -= p.n * b.count
		}
		for i := range pk.shop.limits {
			pk.shop.limits[i].left += pk.shop.limits[i].size[b.offer] * int64(b.count)
		}
	}
}

// redo buys again what was undone.
func (pk *packer) redo(bought []purchase) {
	for _, b := range bought {
		pk.take(b.group, b.offer, b.fill, b.count)
	}
}

// deliver makes machines of the purchases.
func (pk *packer) deliver(bought []purchase) []machine {
	var out []machine
	for _, b := range bought {
		for _, p := range b.fill {
			pk.classes[b.group.members[p.member].class].next -= p.n * b.count
		}
	}
	for _, b := range bought {
		for range b.count {
			m := machine{shop: pk.shop, offer: b.offer}
			for _, p := range b.fill {
				to := b.group.members[p.member]
				m.picks = append(m.picks, pick{pk.classes[to.class], to.way, pk.classes[to.class].take(p.n)})
			}
			out = append(out, m)
		}
	}
	return out
}
