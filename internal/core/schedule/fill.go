package schedule

import (
	"math"
	"slices"

	"karpenter/internal/core/label"
)

// stock is the classes from which machines are filled, in the form in which
// that is quick. Amounts are exact: they are whole numbers below 2^53.
type stock struct {
	classes []*class
	stats   *Stats
	dims    []int      // the resources that somebody asks for
	request []float64  // of those, per class
	value   []float64  // of a pod, per class
	left    []int      // pods, per class
	host    *host      // nil if no class has rules about its host
	volumes [][]volume // that pods of the class share with others, per class
	items   []item     // kept from fill to fill
	need    []float64  // what the items ask for, per item and resource
	active  []int32
	taken   []int
	// share is the most that the pods of one machine may be worth, so that there
	// are enough machines for pods of which few may share one.
	share float64
}

// member is a class, by its number, that may use a machine, with the way in
// which it does.
type member struct {
	class int
	way   *way
}

// portion is n pods of a member.
type portion struct{ member, n int }

func newStock(classes []*class, stats *Stats, book *rulebook) stock {
	s := stock{classes: classes, stats: stats, value: make([]float64, len(classes)), left: make([]int, len(classes)), share: math.Inf(1)}
	if book != nil {
		s.host = newHost(book)
		s.volumes = make([][]volume, len(classes))
	}
	if len(classes) > 0 {
		for d := range classes[0].request {
			if slices.ContainsFunc(classes, func(c *class) bool { return c.request[d] > 0 }) {
				s.dims = append(s.dims, d)
			}
		}
	}
	for i, c := range classes {
		s.left[i] = c.left()
		for _, d := range s.dims {
			s.request = append(s.request, float64(c.request[d]))
		}
		if c.rules != nil {
			s.volumes[i] = volumesIn(c.rules.shared, book.dims, s.dims)
		}
	}
	return s
}

// priced takes over what the classes were found to be worth.
func (s *stock) priced() {
	for i, c := range s.classes {
		s.value[i] = c.value
	}
}

// rent is the most that a member with pods left pays for a unit of each
// resource.
func (s *stock) rent(members []member) []float64 {
	rent := make([]float64, len(s.dims))
	for _, m := range members {
		if s.left[m.class] > 0 {
			for i, d := range s.dims {
				rent[i] = max(rent[i], s.classes[m.class].unit[d])
			}
		}
	}
	return rent
}

// narrow leaves of an amount vector what somebody asks for.
func (s *stock) narrow(room []int64) []float64 {
	out := make([]float64, len(s.dims))
	for i, d := range s.dims {
		out[i] = float64(max(0, room[d]))
	}
	return out
}

func (s *stock) requestOf(class int) []float64 {
	n := len(s.dims)
	return s.request[class*n : class*n+n]
}

// howMany returns how many of at most n pods find room.
func howMany(n int, request, room []float64) int {
	for d, have := range room {
		if r := request[d]; r > 0 && float64(n)*r > have {
			n = int(have / r)
			if float64(n)*r > have { // rounded up
				n--
			}
		}
	}
	return n
}

// bears is how many more pods of the class the rules between pods let the
// machine that is being filled take.
func (s *stock) bears(class int) int {
	if r := s.classes[class].rules; r != nil && r.onHost {
		return s.host.limit(r)
	}
	return math.MaxInt
}

func (s *stock) seat(class, n int) {
	if r := s.classes[class].rules; r != nil && r.onHost {
		s.host.put(r, n)
	}
}

// item is a member that still fits.
type item struct {
	member, class int
	way           *way
	left          int
	keen          float64 // worth for what it takes
}

// itemsFor lists the members that fit at all.
func (s *stock) itemsFor(members []member, rent, room []float64, greed float64) []item {
	s.items, s.need = s.items[:0], s.need[:0]
	for i, m := range members {
		r := s.requestOf(m.class)
		if s.left[m.class] == 0 || !seats(room, r) {
			continue
		}
		pays := 1e-9
		for d, a := range r {
			pays += rent[d] * a
		}
		keen := math.Sqrt(s.value[m.class] / pays)
		if greed != 0.5 {
			keen = math.Pow(s.value[m.class]/pays, greed)
		}
		if rules := s.classes[m.class].rules; rules != nil && rules.onHost {
			keen *= 4 // few may share a machine: not to be left for the end
		}
		s.items, s.need = append(s.items, item{i, m.class, m.way, s.left[m.class], keen}), append(s.need, r...)
	}
	return s.items
}

