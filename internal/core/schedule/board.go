package schedule

import (
	"math"
	"slices"

	"karpenter/internal/core/world"
)

// board is what kube-scheduler would know about pods on places: all tallies,
// and what of each place concerns rules between pods.
type board struct {
	book  *rulebook
	count []census // per tally
	spots []*spot
	// opened counts domains that are there for sure, of spreads in which some pod
	// could only be put because no domain had few.
	opened int
	leaned []bool // per tally: whether it is such a spread
}

// census is a tally in numbers. Values of the topology key are its indices.
type census struct {
	pods  []int32
	extra []int32 // pods that may be there besides, on places that are not decided
	total int32
	sure  []int32 // places that count for the spread
	maybe []int32 // and that may or may not, as they are not decided
	low   int32   // the smallest count of a domain with places; -1: not known
	atLow int32   // domains that have it
}

// spot is a place on the board.
type spot struct {
	values []int32   // per topology key
	may    [][]int32 // values that it may get, where that is undecided
	counts []byte    // per tally: whether the place counts for the spread
	// only holds, per tally, the values with which it counts, where these are not
	// all that it may get.
	only   map[int32][]int32
	brings []int32 // tallies in which its daemon pods count
	ports  []world.HostPort
	// volumes that are attached and that other pods use too.
	volumes []world.Attachment
	// unsure are the tallies in which its pods count somewhere that is not
	// decided, one for each pod.
	unsure []int32
}

// Values of a spot that are none.
const (
	absent  = -1
	open    = -2
	unnamed = -3 // a value that no other place has, as that of a new host
)

// Whether a spot counts.
const (
	never = iota
	perhaps
	surely
)

func newBoard(book *rulebook) *board {
	b := &board{book: book, count: make([]census, len(book.tallies)), leaned: make([]bool, len(book.tallies))}
	for i := range b.count {
		b.count[i].low = -1
	}
	return b
}

func (c *census) grow(v int32) {
	for int(v) >= len(c.pods) {
		c.pods, c.extra, c.sure, c.maybe = append(c.pods, 0), append(c.extra, 0), append(c.sure, 0), append(c.maybe, 0)
	}
}

func (c *census) at(v int32) int32 {
	if v < 0 || int(v) >= len(c.pods) {
		return 0
	}
	return c.pods[v]
}

// known reports whether the domain is there for sure.
func (c *census) known(v int32) bool { return v >= 0 && int(v) < len(c.sure) && c.sure[v] > 0 }

// most is the count of a domain, with the pods that may be there.
func (c *census) most(v int32) int32 {
	if v < 0 || int(v) >= len(c.pods) {
		return 0
	}
	return c.pods[v] + c.extra[v]
}

// domains is how many domains have places that count for sure, the value's own
// included.
func (c *census) domains(v int32) (n int32) {
	for i := range c.sure {
		if c.sure[i] > 0 || int32(i) == v {
			n++
		}
	}
	if v < 0 || int(v) >= len(c.sure) {
		n++
	}
	return n
}

// least is the smallest count of a domain, once a place with the value is there
// and brings some more pods to it.
func (c *census) least(v, more int32) int32 {
	if c.low < 0 {
		c.low, c.atLow = c.lowest(-1)
	}
	own := c.at(v) + more
	if more > 0 && own-more == c.low && c.atLow == 1 {
		others, _ := c.lowest(v)
		return min(own, others)
	}
	return min(own, c.low)
}

// lowest is the smallest count of a domain other than the value, and how many
// domains have it.
func (c *census) lowest(but int32) (low, at int32) {
	low = math.MaxInt32
	for i, n := range c.pods {
		switch {
		case int32(i) == but || c.sure[i]+c.maybe[i] == 0:
		case n < low:
			low, at = n, 1
		case n == low:
			at++
		}
	}
	return low, at
}

// join puts a place on the board.
func (b *board) join(s *spot) {
	b.spots = append(b.spots, s)
	if b.book.host >= 0 && s.values[b.book.host] == unnamed {
		s.values[b.book.host] = int32(len(b.spots) - 1)
	}
	b.countPlace(s, 1)
	b.add(s.brings, s)
	s.brings = nil
}

// narrow notes with which of the values that the spot may get it counts.
func (s *spot) narrow(t int32, counts func(v int32) bool, key int) {
	if s.only == nil {
		s.only = map[int32][]int32{}
	}
	s.only[t] = slices.DeleteFunc(slices.Clone(s.may[key]), func(v int32) bool { return !counts(v) })
}

