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
	orders  []order
	room    []float64 // kept from fill to fill
	trial   []portion

	// For a bound, by the first order:
	rent        []float64
	paid, worth []float64 // sums of rent and value up to each member
}

// order is members, those first that are worth most for what they take.
type order struct {
	members []int
	need    []float64 // what a pod asks for, per member and resource
	least   []float64 // the least that it or any later member asks for
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
		by := make([]int, 0, len(members))
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
			by = append(by, i)
		}
		slices.SortFunc(by, func(a, b int) int { return cmp.Or(cmp.Compare(density[b], density[a]), cmp.Compare(a, b)) })
		k.orders = append(k.orders, s.ordered(members, by))
		if lean != 1 {
			continue
		}
		paid, worth := 0.0, 0.0
		for _, i := range by {
			c := members[i].class
			n := float64(s.left[c])
			paid, worth = paid+pays[i]*n, worth+s.value[c]*n
			k.paid, k.worth = append(k.paid, paid), append(k.worth, worth)
		}
	}
	return k
}

func (s *stock) ordered(members []member, by []int) order {
	n := len(s.dims)
	o := order{by, make([]float64, 0, len(by)*n), make([]float64, len(by)*n)}
	for _, i := range by {
		o.need = append(o.need, s.requestOf(members[i].class)...)
	}
	for i := len(o.need) - 1; i >= 0; i-- {
		if o.least[i] = o.need[i]; i+n < len(o.need) {
			o.least[i] = min(o.least[i], o.least[i+n])
		}
	}
	return o
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
	for i := range k.orders {
		for skip := range min(skips, len(k.orders[i].members)) {
			open()
			if worth := k.try(total, &k.orders[i], skip); worth > most {
				best, most = append(best[:0], k.trial...), worth
			}
		}
	}
	return best, most
}

// try fills the room in order, without the first few.
func (k *knapsack) try(total []float64, o *order, skip int) (worth float64) {
	k.room, k.trial = append(k.room[:0], total...), k.trial[:0]
	room, n := k.room, len(total)
	var masks []label.Mask
	for i := skip; i < len(o.members); i++ {
		k.stats.Evaluations++
		if !seats(room, o.need[i*n:i*n+n]) {
			if !seats(room, o.least[i*n:i*n+n]) {
				break
			}
			continue
		}
		c, way := k.members[o.members[i]].class, k.members[o.members[i]].way
		both, ok := meet(masks, way.masks)
		m := min(howMany(k.left[c], k.requestOf(c), room), k.bears(c))
		if !ok || m == 0 {
			continue
		}
		masks = both
		k.seat(c, m)
		for d, r := range k.requestOf(c) {
			room[d] -= float64(m) * r
		}
		worth += float64(m) * k.value[c]
		k.trial = append(k.trial, portion{o.members[i], m})
	}
	return worth
}

// seats reports whether the room holds a request.
func seats(room, request []float64) bool {
	for d, r := range request {
		if r > room[d] {
			return false
		}
	}
	return true
}