// bites is in how many steps a machine would be filled with pods of one class.
const bites = 4

// fill puts pods on a machine: next always those that match the shape of the
// room left best and are worth most for what they take, to the power of greed.
// It returns how many of each member, and their worth. The room is used up.
func (s *stock) fill(members []member, rent, room []float64, greed float64, out []portion) ([]portion, float64) {
	total := slices.Clone(room)
	all := s.itemsFor(members, rent, room, greed)
	active := s.active[:0] // numbers: moving the items themselves would cost more
	for i := range all {
		active = append(active, int32(i))
	}
	s.active = active
	worth, weight := 0.0, make([]float64, len(room))
	taken := slices.Grow(s.taken[:0], len(members))[:len(members)]
	clear(taken)
	s.taken = taken
	shared := !math.IsInf(s.share, 1)
	var masks []label.Mask
	var attached []volume
	for {
		for d := range weight {
			weight[d] = room[d] / max(1, total[d]*total[d])
		}
		best, at := -1.0, -1
		s.stats.Evaluations += int64(len(active))
		kept := 0
	items:
		for _, i := range active {
			score := 0.0
			for d, r := range s.need[int(i)*len(room):][:len(room)] {
				if r > room[d] {
					continue items
				}
				score += weight[d] * r
			}
			it := &all[i]
			if shared && worth > 0 && worth+s.value[it.class] > s.share {
				continue
			}
			if score *= it.keen; score > best {
				if _, ok := meet(masks, it.way.masks); !ok || s.bears(it.class) == 0 {
					continue
				}
				best, at = score, kept
			}
			active[kept] = i
			kept++
		}
		active = active[:kept]
		if at < 0 {
			break
		}
		it := &all[active[at]]
		request := s.need[int(active[at])*len(room):][:len(room)]
		k := howMany(it.left, request, room)
		if len(active) > 1 {
			k = max(1, k/bites)
		}
		fresh := s.fresh(it.class, attached)
		if len(fresh) > 0 {
			k = 1 // those after it do without
		}
		if more := (s.share - worth) / s.value[it.class]; float64(k) > more {
			k = max(1, int(more))
		}
		k = min(k, s.bears(it.class))
		s.seat(it.class, k)
		taken[it.member] += k
		worth += float64(k) * s.value[it.class]
		masks, _ = meet(masks, it.way.masks)
		for d, r := range request {
			room[d] -= r * float64(k)
		}
		for _, v := range fresh {
			attached = append(attached, v)
			for i := range all {
				if slices.Contains(s.volumes[all[i].class], v) {
					s.need[i*len(room)+v.dim]--
				}
			}
		}
		if it.left -= k; it.left == 0 {
			active = slices.Delete(active, at, at+1)
		}
	}
	for i, k := range taken {
		if k > 0 {
			out = append(out, portion{i, k})
		}
	}
	return out, worth
}

// refill puts pods on a machine of the candidate.
func (pk *packer) refill(g *candidates, c *candidate) {
	c.fresh, c.worth, c.fill = true, 0, c.fill[:0]
	if !pk.shop.affords(c.offer) {
		return
	}
	pk.open(c.offer)
	// The root: shape matters more than worth, or the pods that would fill the
	// gaps are used up where they are worth most, and missed later.
	c.fill, c.worth = pk.fill(g.members, g.rent, pk.roomFor(c.offer), 0.5, c.fill)
}

func (pk *packer) roomFor(offer int) []float64 { return pk.narrow(pk.shop.roomOf(offer)) }

// open prepares the rules between pods for a machine of the offer.
func (pk *packer) open(offer int) {
	if pk.host == nil {
		return
	}
	pk.host.clear()
	pk.host.with(pk.shop, offer)
}
