package schedule

import (
	"cmp"
	"slices"

	"karpenter/internal/core/label"
)

// knapsack fills machines of a group with what is worth most for the room that
// it takes, where room has a rent per resource.
type knapsack struct {
	*stock
	members []member
	orders  [][]int // members, best first, for several rents

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

func newKnapsack(s *stock, members []member, rent []float64) *knapsack {
	k := &knapsack{stock: s, members: members, rent: rent}
	pays, density := make([]float64, len(members)), make([]float64, len(members))
	for _, lean := range leans {
		order := make([]int, 0, len(members))
		for i, m := range members {
			if s.left[m.class] == 0 {
				continue
			}
			pays[i] = 1e-12
			for d, a := range s.requestOf(m.class) {
				if d == 0 {
					a *= lean
				}
				pays[i] += rent[d] * a
			}
			density[i] = s.value[m.class] / pays[i]
			order = append(order, i)
		}
		slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(density[b], density[a]), cmp.Compare(a, b)) })
		k.orders = append(k.orders, order)
		if lean != 1 {
			continue
		}
		paid, worth := 0.0, 0.0
		for _, i := range order {
			c := members[i].class
			n := float64(s.left[c])
			paid, worth = paid+pays[i]*n, worth+s.value[c]*n
			k.paid, k.worth = append(k.paid, paid), append(k.worth, worth)
		}
	}
	return k
}

// bound is what any fill of the room can be worth at most: the rent for it,
// spent on those that are worth most for it, in fractions.
func (k *knapsack) bound(room []float64) float64 {
	rent := 0.0
	for d, a := range room {
		rent += k.rent[d] * a
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

// best returns the best of several fills of the room. open is called before
// each of them.
func (k *knapsack) best(total []float64, open func()) (best []portion, most float64) {
	room := make([]float64, len(total))
	out := make([]portion, 0, len(k.members))
	for _, order := range k.orders {
		for skip := range skips {
			copy(room, total)
			open()
			out = out[:0]
			var masks []label.Mask
			worth := 0.0
			for _, i := range order[min(skip, len(order)):] {
				c, way := k.members[i].class, k.members[i].way
				r := k.requestOf(c)
				m := howMany(k.left[c], r, room)
				if m == 0 {
					continue
				}
				both, ok := meet(masks, way.masks)
				if m = min(m, k.bears(c)); !ok || m == 0 {
					continue
				}
				masks = both
				k.seat(c, m)
				for d := range room {
					room[d] -= float64(m) * r[d]
				}
				worth += float64(m) * k.value[c]
				out = append(out, portion{i, m})
			}
			k.stats.Evaluations += int64(len(order))
			if worth > most {
				best, most = append(best[:0], out...), worth
			}
		}
	}
	return best, most
}
