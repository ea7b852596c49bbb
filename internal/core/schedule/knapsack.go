package schedule

import (
	"cmp"
	"slices"

	"karpenter/internal/core/label"
)

// knapsack fills machines of a group with what is worth most for the room that
// it takes, where room has a rent per resource.
type knapsack struct {
	pk     *packer
	g      *candidates
	orders [][]int // members, best first, for several rents

	// For a bound, by the first order:
	rent        []float64
	paid, worth []float64 // sums of rent and value up to each member
}

// leans are the rents of the first resource, relative to what the market asks.
// Where the pods left are lopsided, other rents than those fill machines best.
var leans = [...]float64{1, 0.02, 0.2, 0.5, 2, 5, 50}

// skips is how many of the best members are left out in turn, so that they do
// not end up in every pattern.
const skips = 3

func newKnapsack(pk *packer, g *candidates) *knapsack {
	k := &knapsack{pk: pk, g: g, rent: g.rent}
	pays, density := make([]float64, len(g.members)), make([]float64, len(g.members))
	for _, lean := range leans {
		var order []int
		for i, m := range g.members {
			if pk.left[m.class] == 0 {
				continue
			}
			pays[i] = 1e-12
			for d, a := range pk.requestOf(m.class) {
				if rent := g.rent[d] * a; d == 0 {
					pays[i] += rent * lean
				} else {
					pays[i] += rent
				}
			}
			density[i] = pk.value[m.class] / pays[i]
			order = append(order, i)
		}
		slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(density[b], density[a]), cmp.Compare(a, b)) })
		k.orders = append(k.orders, order)
		if lean != 1 {
			continue
		}
		paid, worth := 0.0, 0.0
		for _, i := range order {
			c := g.members[i].class
			n := float64(pk.left[c])
			paid, worth = paid+pays[i]*n, worth+pk.value[c]*n
			k.paid, k.worth = append(k.paid, paid), append(k.worth, worth)
		}
	}
	return k
}

// bound is what any fill of the offer can be worth at most: the rent for its
// room, spent on those that are worth most for it, in fractions.
func (k *knapsack) bound(offer int) float64 {
	rent := 0.0
	for d, room := range k.pk.roomFor(offer) {
		rent += k.rent[d] * room
	}
	at, _ := slices.BinarySearch(k.paid, rent)
	paid, worth := 0.0, 0.0
	if at > 0 {
		paid, worth = k.paid[at-1], k.worth[at-1]
	}
	if at < len(k.paid) {
		worth += (k.worth[at] - worth) * (rent - paid) / (k.paid[at] - paid)
	}
	return worth
}

// promise is an offer with its bound.
type promise struct {
	offer       int
	cost, bound float64
}

// promising lists the offers that may hold more than rate times what they cost,
// those that promise most first.
func (k *knapsack) promising(rate float64) []promise {
	var out []promise
	for i := range k.g.offers {
		c := &k.g.offers[i]
		if b := k.bound(c.offer); b > rate*c.cost && k.pk.shop.affords(c.offer) {
			out = append(out, promise{c.offer, c.cost, b})
		}
	}
	slices.SortFunc(out, func(a, b promise) int {
		return cmp.Or(cmp.Compare(b.bound/b.cost, a.bound/a.cost), cmp.Compare(a.offer, b.offer))
	})
	return out
}

// fill returns the best of several fills.
func (k *knapsack) fill(offer int) (best []portion, most float64) {
	total := k.pk.roomFor(offer)
	room := make([]float64, len(total))
	for _, order := range k.orders {
		for skip := range skips {
			copy(room, total)
			k.pk.open(offer)
			var out []portion
			var masks []label.Mask
			worth := 0.0
			for _, i := range order[min(skip, len(order)):] {
				c, way := k.g.members[i].class, k.g.members[i].way
				r := k.pk.requestOf(c)
				m := howMany(k.pk.left[c], r, room)
				if m == 0 {
					continue
				}
				both, ok := meet(masks, way.masks)
				if m = min(m, k.pk.bears(c)); !ok || m == 0 {
					continue
				}
				masks = both
				k.pk.seat(c, m)
				for d := range room {
					room[d] -= float64(m) * r[d]
				}
				worth += float64(m) * k.pk.value[c]
				out = append(out, portion{i, m})
			}
			k.pk.shop.stats.Evaluations += int64(len(order))
			if worth > most {
				best, most = out, worth
			}
		}
	}
	return best, most
}
