package schedule

import (
	"cmp"
	"fmt"
	"slices"

	"karpenter/internal/core/label"
)

// mason lays the blocks of a shop.
type mason struct {
	s     *shop
	zones []string
	types []string // capacity types
	cell  [][]int  // kind → zone and capacity type → offer in the shop, or -1
	kin   []int32  // per offer: which profiles may use it, as a number
	who   []set    // number → profiles
	above [][]int8 // does the second number have all profiles of the first: 0 unknown, 1 yes, 2 no
	laid  map[string][]brick
}

func newMason(s *shop, profiles []*profile) *mason {
	m := &mason{s: s, kin: make([]int32, len(s.market.offers)), laid: map[string][]brick{}}
	m.zones = s.market.table.distinct(label.Zone, s.offers)
	m.types = s.market.table.distinct(label.CapacityType, s.offers)
	m.cell = make([][]int, len(s.market.catalog.Types))
	for o := s.offers.next(0); o >= 0; o = s.offers.next(o + 1) {
		k := s.market.offers[o].kind
		if m.cell[k] == nil {
			m.cell[k] = slices.Repeat([]int{-1}, len(m.zones)*len(m.types))
		}
		m.cell[k][m.at(o)] = o
	}
	m.sortByUse(profiles)
	return m
}

func (m *mason) at(o int) int {
	at := m.s.market.offering(m.s.market.offers[o])
	return slices.Index(m.zones, at.Zone)*len(m.types) + slices.Index(m.types, at.CapacityType)
}

// sortByUse numbers the offers by which profiles may use them.
func (m *mason) sortByUse(profiles []*profile) {
	users := make([]set, len(m.kin))
	for i := range users {
		users[i] = newSet(len(profiles))
	}
	for i, p := range profiles {
		for _, way := range p.ways {
			if offers, _, ok := m.s.resolve(way, m.s.offers); ok {
				for o := offers.next(0); o >= 0; o = offers.next(o + 1) {
					users[o].add(i)
				}
			}
		}
	}
	for o := range users {
		i := slices.IndexFunc(m.who, func(w set) bool { return slices.Equal(w, users[o]) })
		if i < 0 {
			i = len(m.who)
			m.who = append(m.who, users[o])
		}
		m.kin[o] = int32(i)
	}
	m.above = make([][]int8, len(m.who))
	for i := range m.above {
		m.above[i] = make([]int8, len(m.who))
	}
}

// serves reports whether all profiles that may use offer a may use offer b.
func (m *mason) serves(a, b int) bool {
	known := &m.above[m.kin[a]][m.kin[b]]
	if *known == 0 {
		*known = 2
		if within(m.who[m.kin[a]], m.who[m.kin[b]]) {
			*known = 1
		}
	}
	return *known == 1
}

// brick is an instance type that a block may have, with its offers there.
type brick struct {
	kind   int
	offers []int
	room   []int64
}

// bricks are the types that are to be had at all of the places, the cheapest
// first.
func (m *mason) bricks(places []int) []brick {
	key := fmt.Sprint(places)
	if known, ok := m.laid[key]; ok {
		return known
	}
	var out []brick
	for k, row := range m.cell {
		if row == nil || slices.ContainsFunc(places, func(at int) bool { return row[at] < 0 }) {
			continue
		}
		b := brick{kind: k, room: slices.Clone(m.s.wholeRoomOf(row[places[0]]))}
		for _, at := range places {
			b.offers = append(b.offers, row[at])
			for d, r := range m.s.wholeRoomOf(row[at]) {
				b.room[d] = min(b.room[d], r)
			}
		}
		slices.Sort(b.offers)
		out = append(out, b)
	}
	slices.SortFunc(out, func(a, b brick) int { return cmp.Compare(a.offers[0], b.offers[0]) })
	m.laid[key] = out
	return out
}

// fit says how well a type goes with the offer that a block is for: whether all
// who may use the offer may use it, and how much of that offer's room it has, the
// least over all resources.
type fit struct {
	*brick
	serves bool
	share  float64
}

