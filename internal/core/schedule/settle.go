package schedule

import (
	"cmp"
	"encoding/binary"
	"slices"

	"karpenter/internal/core/label"
)

// tuple is a choice of values for the topology keys that rules look at, and
// the offers of one shop that have them.
type tuple struct {
	shop   *shop
	offers []int // cheapest first
	reqs   []label.Requirement
	spot   spot // a machine of it
	key    string
}

// settler gives pods with rules between them a place that exists, or decides
// the zone (and whatever other labels the rules look at) of the machine that is
// to be bought for them. What it cannot place stays.
type settler struct {
	p       *problem
	board   *board
	tuples  map[string][]*tuple
	classes []*class // most urgent first, then those that have least choice
	buying  bool     // may choose tuples; else only places that exist
}

// newSettler prepares for the classes that have rules.
func newSettler(p *problem) *settler {
	s := &settler{p: p, tuples: map[string][]*tuple{}}
	for _, c := range p.classes {
		if c.rules != nil && !c.rules.tied {
			s.classes = append(s.classes, c)
		}
	}
	width := map[*class]int{}
	for _, c := range s.classes {
		width[c] = len(s.tuplesOf(c))
	}
	slices.SortStableFunc(s.classes, func(a, b *class) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(width[a], width[b]),
			cmp.Compare(bit(len(a.rules.spread) > 0), bit(len(b.rules.spread) > 0)), // these even out where others went
			cmp.Compare(len(b.rules.anti), len(a.rules.anti)))
	})
	s.board = p.ground.board()
	if len(p.places.nodes) > 0 {
		s.rehearse(s.classes)
	}
	s.expect(s.classes)
	return s
}

// settle places the pods that have rules: on what is left of the places that
// exist, and on machines to be bought.
func (s *settler) settle() {
	s.buying = true
	s.run(s.classes)
	s.p.regroup()
}

// fill puts pods of the class on places that exist.
func (s *settler) fill(c *class) {
	for !c.rules.tied && c.left() > 0 && s.placeOne(c) {
	}
}

// rehearse tries how far the places that exist go, and takes that back, but for
// knowing which spreads will need more.
func (s *settler) rehearse(classes []*class) {
	room := slices.Clone(s.p.places.room)
	next := make([]int, len(classes))
	for i, c := range classes {
		next[i] = c.next
	}
	s.run(classes)
	for i, c := range classes {
		c.short = c.left() > 0
		for _, pod := range c.pods[next[i]:c.next] {
			s.p.onNode[pod] = -1
		}
		c.next = next[i]
	}
	s.p.order = nil
	copy(s.p.places.room, room)
	s.board = s.p.ground.board()
}

// expect tells the spreads for which machines will be bought in which domains
// that may be, so that the first machine does not draw all pods.
func (s *settler) expect(classes []*class) {
	done := map[int32]bool{}
	for _, c := range classes {
		if len(s.p.places.nodes) > 0 && !c.short {
			continue
		}
		for _, r := range c.rules.spread {
			key := s.p.book.tallies[r.tally].key
			if key == s.p.book.host {
				continue
			}
			for _, t := range s.tuplesOf(c) {
				if v := t.spot.values[key]; v >= 0 && t.first(c) >= 0 {
					n := &s.board.count[r.tally]
					n.grow(v)
					if n.sure[v] == 0 {
						n.sure[v]++
						n.low = -1
					}
				}
			}
			done[r.tally] = true
		}
	}
}

// run places pods until none of those left finds a place.
func (s *settler) run(classes []*class) {
	for progress := true; progress; {
		progress = false
		for _, c := range classes {
			for c.left() > 0 && s.placeOne(c) {
				progress = true
			}
		}
	}
}