// domainsOf are the values with which the spot may count in a tally.
func (s *spot) domainsOf(t int32, key int) []int32 {
	if v := s.values[key]; v >= 0 {
		return []int32{v}
	}
	if some, ok := s.only[t]; ok {
		return some
	}
	return s.may[key]
}

// countPlace counts the place in the domains of spreads, or takes it out.
func (b *board) countPlace(s *spot, n int32) {
	for i, t := range b.book.tallies {
		if !t.spread || s.counts[i] == never {
			continue
		}
		c := &b.count[i]
		c.low = -1
		switch v := s.values[t.key]; {
		case v >= 0:
			c.grow(v)
			if s.counts[i] == surely {
				if c.sure[v] == 0 && n > 0 || c.sure[v] == 1 && n < 0 {
					b.opened += int(n) * int(bit(b.leaned[i]))
				}
				c.sure[v] += n
			} else {
				c.maybe[v] += n
			}
		case v == open:
			for _, v := range s.domainsOf(int32(i), t.key) {
				c.grow(v)
				c.maybe[v] += n
			}
		}
	}
}

// bring adds the daemon pods of a new machine of the offer.
func (s *spot) bring(shop *shop, offer int) {
	s.brings, s.ports = nil, nil
	for i := range shop.daemons {
		if d := &shop.daemons[i]; d.on.has(offer) {
			s.brings = append(s.brings, d.rules.adds...)
			s.ports = append(s.ports, d.rules.ports...)
		}
	}
}

// brought is what a machine that has not joined brings to a tally.
func (s *spot) brought(t int32) (n int32) {
	for _, o := range s.brings {
		if o == t {
			n++
		}
	}
	return n
}

// here is the count at a spot, with what a machine that has not joined brings.
func (b *board) here(t int32, s *spot) int32 {
	return b.count[t].at(s.values[b.book.tallies[t].key]) + s.brought(t)
}

// add counts one more pod at the spot, in the tallies named.
func (b *board) add(tallies []int32, s *spot) {
	for _, i := range tallies {
		t, c := b.book.tallies[i], &b.count[i]
		if t.spread && s.counts[i] == never {
			continue
		}
		v := s.values[t.key]
		if v == open || v >= 0 && t.spread && s.counts[i] == perhaps {
			s.unsure = append(s.unsure, i)
			b.guess(i, s, 1)
			continue
		}
		if v < 0 {
			continue
		}
		c.grow(v)
		c.pods[v]++
		c.total++
		if c.low >= 0 && c.pods[v] == c.low+1 && c.sure[v]+c.maybe[v] > 0 {
			if c.atLow--; c.atLow == 0 {
				c.low = -1
			}
		}
	}
}

// remove takes a pod that counts in the tallies off the spot.
func (b *board) remove(tallies []int32, s *spot) {
	for _, i := range tallies {
		t, c := b.book.tallies[i], &b.count[i]
		if at := slices.Index(s.unsure, i); at >= 0 {
			s.unsure = slices.Delete(slices.Clone(s.unsure), at, at+1)
			b.guess(i, s, -1)
		} else if v := s.values[t.key]; v >= 0 && !(t.spread && s.counts[i] == never) {
			c.pods[v]--
			c.total--
			c.low = -1
		}
	}
}

// guess counts a pod wherever it may be, or takes it out.
func (b *board) guess(t int32, s *spot, n int32) {
	c, key := &b.count[t], b.book.tallies[t].key
	c.total += n
	for _, v := range s.domainsOf(t, key) {
		c.grow(v)
		c.extra[v] += n
	}
}

// change lets a spot become another one, with its pods.
func (b *board) change(s *spot, do func()) {
	b.countPlace(s, -1)
	unsure := s.unsure
	for _, t := range unsure {
		b.guess(t, s, -1)
	}
	s.unsure = nil
	do()
	b.countPlace(s, 1)
	b.add(unsure, s)
}

// put adds a pod with the rules to the spot.
func (b *board) put(r *rules, s *spot) {
	for i := range r.spread {
		rule := &r.spread[i]
		if b.count[rule.tally].most(s.values[b.book.tallies[rule.tally].key])+rule.self > rule.skew {
			b.leaned[rule.tally] = true
		}
	}
	b.add(r.adds, s)
	s.ports, s.volumes = append(s.ports, r.ports...), append(s.volumes, r.shared...)
}

// breach is a rule that a place breaks.
type breach struct {
	tally  int32 // -1: a port
	kind   int   // which rule
	value  int32
	spread *spreadRule
	port   world.HostPort
}

