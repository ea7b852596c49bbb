package schedule

import (
	"cmp"
	"math"
	"slices"
)

// pattern is one machine with what it holds, by the numbers of classes.
type pattern struct {
	group *candidates
	offer int
	cost  float64
	fill  []portion
}

// blend is a linear programme: which patterns, in fractions, hold all pods for
// the least money. It has one row per class. The first patterns are those that
// were bought one by one; more are made where its shadow prices say that they
// would pay (column generation).
type blend struct {
	pk    *packer
	row   []int // per class; -1 where nothing is left
	class []int // per row
	pool  []pattern
	basis []int // per row: an index into pool, or -1 for a surplus
	*simplex
	steps int // that may still be taken
}

const (
	// maxBlendRows bounds the size of the programme, and blendWork the steps: one
	// costs the square of the rows.
	maxBlendRows = 400
	blendWork    = 128 << 20
	blendRounds  = 10  // of making new patterns
	mostly       = 0.5 // of a machine is taken for a whole one
)

// improve replaces what was bought one by one by a cheaper mix, if it finds one.
// That takes machines enough: a mix of n classes has up to n kinds of machines,
// and of each, the part that is not whole must be bought otherwise.
func (pk *packer) improve(first []purchase) []purchase {
	rows := len(pk.classes)
	if rows < 2 || rows > maxBlendRows || 3*machines(first) < rows || !pk.placed() {
		return first
	}
	pk.undo(first)
	pk.appraise()
	x := newBlend(pk, first)
	x.solve()
	second := append(x.buy(), pk.greedy()...)
	if pk.placed() && pk.total(second) < pk.total(first) {
		return second
	}
	pk.undo(second)
	pk.redo(first)
	return first
}

func newBlend(pk *packer, first []purchase) *blend {
	x := &blend{pk: pk}
	for c := range pk.classes {
		x.row = append(x.row, -1)
		if pk.left[c] > 0 {
			x.row[c] = len(x.class)
			x.class = append(x.class, c)
		}
	}
	k := len(x.class)
	x.steps = blendWork / (k * k)
	x.basis = make([]int, k)
	x.singles()
	for _, b := range first {
		x.keep(b.group, b.offer, b.fill)
	}
	return x
}

// keep puts a fill into the pool.
func (x *blend) keep(g *candidates, offer int, fill []portion) {
	p := pattern{g, offer, cost(x.pk.shop.market.offers[offer], x.pk.policy), slices.Clone(fill)}
	x.pool = append(x.pool, p)
}

// singles starts with machines that hold one class each.
func (x *blend) singles() {
	pk := x.pk
	best := make([]pattern, len(x.class))
	for _, g := range pk.groups {
		for i, m := range g.members {
			r := x.row[m.class]
			if r < 0 {
				continue
			}
			for _, o := range g.offers {
				if !pk.shop.affords(o.offer) {
					continue
				}
				pk.open(o.offer)
				n := min(howMany(pk.left[m.class], pk.requestOf(m.class), pk.roomFor(o.offer)), pk.bears(m.class))
				if n == 0 {
					continue
				}
				if b := &best[r]; b.group == nil || o.cost/float64(n) < b.cost/float64(b.fill[0].n) {
					*b = pattern{g, o.offer, o.cost, []portion{{i, n}}}
				}
			}
		}
	}
	var demand, unit, price []float64
	for r, p := range best {
		x.pool = append(x.pool, p)
		x.basis[r] = r
		demand, unit, price = append(demand, float64(pk.left[x.class[r]])), append(unit, float64(p.fill[0].n)), append(price, p.cost)
	}
	x.simplex = newSimplex(demand, unit, price)
}

func (x *blend) solve() {
	for x.step() {
	}
	for range blendRounds {
		made := x.generate()
		if made == 0 {
			return
		}
		for range 3 * made {
			if !x.step() {
				break
			}
		}
	}
}

// step brings the pattern into the basis that is worth most more than it costs.
func (x *blend) step() bool {
	if x.steps--; x.steps < 0 {
		return false
	}
	enter, gain := -1, 1+1e-5
	surplus := x.overpaid(1e-7)
	if surplus < 0 {
		for i := range x.pool {
			if p := &x.pool[i]; x.worth(p) > gain*p.cost {
				enter, gain = i, x.worth(p)/p.cost
			}
		}
		if enter < 0 {
			return false
		}
	}
	leave := x.swap(x.enter(enter, surplus))
	if leave >= 0 {
		x.basis[leave] = enter
	}
	return leave >= 0
}

func (x *blend) worth(p *pattern) float64 {
	sum := 0.0
	for _, f := range p.fill {
		sum += x.y[x.row[p.group.members[f.member].class]] * float64(f.n)
	}
	return sum
}

// enter computes the column of a pattern, or of the surplus of a row, and what
// it costs less what it is worth.
func (x *blend) enter(enter, surplus int) (reduced float64) {
	if enter < 0 {
		x.add(surplus, -1)
		return x.y[surplus]
	}
	p := &x.pool[enter]
	for _, f := range p.fill {
		x.add(x.row[p.group.members[f.member].class], float64(f.n))
	}
	return p.cost - x.worth(p)
}

// generate makes new patterns at the present shadow prices: in each group the
// one that is worth most for what it costs.
func (x *blend) generate() (made int) {
	pk := x.pk
	for c := range pk.value {
		if r := x.row[c]; r >= 0 {
			pk.value[c] = max(1e-9, x.y[r])
		}
	}
	for _, g := range pk.groups {
		k := newKnapsack(&pk.stock, g.members, g.rent)
		best, rate := -1, 1+1e-3
		var fill []portion
		for _, o := range pk.promising(g, k, rate) {
			if o.bound <= rate*o.cost {
				break
			}
			if some, worth := k.best(pk.roomFor(o.offer), func() { pk.open(o.offer) }); worth > rate*o.cost {
				best, rate, fill = o.offer, worth/o.cost, some
			}
		}
		if best >= 0 {
			x.keep(g, best, fill)
			made++
		}
	}
	return made
}

// promise is an offer with its bound.
type promise struct {
	offer       int
	cost, bound float64
}

// promising lists the offers that may hold more than rate times what they cost,
// those that promise most first.
func (pk *packer) promising(g *candidates, k *knapsack, rate float64) []promise {
	var out []promise
	for i := range g.offers {
		c := &g.offers[i]
		if b := k.bound(pk.roomFor(c.offer)); b > rate*c.cost && pk.shop.affords(c.offer) {
			out = append(out, promise{c.offer, c.cost, b})
		}
	}
	slices.SortFunc(out, func(a, b promise) int {
		return cmp.Or(cmp.Compare(b.bound/b.cost, a.bound/a.cost), cmp.Compare(a.offer, b.offer))
	})
	return out
}

// buy takes the whole machines of the mix, and those of which the greater part
// is in it, as far as the pods go round.
func (x *blend) buy() []purchase {
	var out []purchase
	take := func(r, n int) {
		p := &x.pool[x.basis[r]]
		if b := x.pk.take(p.group, p.offer, p.fill, n); b.count > 0 {
			out = append(out, b)
		}
	}
	var parts []int
	for r, i := range x.basis {
		if i < 0 {
			continue
		}
		whole := math.Floor(x.x[r] + 1e-6)
		if x.x[r] -= whole; x.x[r] >= mostly {
			parts = append(parts, r)
		}
		take(r, int(whole))
	}
	slices.SortStableFunc(parts, func(a, b int) int { return cmp.Compare(x.x[b], x.x[a]) })
	for _, r := range parts {
		take(r, 1)
	}
	return out
}