func (s *settler) placeOne(c *class) bool {
	if n := s.node(c); n >= 0 {
		pods := c.take(1)
		s.enter(c, n)
		s.p.order = append(s.p.order, pods[0])
		s.p.place(n, pods)
		return true
	}
	if !s.buying || len(c.rules.keys) == 0 {
		return false
	}
	t := s.choose(c)
	if t == nil {
		return false
	}
	s.board.add(c.rules.adds, &t.spot)
	s.board.add(t.spot.brings, &t.spot)
	pods := c.take(1)
	s.p.order = append(s.p.order, pods[0])
	s.p.pin(c, t, pods[0])
	return true
}

// enter puts a pod of the class on a place that exists.
func (s *settler) enter(c *class, n int) {
	spot := s.board.spots[s.p.ground.places[n]]
	s.p.places.take(n, less(c.request, c.rules.again(&s.p.d, spot.volumes)), 1)
	s.board.put(c.rules, spot)
}

// node returns the place that exists which the pod likes best; -1 if none will
// do. Of equally good ones the first by rank.
func (s *settler) node(c *class) int {
	if !c.ranked {
		c.nodes, c.ranked = s.p.places.ranked(c.profile), true
	}
	best, score := -1, int32(0)
	for _, n := range c.nodes {
		s.p.plan.Stats.Evaluations++
		spot := s.board.spots[s.p.ground.places[n]]
		if times(less(c.request, c.rules.again(&s.p.d, spot.volumes)), s.p.places.roomOf(n), 1) == 0 {
			continue
		}
		if s.board.check(c.rules, spot).kind != kept {
			continue
		}
		at := s.board.wished(c.rules, spot)
		for _, r := range c.rules.spread {
			at -= s.board.count[r.tally].at(spot.values[s.p.book.tallies[r.tally].key])
		}
		if c.rules.joins(spot.volumes) {
			at += togetherWeight
		}
		if best < 0 || at > score {
			best, score = n, at
		}
		if len(c.rules.spread)+len(c.rules.wishes)+len(c.rules.follow) == 0 {
			break
		}
	}
	return best
}

// choose returns the tuple in which a machine is to be bought for a pod.
func (s *settler) choose(c *class) *tuple {
	var best *tuple
	var score [4]int64
	for i, t := range s.tuplesOf(c) {
		first := t.first(c)
		s.p.plan.Stats.Evaluations++
		if first >= 0 {
			t.spot.bring(t.shop, first)
		}
		if first < 0 || s.board.check(c.rules, &t.spot).kind != kept {
			continue
		}
		var at [4]int64
		for _, r := range c.rules.spread {
			at[0] += int64(s.board.count[r.tally].at(t.spot.values[s.p.book.tallies[r.tally].key]))
		}
		at[1] = -s.reach(c, t)
		at[2] = -int64(s.crowd(c, t))
		at[3] = int64(cost(t.shop.market.offers[first], s.p.policy))
		if i == 0 || best == nil || slices.Compare(at[:], score[:]) < 0 {
			best, score = t, at
		}
	}
	return best
}

// reach counts the pods that could follow when the first of a group that wants
// to be together chooses the tuple.
func (s *settler) reach(c *class, t *tuple) (n int64) {
	if len(c.rules.affinity) == 0 || s.board.count[c.rules.affinity[0]].total > 0 {
		return 0
	}
	for _, o := range s.p.classes {
		if o.rules == nil || !slices.Equal(o.rules.affinity, c.rules.affinity) || o.left() == 0 {
			continue
		}
		if slices.ContainsFunc(s.tuplesOf(o), func(u *tuple) bool {
			return u.first(o) >= 0 && !slices.ContainsFunc(c.rules.affinity, func(i int32) bool {
				key := s.p.book.tallies[i].key
				return u.spot.values[key] != t.spot.values[key]
			})
		}) {
			n += int64(o.left())
		}
	}
	return n
}

// crowd is how many pods of the kind are in the tuple already, as far as others
// keep away from them: those leave more room where they are together.
func (s *settler) crowd(c *class, t *tuple) (n int32) {
	if len(c.rules.spread)+len(c.rules.anti) > 0 {
		return 0
	}
	for _, i := range c.rules.adds {
		n += s.board.count[i].at(t.spot.values[s.p.book.tallies[i].key])
	}
	return n
}

