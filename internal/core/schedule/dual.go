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
// machines may be bought in fractions. Classes that may use the same offers are
// one group, whose demand is added up.
func appraise(s *shop, classes []*class, policy world.Policy) {
	var groups []*group
	at := map[*offerSet]*group{}
	for _, c := range classes {
		o := s.demand(c.profile).ways[0].offers
		g := at[o]
		if g == nil {
			g = &group{offers: o, total: make([]float64, s.d.n())}
			at[o] = g
			groups = append(groups, g)
		}
		g.classes = append(g.classes, c)
		for d, r := range c.request {
			g.total[d] += float64(r) * float64(c.left())
		}
	}
	if len(groups) <= maxDualGroups {
		newDual(s, groups, policy).solve()
	} else {
		for i := range groups {
			newDual(s, groups[i:i+1], policy).solve()
		}
	}
	for _, g := range groups {
		for _, c := range g.classes {
			c.value, c.unit = 1e-9, g.unit
			for d, r := range c.request {
				c.value += g.unit[d] * float64(r)
			}
		}
	}
}

// group is the demand of classes that may use the same offers.
type group struct {
	offers  *offerSet
	classes []*class
	total   []float64 // asked for, per resource
	unit    []float64 // the price of one unit of each resource
}

// dual is a linear programme: the cheapest fractional mix of offers whose
// capacity covers what all groups ask for, each from the offers that it may
// use. Its shadow prices are the unit prices, one per group and resource. It is
// solved by the revised simplex method with one row per group and resource;
// the columns (an offer, with every resource given to the group that pays most
// for it) are made when they are needed.
type dual struct {
	s      *shop
	policy world.Policy
	groups []*group
	row    [][]int // per group and resource; -1 where nothing is asked for
	scale  []float64
	kinds  []*userKind

	binv     [][]float64 // inverse of the basis
	x, price []float64   // values and prices of the basic columns
	y        []float64   // shadow prices
	column   []float64
}

func newDual(s *shop, groups []*group, policy world.Policy) *dual {
	p := &dual{s: s, policy: policy, groups: groups}
	n := s.d.n()
	union := newSet(len(s.market.offers))
	for _, g := range groups {
		rows := make([]int, n)
		for d := range rows {
			rows[d] = -1
			if g.total[d] > 0 {
				rows[d] = len(p.scale)
				p.scale = append(p.scale, g.total[d])
			}
		}
		p.row = append(p.row, rows)
		union.or(g.offers.set)
	}
	p.pruned(union)
	k := len(p.scale)
	p.binv, p.x, p.price = make([][]float64, k), make([]float64, k), make([]float64, k)
	p.y, p.column = make([]float64, k), make([]float64, k)
	for i := range p.binv {
		// Rows are scaled to a demand of 1; artificial columns come first.
		p.binv[i] = make([]float64, k)
		p.binv[i][i], p.x[i], p.price[i] = 1, 1, 1e18
	}
	return p
}

// userKind is the offers that the same groups may use.
type userKind struct {
	users  []int
	offers []int     // those that no cheaper one beats
	best   []float64 // per resource, what the user that pays most pays for a unit
	payer  []int     // and its row; -1 if nobody pays
}

// pruned sorts the offers by who may use them.
func (p *dual) pruned(union set) {
	kinds := map[string]*userKind{}
	var key []byte
	for o := union.next(0); o >= 0; o = union.next(o + 1) {
		key = key[:0]
		for i, g := range p.groups {
			if g.offers.has(o) {
				key = append(key, byte(i), byte(i>>8))
			}
		}
		k := kinds[string(key)]
		if k == nil {
			k = &userKind{best: make([]float64, p.s.d.n()), payer: make([]int, p.s.d.n())}
			for i, g := range p.groups {
				if g.offers.has(o) {
					k.users = append(k.users, i)
				}
			}
			kinds[string(key)] = k
			p.kinds = append(p.kinds, k)
		}
		if !slices.ContainsFunc(k.offers, func(other int) bool { return roomier(p.s.roomOf(other), p.s.roomOf(o)) }) {
			k.offers = append(k.offers, o)
		}
	}
}

func roomier(a, b []int64) bool {
	for d := range a {
		if a[d] < b[d] {
			return false
		}
	}
	return true
}

func (p *dual) solve() {
	for range 20 * len(p.scale) {
		p.shadow()
		kind, enter := p.cheapest()
		surplus := -1
		if enter < 0 {
			for j, y := range p.y {
				if y < -1e-9 && (surplus < 0 || y < p.y[surplus]) {
					surplus = j
				}
			}
			if surplus < 0 {
				break
			}
		}
		if !p.step(kind, enter, surplus) {
			break
		}
	}
	p.shadow()
	for i, g := range p.groups {
		g.unit = make([]float64, len(g.total))
		for d, r := range p.row[i] {
			if r >= 0 {
				g.unit[d] = max(0, p.y[r]) / g.total[d]
			}
		}
	}
}

func (p *dual) shadow() {
	clear(p.y)
	for i, price := range p.price {
		if price != 0 {
			for j, b := range p.binv[i] {
				p.y[j] += price * b
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
		for d := range k.best {
			k.best[d], k.payer[d] = 0, -1
			for _, g := range k.users {
				if r := p.row[g][d]; r >= 0 && p.y[r]/p.scale[r] > k.best[d] {
					k.best[d], k.payer[d] = p.y[r]/p.scale[r], r
				}
			}
		}
		p.s.stats.Evaluations += int64(len(k.offers))
		for _, o := range k.offers {
			worth := 0.0
			for d, room := range p.s.roomOf(o) {
				worth += k.best[d] * float64(max(0, room))
			}
			if c := cost(p.s.market.offers[o], p.policy); worth > gain*c {
				kind, offer, gain = k, o, worth/c
			}
		}
	}
	return kind, offer
}

// step brings an offer, or the surplus of a row, into the basis.
func (p *dual) step(kind *userKind, enter, surplus int) bool {
	entering := 0.0
	rows := make([]float64, len(p.scale))
	if enter >= 0 {
		entering = cost(p.s.market.offers[enter], p.policy)
		for d, room := range p.s.roomOf(enter) {
			if r := kind.payer[d]; r >= 0 {
				rows[r] = float64(max(0, room)) / p.scale[r]
			}
		}
	} else {
		rows[surplus] = -1
	}
	for i := range p.column {
		p.column[i] = 0
		for j, v := range rows {
			if v != 0 {
				p.column[i] += p.binv[i][j] * v
			}
		}
	}
	leave, least := -1, math.Inf(1)
	for i, c := range p.column {
		if c > 1e-10 && p.x[i]/c < least {
			leave, least = i, p.x[i]/c
		}
	}
	if leave < 0 {
		return false
	}
	p.pivot(leave)
	p.price[leave] = entering
	return true
}

// pivot puts the entering column into the basis at row r.
func (p *dual) pivot(r int) {
	at := p.column[r]
	for j := range p.binv[r] {
		p.binv[r][j] /= at
	}
	p.x[r] /= at
	for i := range p.binv {
		if f := p.column[i]; i != r && f != 0 {
			for j, b := range p.binv[r] {
				if b != 0 {
					p.binv[i][j] -= f * b
				}
			}
			p.x[i] -= f * p.x[r]
		}
	}
}