func (m *mason) fit(b *brick, o int) fit {
	f := fit{b, true, 1}
	for _, i := range b.offers {
		f.serves = f.serves && m.serves(o, i)
	}
	for d, r := range m.s.wholeRoomOf(o) {
		if r > 0 && b.room[d] < r {
			f.share = min(f.share, float64(b.room[d])/float64(r))
		}
	}
	return f
}

// block lays the block of an offer: of the types that the same profiles may use,
// those that hold as much, or nearly, and count no more against limits. It is nil
// if there are too few.
func (m *mason) block(o int) (set, []int64) {
	places := m.places(o)
	if places == nil {
		return nil, nil
	}
	out, room := newSet(len(m.kin)), slices.Clone(m.s.wholeRoomOf(o))
	values := newValueCount(m.s.varieties)
	lay := func(b *brick) bool {
		for _, at := range b.offers {
			out.add(at)
		}
		for d := range room {
			room[d] = min(room[d], b.room[d])
		}
		return values.enough()
	}
	list := m.bricks(places)
	own := slices.IndexFunc(list, func(b brick) bool { return b.kind == int(m.s.market.offers[o].kind) })
	values.add(list[own].offers)
	if lay(&list[own]) {
		return out, room
	}
	var rest []fit
	for i := range list {
		b := &list[i]
		if i == own || slices.ContainsFunc(b.offers, func(at int) bool { return m.s.outgrows(at, o) }) {
			continue
		}
		f := m.fit(b, o)
		if !f.serves || f.share < 1 {
			rest = append(rest, f)
		} else if values.add(b.offers) && lay(b) { // as good as any: no need to sort
			return out, room
		}
	}
	slices.SortStableFunc(rest, func(a, b fit) int {
		if a.serves != b.serves {
			return map[bool]int{true: -1, false: 1}[a.serves]
		}
		return cmp.Compare(b.share, a.share)
	})
	for _, f := range rest {
		if values.add(f.offers) && lay(f.brick) {
			return out, room
		}
	}
	return nil, nil
}

// places are the zones and capacity types of a block: those of the offer, and as
// many more of its type as the pool asks for.
func (m *mason) places(o int) []int {
	wants := func(key string) int {
		for _, v := range m.s.varieties {
			if v.key == key {
				return v.least
			}
		}
		return 1
	}
	row, home := m.cell[m.s.market.offers[o].kind], m.at(o)
	zone, market := home/len(m.types), home%len(m.types)
	zones := m.pick(zone, wants(label.Zone), len(m.zones), func(z int) bool { return row[z*len(m.types)+market] >= 0 })
	markets := m.pick(market, wants(label.CapacityType), len(m.types), func(c int) bool {
		return !slices.ContainsFunc(zones, func(z int) bool { return row[z*len(m.types)+c] < 0 })
	})
	var out []int
	for _, z := range zones {
		for _, c := range markets {
			out = append(out, z*len(m.types)+c)
		}
	}
	return out
}

// pick takes n numbers below the end that will do, the first one given; nil if
// there are not as many.
func (m *mason) pick(first, n, end int, ok func(int) bool) []int {
	out := []int{first}
	for i := 0; i < end && len(out) < n; i++ {
		if i != first && ok(i) {
			out = append(out, i)
		}
	}
	if len(out) < n {
		return nil
	}
	return out
}

// valueCount counts different values.
type valueCount struct {
	varieties []variety
	seen      []map[int32]bool
}

func newValueCount(varieties []variety) *valueCount {
	t := &valueCount{varieties, make([]map[int32]bool, len(varieties))}
	for i := range t.seen {
		t.seen[i] = map[int32]bool{}
	}
	return t
}

// add counts the values of the offers, and reports whether one was missing.
func (t *valueCount) add(offers []int) (missed bool) {
	for i, v := range t.varieties {
		for _, o := range offers {
			if v.ids == nil || v.ids[o] == 0 || t.seen[i][v.ids[o]] {
				continue
			}
			missed = missed || len(t.seen[i]) < v.least
			t.seen[i][v.ids[o]] = true
		}
	}
	return missed
}

func (t *valueCount) enough() bool {
	for i, v := range t.varieties {
		if len(t.seen[i]) < v.least {
			return false
		}
	}
	return true
}