// first is the cheapest offer that holds a pod of the class; -1 if none does.
func (t *tuple) first(c *class) int {
	for _, o := range t.offers {
		if fits(c.request, t.shop.roomOf(o)) && t.shop.affords(o) {
			return o
		}
	}
	return -1
}

// tuplesOf lists what may be bought for the class, by the values of the keys
// that its rules look at; for each combination in the first shop that has it.
func (s *settler) tuplesOf(c *class) []*tuple {
	if c.tuples != nil {
		return c.tuples
	}
	key := binary.AppendVarint(nil, int64(c.profile.id))
	for _, k := range c.rules.keys {
		key = binary.AppendVarint(key, int64(k))
	}
	if known, ok := s.tuples[string(key)]; ok {
		c.tuples = known
		return known
	}
	list := []*tuple{}
	for _, gladly := range []bool{true, false} {
		for _, shop := range s.p.shops {
			if d := shop.demand(c.profile); len(d.ways) > 0 && d.gladly == gladly {
				list = s.offered(list, shop, d, c.rules.keys)
			}
		}
	}
	s.tuples[string(key)], c.tuples = list, list
	return list
}

func (s *settler) offered(list []*tuple, shop *shop, d *demand, keys []int) []*tuple {
	known := map[string]*tuple{}
	var buf []byte
	scratch := make([]int32, 0, len(keys))
	for i := range d.ways {
		w := &d.ways[i]
		for o := w.offers.next(0); o >= 0; o = w.offers.next(o + 1) {
			s.eachOf(shop, w, o, keys, scratch, func(values []int32) {
				buf = buf[:0]
				for _, v := range values {
					buf = binary.AppendVarint(buf, int64(v))
				}
				for i := range shop.daemons {
					buf = append(buf, bit(shop.daemons[i].on.has(o)))
				}
				t := known[string(buf)]
				if t == nil {
					t = s.newTuple(shop, keys, values)
					t.key = string(buf)
					known[t.key] = t
					list = append(list, t)
				}
				if n := len(t.offers); n == 0 || t.offers[n-1] < o {
					t.offers = append(t.offers, o)
				} else if !slices.Contains(t.offers, o) {
					t.offers = append(t.offers, o)
					slices.Sort(t.offers)
				}
			})
		}
	}
	for _, t := range known {
		own := newSet(len(shop.market.offers))
		for _, o := range t.offers {
			own.add(o)
		}
		for i, y := range s.p.book.tallies {
			if y.spread && meets(own, s.p.filtered(shop, y.filter)) {
				t.spot.counts[i] = surely
			}
		}
	}
	return list
}

// eachOf calls do with every combination of values that a machine of the offer
// may have for the keys; the first ones are given. do must not keep it.
func (s *settler) eachOf(shop *shop, w *way, offer int, keys []int, first []int32, do func(values []int32)) {
	if len(first) == len(keys) {
		do(first)
		return
	}
	for _, v := range s.p.valuesFor(shop, w.masks, offer, keys[len(first)]) {
		s.eachOf(shop, w, offer, keys, append(first, v), do)
	}
}

// valuesFor lists the values of a topology key that a machine of the offer may
// have.
func (p *problem) valuesFor(shop *shop, masks []label.Mask, offer, k int) []int32 {
	key := p.book.keys[k]
	if k == p.book.host {
		return []int32{unnamed}
	}
	if shop.market.decides(key) {
		return p.valuesIn(shop.market, k)[offer : offer+1]
	}
	if i, ok := slices.BinarySearch(shop.open, key); ok {
		mask := shop.masks[i]
		if masks != nil && masks[i] != nil {
			mask = masks[i]
		}
		var out []int32
		for _, v := range shop.domain[i].Values(mask) {
			out = append(out, p.book.value(k, v))
		}
		if mask.Meets(shop.domain[i].Absent()) {
			out = append(out, absent)
		}
		return out
	}
	if v, ok := shop.fixed[key]; ok {
		return []int32{p.book.value(k, v)}
	}
	return []int32{absent}
}

