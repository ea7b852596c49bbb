package schedule

import (
	"math"
	"slices"

	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

// cost is what an offering counts for when plans are compared.
func cost(o offer, policy world.Policy) float64 {
	if o.price == quantity.PriceUnknown {
		return 1e12 // a million dollars an hour: bought when nothing else holds the pod
	}
	return float64(o.price + policy.MachineCost)
}

// maxDualGroups bounds the size of the joint programme; beyond it groups are
// priced one by one.
const maxDualGroups = 64

// appraise sets what a pod of each class is worth: what its requests cost where
// machines may be bought in fractions.
func appraise(s *shop, classes []*class, policy world.Policy) {
	newAppraiser(s, classes, policy).run()
}

// appraiser computes what pods are worth, again and again while they are bought
// for. Classes that may use the same offers are one group, whose demand is added
// up.
type appraiser struct {
	groups []*group
	duals  []*dual
}

// group is the demand of classes that may use the same offers.
type group struct {
	offers  *offerSet
	classes []*class
	total   []float64 // asked for, per resource
	unit    []float64 // the price of one unit of each resource
}

func newAppraiser(s *shop, classes []*class, policy world.Policy) *appraiser {
	a := &appraiser{}
	at := map[*offerSet]*group{}
	for _, c := range classes {
		o := s.demand(c.profile).ways[0].offers
		g := at[o]
		if g == nil {
			g = &group{offers: o, total: make([]float64, s.d.n())}
			at[o] = g
			a.groups = append(a.groups, g)
		}
		g.classes = append(g.classes, c)
	}
	size := len(a.groups)
	if size > maxDualGroups {
		size = 1
	}
	for groups := range slices.Chunk(a.groups, max(1, size)) {
		a.duals = append(a.duals, newDual(s, groups, policy))
	}
	return a
}

func (a *appraiser) run() {
	for _, g := range a.groups {
		clear(g.total)
		for _, c := range g.classes {
			for d, r := range c.request {
				g.total[d] += float64(r) * float64(c.left())
			}
		}
	}
	for _, p := range a.duals {
		p.reset()
		p.solve()
	}
	for _, g := range a.groups {
		for _, c := range g.classes {
			c.value, c.unit = 1e-9, g.unit
			for d, r := range c.request {
				c.value += g.unit[d] * float64(r)
			}
		}
	}
}

// dual is a linear programme: the cheapest fractional mix of offers whose
// capacity covers what all groups ask for, each from the offers that it may
// use. Its shadow prices are the unit prices, one per group and resource. It is
// solved by the simplex method with one row per group and resource;
// the columns (an offer, with every resource given to the group that pays most
// for it) are made when they are needed.
type dual struct {
	stats  *Stats
	groups []*group
	kinds  []*userKind
	row    [][]int // per group and resource; -1 where nothing is asked for
	scale  []float64

	*simplex
}

// userKind is the offers that the same groups may use, without those that a
// cheaper one beats.
type userKind struct {
	users []int
	cost  []float64 // per offer
	room  []float64 // per offer and resource
	best  []float64 // per resource, what the user that pays most pays for a unit
	payer []int     // and its row; -1 if nobody pays
}

func newDual(s *shop, groups []*group, policy world.Policy) *dual {
	p := &dual{stats: s.stats, groups: groups}
	n := s.d.n()
	kinds := map[string]*userKind{}
	rooms := map[*userKind][][]int64{}
	union := newSet(len(s.market.offers))
	for _, g := range groups {
		p.row = append(p.row, make([]int, n))
		union.or(g.offers.set)
	}
	key := make([]byte, len(groups))
	for o := union.next(0); o >= 0; o = union.next(o + 1) {
		for i, g := range groups {
			key[i] = 0
			if g.offers.has(o) {
				key[i] = 1
			}
		}
		k := kinds[string(key)]
		if k == nil {
			k = &userKind{best: make([]float64, n), payer: make([]int, n)}
			for i := range groups {
				if key[i] == 1 {
					k.users = append(k.users, i)
				}
			}
			kinds[string(key)] = k
			p.kinds = append(p.kinds, k)
		}
		room := s.roomOf(o)
		if slices.ContainsFunc(rooms[k], func(other []int64) bool { return roomier(other, room) }) {
			continue
		}
		rooms[k] = append(rooms[k], room)
		k.cost = append(k.cost, cost(s.market.offers[o], policy))
		for _, r := range room {
			k.room = append(k.room, float64(max(0, r)))
		}
	}
	return p
}

func roomier(a, b []int64) bool {
	for d := range a {
		if a[d] < b[d] {
			return false
		}
	}
	return true
}

// reset begins anew with what the groups ask for now. Rows are scaled to a
// demand of 1. Every row's first column is the machine that costs least for a
// unit of its resource, as though nobody paid for the others: no shadow price
// can be higher.
func (p *dual) reset() {
	p.scale = p.scale[:0]
	for i, g := range p.groups {
		for d, total := range g.total {
			p.row[i][d] = -1
			if total > 0 {
				p.row[i][d] = len(p.scale)
				p.scale = append(p.scale, total)
			}
		}
	}
	k := len(p.scale)
	ones, price := slices.Repeat([]float64{1}, k), slices.Repeat([]float64{math.Inf(1)}, k)
	for _, u := range p.kinds {
		n := len(u.best)
		for d := range n {
			rate := math.Inf(1)
			for o, c := range u.cost {
				rate = min(rate, c/max(1e-9, u.room[o*n+d]))
			}
			for _, g := range u.users {
				if r := p.row[g][d]; r >= 0 {
					price[r] = min(price[r], rate*p.scale[r])
				}
			}
		}
	}
	p.simplex = newSimplex(ones, ones, price)
}

func (p *dual) solve() {
	for range 20 * len(p.scale) {
		kind, enter := p.cheapest()
		reduced := 0.0
		if enter >= 0 {
			reduced = kind.cost[enter]
			for d, r := range kind.payer {
				if r >= 0 {
					amount := kind.room[enter*len(kind.payer)+d] / p.scale[r]
					p.add(r, amount)
					reduced -= p.y[r] * amount
				}
			}
		} else {
			r := p.overpaid(1e-9)
			if r < 0 {
				break
			}
			p.add(r, -1)
			reduced = p.y[r]
		}
		if p.swap(reduced) < 0 {
			break
		}
	}
	for i, g := range p.groups {
		g.unit = make([]float64, len(g.total))
		for d, r := range p.row[i] {
			if r >= 0 {
				g.unit[d] = max(0, p.y[r]) / g.total[d]
			}
		}
	}
}

// cheapest returns the offer that costs least for what its users would pay for
// it, if that is less than they would pay; every resource goes to the user that
// pays most.
func (p *dual) cheapest() (kind *userKind, offer int) {
	offer = -1
	gain := 1 + 1e-6
	for _, k := range p.kinds {
		paid := false
		for d := range k.best {
			k.best[d], k.payer[d] = 0, -1
			for _, g := range k.users {
				if r := p.row[g][d]; r >= 0 && p.y[r]/p.scale[r] > k.best[d] {
					k.best[d], k.payer[d] = p.y[r]/p.scale[r], r
					paid = true
				}
			}
		}
		if !paid {
			continue
		}
		p.stats.Evaluations += int64(len(k.cost))
		n := len(k.best)
		for o, c := range k.cost {
			worth := 0.0
			for d, room := range k.room[o*n : o*n+n] {
				worth += k.best[d] * room
			}
			if worth > gain*c {
				kind, offer, gain = k, o, worth/c
			}
		}
	}
	return kind, offer
}