// Kinds of breach.
const (
	kept = iota
	brokenSpread
	brokenAffinity
	brokenAnti
	brokenShun
	brokenPort
)

// check says which rule kube-scheduler would find broken if a pod with the
// rules came to the spot.
func (b *board) check(r *rules, s *spot) breach {
	for i := range r.spread {
		rule := &r.spread[i]
		v := s.values[b.book.tallies[rule.tally].key]
		c := &b.count[rule.tally]
		if v == absent || v == open {
			return breach{rule.tally, brokenSpread, v, rule, world.HostPort{}}
		}
		brought := s.brought(rule.tally)
		least := c.least(v, brought)
		few := rule.minDomains > 1 && c.domains(v) < rule.minDomains
		if few {
			least = 0
		}
		if c.most(v)+brought+rule.self-least > rule.skew && (few || b.exceeds(rule.tally, v, brought, rule.skew-rule.self)) {
			return breach{rule.tally, brokenSpread, v, rule, world.HostPort{}}
		}
	}
	for _, t := range r.anti {
		if v := s.values[b.book.tallies[t].key]; b.anywhere(t, s) {
			return breach{tally: t, kind: brokenAnti, value: v}
		}
	}
	for _, t := range r.shun {
		if v := s.values[b.book.tallies[t].key]; b.anywhere(t, s) {
			return breach{tally: t, kind: brokenShun, value: v}
		}
	}
	missing, total := int32(-1), int32(0)
	for _, t := range r.affinity {
		v := s.values[b.book.tallies[t].key]
		if v == absent || v == open {
			return breach{tally: t, kind: brokenAffinity, value: v}
		}
		n := b.here(t, s)
		if total += b.count[t].total + n; n == 0 {
			missing = t
		}
	}
	if missing >= 0 && (total > 0 || !r.first) {
		return breach{tally: missing, kind: brokenAffinity, value: s.values[b.book.tallies[missing].key]}
	}
	for _, t := range r.follow {
		v := s.values[b.book.tallies[t].key]
		if v == open || b.count[t].total > 0 && b.here(t, s) == 0 {
			return breach{tally: t, kind: brokenAffinity, value: v}
		}
	}
	if len(r.ports) > 0 && len(s.ports) > 0 {
		if port, bad := conflict(r.ports, s.ports); bad {
			return breach{tally: -1, kind: brokenPort, port: port}
		}
	}
	return breach{}
}

// lasting reports whether kube-scheduler would let a pod with the rules, which is
// at the spot, come there also as the last of all.
func (b *board) lasting(r *rules, s *spot) bool {
	own := func(t int32) int32 { return int32(bit(slices.Contains(r.adds, t))) }
	for i := range r.spread {
		rule := &r.spread[i]
		v, c, self := s.values[b.book.tallies[rule.tally].key], &b.count[rule.tally], int32(0)
		if s.counts[rule.tally] != never {
			self = own(rule.tally)
		}
		least := c.least(v, 0)
		few := rule.minDomains > 1 && c.domains(v) < rule.minDomains
		if few {
			least = 0
		}
		if c.most(v)-self+rule.self-least > rule.skew && (few || b.exceeds(rule.tally, v, -self, rule.skew-rule.self)) {
			return false
		}
	}
	missing, total := false, int32(0)
	for _, t := range r.affinity {
		total += b.count[t].total - own(t)
		missing = missing || b.here(t, s) == own(t)
	}
	if missing && total > 0 {
		return false
	}
	return !slices.ContainsFunc(r.follow, func(t int32) bool {
		return b.count[t].total > own(t) && b.here(t, s) == own(t)
	})
}

// anywhere reports whether pods are counted at the spot, or where it may be.
func (b *board) anywhere(t int32, s *spot) bool {
	key := b.book.tallies[t].key
	if s.values[key] == open {
		return slices.ContainsFunc(s.may[key], func(v int32) bool { return b.count[t].most(v) > 0 })
	}
	return s.values[key] != absent && b.count[t].most(s.values[key])+s.brought(t) > 0
}

// wished is how much the place is what the pod would like; higher is better.
func (b *board) wished(r *rules, s *spot) (sum int32) {
	for _, w := range r.wishes {
		if t := b.book.tallies[w.tally]; s.values[t.key] >= 0 {
			n := b.count[w.tally].at(s.values[t.key])
			if t.spread {
				sum += w.weight * n
			} else if n > 0 {
				sum += w.weight
			}
		}
	}
	return sum
}