// valuesIn is the value of a topology key per offer of a market that decides it.
func (p *problem) valuesIn(m *market, k int) []int32 {
	if m.values == nil {
		m.values = make([][]int32, len(p.book.keys))
	}
	if m.values[k] == nil {
		m.values[k] = make([]int32, len(m.offers))
		for i := range m.offers {
			m.values[k][i] = absent
			if v, ok := m.label(i, p.book.keys[k]); ok {
				m.values[k][i] = p.book.value(k, v)
			}
		}
	}
	return m.values[k]
}

// valueSet is the offers that have a value of a topology key.
type valueSet struct {
	value  int32
	offers set
}

// valueSets sorts the offers of a market by their value of a topology key.
func (p *problem) valueSets(m *market, k int) []valueSet {
	if m.sets == nil {
		m.sets = make([][]valueSet, len(p.book.keys))
	}
	if m.sets[k] == nil {
		at := map[int32]int{}
		for o, v := range p.valuesIn(m, k) {
			i, ok := at[v]
			if !ok {
				i = len(m.sets[k])
				at[v] = i
				m.sets[k] = append(m.sets[k], valueSet{v, newSet(len(m.offers))})
			}
			m.sets[k][i].offers.add(o)
		}
	}
	return m.sets[k]
}

func (s *settler) newTuple(shop *shop, keys []int, values []int32) *tuple {
	book := s.p.book
	t := &tuple{shop: shop, spot: spot{values: make([]int32, len(book.keys)), counts: make([]byte, len(book.tallies))}}
	for k := range t.spot.values {
		t.spot.values[k] = absent
	}
	if book.host >= 0 {
		t.spot.values[book.host] = unnamed
	}
	for i, k := range keys {
		t.spot.values[k] = values[i]
		r := label.Requirement{Key: book.keys[k], Op: label.DoesNotExist}
		if values[i] >= 0 {
			r.Op, r.Values = label.In, []string{book.name(k, values[i])}
		}
		t.reqs = append(t.reqs, r)
	}
	return t
}

// pin plans a pod for a machine of the tuple, still to be bought.
func (p *problem) pin(c *class, t *tuple, pod int32) {
	part := c.parts[t]
	if part == nil {
		part = &class{profile: p.pinned(c.profile, t), priority: c.priority, request: c.request, rules: c.rules, buyable: true, origin: c}
		if c.parts == nil {
			c.parts = map[*tuple]*class{}
		}
		c.parts[t] = part
		p.parts = append(p.parts, part)
	}
	part.pods = append(part.pods, pod)
}

// pinned is the profile with the values of the tuple.
func (p *problem) pinned(prof *profile, t *tuple) *profile {
	if len(t.reqs) == 0 {
		return prof
	}
	key := string(appendRequirements(nil, t.reqs))
	out := prof.pinned[key]
	if out == nil {
		both := *prof
		out = &both
		out.id, out.pinned, out.ways = p.profiles, nil, nil
		p.profiles++
		for _, way := range prof.ways {
			out.ways = append(out.ways, slices.Concat(way, t.reqs))
		}
		for _, s := range p.shops {
			s.demands = append(s.demands, nil)
		}
		if prof.pinned == nil {
			prof.pinned = map[string]*profile{}
		}
		prof.pinned[key] = out
	}
	return out
}

// regroup puts the pods for which machines are to be bought among the classes.
// What has rules about topology and was not placed is not to be bought for.
func (p *problem) regroup() {
	for _, c := range p.classes {
		if c.rules != nil && (c.rules.tied || len(c.rules.keys) > 0) {
			c.buyable = false
		}
	}
	p.classes = append(p.classes, p.parts...)
}
