package schedule

import (
	"cmp"
	"slices"
)

// stowWork bounds how many classes are held against how many places, beyond
// which places are filled class by class.
const stowWork = 4 << 20

// stow fills the places that exist with pods that could also be bought for, the
// most urgent first. What goes there need not be bought, so places are filled as
// machines are: with what is worth most for the room that it takes, and first
// with pods that are much dearer to buy for than the others. Pods that have rules
// or prefer some places find theirs one class after the other, not by what they
// are worth for the room, and would waste it: they come after the plain ones,
// unless there may be room for all.
func (p *problem) stow(classes []*class) {
	rent := make([]float64, p.d.n())
	for _, c := range classes {
		for d, unit := range c.unit {
			rent[d] = max(rent[d], unit)
		}
	}
	cheap := func(c *class) int {
		pays := 0.0
		for d, r := range c.request {
			pays += rent[d] * float64(r)
		}
		if c.value < stowDear*pays {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(classes, func(a, b *class) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(cheap(a), cheap(b)), cmp.Compare(b.value, a.value))
	})
	for len(classes) > 0 {
		first := classes[0]
		n := slices.IndexFunc(classes, func(c *class) bool { return c.priority != first.priority || cheap(c) != cheap(first) })
		if n < 0 {
			n = len(classes)
		}
		var plain, picky []*class
		for _, c := range classes[:n] {
			if c.rules == nil && p.places.indifferent(c.profile) && n*len(p.places.nodes) <= stowWork {
				plain = append(plain, c)
			} else {
				picky = append(picky, c)
			}
		}
		crowded := p.crowded(classes)
		if crowded {
			p.stowMixed(plain)
		}
		for _, c := range picky {
			if c.rules != nil {
				p.settler.fill(c)
			} else {
				p.places.fill(c, p.places.ranked(c.profile), c.left(), p.place)
			}
		}
		if !crowded {
			p.stowMixed(plain)
		}
		classes = classes[n:]
	}
}

// crowded reports whether the classes ask for more than there is room, the less
// urgent ones included.
func (p *problem) crowded(classes []*class) bool {
	for d := range p.d.n() {
		room, asked := int64(0), int64(0)
		for n := range p.places.nodes {
			room += max(0, p.places.roomOf(n)[d])
		}
		for _, c := range classes {
			asked += c.request[d] * int64(c.left())
		}
		if asked > room {
			return true
		}
	}
	return false
}

// stowDear is the part of what is paid at most for the room that a pod takes
// from which on it counts as dear.
const stowDear = 0.6

// stowGreed is to which power worth counts against shape where a place is
// filled: more than on a machine to be bought, whose price all its pods share.
const stowGreed = 4

func (p *problem) stowMixed(classes []*class) {
	s := newStock(classes, &p.plan.Stats, nil)
	s.priced()
	suits := make([]set, len(classes))
	for i, c := range classes {
		suits[i] = p.places.matching(c.profile)
	}
	any := &way{}
	known := map[string]*knapsack{}
	for n := range p.places.nodes {
		var members []member
		key := make([]byte, len(classes))
		for i := range classes {
			if suits[i].has(n) {
				key[i] = 1
				members = append(members, member{i, any})
			}
		}
		k := known[string(key)]
		if k == nil {
			k = newKnapsack(&s, members, s.rent(members))
			known[string(key)] = k
		}
		room := s.narrow(p.places.roomOf(n))
		fill, worth := k.best(room, func() {})
		if some, more := s.fill(members, k.rent, room, stowGreed, nil); more > worth {
			fill = some
		}
		for _, f := range fill {
			c := members[f.member].class
			s.left[c] -= f.n
			p.places.take(n, classes[c].request, int64(f.n))
			p.place(n, classes[c].take(f.n))
		}
	}
}
