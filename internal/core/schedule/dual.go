package schedule

import (
	"math"

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

// appraise sets what a pod of each class is worth: what its requests cost where
// machines may be bought in fractions. Classes that may use the same offers are
// priced together, since they can share machines; the unit prices are those of
// the cheapest fractional mix of offers that holds all that is left of them.
func appraise(s *shop, classes []*class, policy world.Policy) {
	groups := map[*offerSet][]*class{}
	var order []*offerSet
	for _, c := range classes {
		o := s.demand(c.profile).ways[0].offers
		if groups[o] == nil {
			order = append(order, o)
		}
		groups[o] = append(groups[o], c)
	}
	for _, o := range order {
		total := make([]float64, s.d.n())
		for _, c := range groups[o] {
			for d, r := range c.request {
				total[d] += float64(r) * float64(c.left())
			}
		}
		unit := s.unitPrices(o, total, policy)
		for _, c := range groups[o] {
			c.value = 1e-9
			for d, r := range c.request {
				c.value += unit[d] * float64(r)
			}
		}
	}
}

// unitPrices solves: the cheapest fractional mix of offers that holds the
// total. It returns the price of one unit of each resource at that optimum, by
// the revised simplex method with one row per resource that is asked for.
func (s *shop) unitPrices(offers *offerSet, total []float64, policy world.Policy) []float64 {
	var rows []int
	for d, t := range total {
		if t > 0 {
			rows = append(rows, d)
		}
	}
	unit := make([]float64, len(total))
	k := len(rows)
	if k == 0 {
		return unit
	}
	// Rows are scaled so that the total is 1 in each.
	binv := make([][]float64, k) // inverse of the basis
	x := make([]float64, k)      // values of the basic columns
	price := make([]float64, k)  // their prices; artificial columns at first
	for i := range binv {
		binv[i] = make([]float64, k)
		binv[i][i], x[i], price[i] = 1, 1, 1e18
	}
	y, column := make([]float64, k), make([]float64, k)
	for range 50 * k {
		for j := range y {
			y[j] = 0
			for i := range binv {
				y[j] += price[i] * binv[i][j]
			}
		}
		enter, surplus, gain := -1, -1, 1e-7
		for o := offers.next(0); o >= 0; o = offers.next(o + 1) {
			room := s.roomOf(o)
			worth := 0.0
			for j, d := range rows {
				worth += y[j] * float64(max(0, room[d])) / total[d]
			}
			c := cost(s.market.offers[o], policy)
			if g := worth/c - 1; g > gain {
				enter, gain = o, g
			}
		}
		s.stats.Evaluations++
		if enter < 0 {
			for j := range y {
				if y[j] < -1e-9 && (surplus < 0 || y[j] < y[surplus]) {
					surplus = j
				}
			}
			if surplus < 0 {
				break
			}
		}
		entering := 0.0
		if enter >= 0 {
			entering = cost(s.market.offers[enter], policy)
		}
		for i := range column {
			column[i] = 0
			if surplus >= 0 {
				column[i] = -binv[i][surplus]
				continue
			}
			room := s.roomOf(enter)
			for j, d := range rows {
				column[i] += binv[i][j] * float64(max(0, room[d])) / total[d]
			}
		}
		leave, least := -1, math.Inf(1)
		for i := range x {
			if column[i] > 1e-12 && x[i]/column[i] < least {
				leave, least = i, x[i]/column[i]
			}
		}
		if leave < 0 {
			break
		}
		pivot(binv, x, column, leave)
		price[leave] = entering
	}
	for j, d := range rows {
		unit[d] = max(0, y[j]) / total[d]
	}
	return unit
}

// pivot brings the entering column into the basis at row r.
func pivot(binv [][]float64, x, column []float64, r int) {
	p := column[r]
	for j := range binv[r] {
		binv[r][j] /= p
	}
	x[r] /= p
	for i := range binv {
		if f := column[i]; i != r && f != 0 {
			for j := range binv[i] {
				binv[i][j] -= f * binv[r][j]
			}
			x[i] -= f * x[r]
		}
	}
}
