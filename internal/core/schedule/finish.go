package schedule

import (
	"encoding/binary"
	"slices"

	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
)

// finisher holds what was planned against the rules between pods as
// kube-scheduler would, pod by pod, and puts right what does not hold.
type finisher struct {
	*settler
	spots []*spot // per machine
	where []int   // per pod: its node in places, or ^machine
	// refused are purchases that would undo what was placed before.
	refused map[refusal]bool
}

// nowhere is the place of a pod that has none.
const nowhere = 1 << 30

// finish makes the plan one that kube-scheduler can follow in the order that it
// names. Pods that cannot go where they were planned are planned once more, one
// by one. So are those that could not if they came last: it is kube-scheduler
// that decides in which order pods come.
func (p *problem) finish() {
	if p.book == nil {
		return
	}
	f := &finisher{settler: p.settler}
	f.narrow()
	for round := range 5 {
		f.close()
		for f.replay() || round < 4 && f.unsettle() {
		}
		classes := f.gather()
		if round == 4 || !f.rescue(classes) {
			break
		}
	}
	f.wish()
}

// narrow finds the offers that each machine may become.
func (f *finisher) narrow() {
	p := f.p
	known := map[string]set{}
	for i := range p.machines {
		m := &p.machines[i]
		key := m.key(nil)
		if known[string(key)] == nil {
			known[string(key)] = p.suits(m)
		}
		m.suits = slices.Clone(known[string(key)])
		p.sharpen(m)
	}
}

// close sees to it that no machine on which rules do not decide the topology
// opens a domain by chance in which spreads that are followed would lack pods.
func (f *finisher) close() {
	p := f.p
	b := p.ground.board()
	var spots []*spot
	for i := range p.machines {
		s := p.machineSpot(&p.machines[i])
		b.join(s)
		spots = append(spots, s)
	}
	for t, y := range p.book.tallies {
		if !y.spread || y.wish || y.key == p.book.host {
			continue
		}
		for i := range p.machines {
			s, m := spots[i], &p.machines[i]
			if v := s.values[y.key]; s.counts[t] == perhaps && v >= 0 && !b.count[t].known(v) {
				m.agree(p.filteredBy(m.shop, y.filter, m.shop.decide(m.masks())))
				b.change(s, func() { p.redraw(s, m) })
			}
			if s.counts[t] == never || s.values[y.key] != open || !p.shopDecides(m.shop, y.key) {
				continue
			}
			known := func(v valueSet) bool { return b.count[t].known(v.value) }
			sets := p.valueSets(m.shop.market, y.key)
			if !slices.ContainsFunc(sets, func(v valueSet) bool { return meets(m.suits, v.offers) && !known(v) }) {
				continue
			}
			sure := newSet(len(m.suits) * 64)
			for _, v := range sets {
				if meets(m.suits, v.offers) && known(v) {
					sure.or(v.offers)
				}
			}
			if sure.and(m.suits); !sure.empty() {
				m.suits = sure
			} else {
				values := p.valuesIn(m.shop.market, y.key)
				m.keep(values, values[m.suits.next(0)])
			}
			b.change(s, func() { p.redraw(s, m) })
		}
	}
}

// sharpen keeps offers such that it is certain whether the machine counts for the
// spreads in which its pods count, and which daemon pods run there that rules
// look at.
func (p *problem) sharpen(m *machine) {
	for i := range m.shop.daemons {
		d := &m.shop.daemons[i]
		m.agree(d.on)
		for _, t := range d.rules.adds {
			if key := p.book.tallies[t].key; d.on.has(m.suits.next(0)) && m.shop.market.decides(p.book.keys[key]) {
				values := p.valuesIn(m.shop.market, key)
				m.keep(values, values[m.like()])
			}
		}
	}
	labels := m.shop.decide(m.masks())
	for _, k := range m.picks {
		if k.class.rules == nil {
			continue
		}
		for _, t := range k.class.rules.adds {
			y := p.book.tallies[t]
			if !y.spread || y.filter == nil {
				continue
			}
			m.agree(p.filteredBy(m.shop, y.filter, labels))
		}
	}
}

// redraw brings a spot up to date with what its machine has become; its host and
// ports stay.
func (p *problem) redraw(s *spot, m *machine) {
	next := p.machineSpot(m)
	if h := p.book.host; h >= 0 {
		next.values[h] = s.values[h]
	}
	next.ports, next.volumes, next.brings = s.ports, s.volumes, nil
	*s = *next
}

func (p *problem) shopDecides(s *shop, k int) bool { return s.market.decides(p.book.keys[k]) }

// like is an offer that the machine is likely to become.
func (m *machine) like() int {
	if m.suits.has(m.offer) {
		return m.offer
	}
	return m.suits.next(0)
}

// agree keeps the offers that are in the set, or those that are not, whichever
// the likely one is.
func (m *machine) agree(on set) {
	in := on.has(m.like())
	for i := range m.suits {
		if in {
			m.suits[i] &= on[i]
		} else {
			m.suits[i] &^= on[i]
		}
	}
}

// keep keeps the offers that have the value.
func (m *machine) keep(values []int32, value int32) {
	for o := m.suits.next(0); o >= 0; o = m.suits.next(o + 1) {
		if values[o] != value {
			m.suits.remove(o)
		}
	}
}

// key identifies what a machine is and holds.
func (m *machine) key(k []byte) []byte {
	k = appendText(k, m.shop.pool.Kind+"/"+m.shop.pool.Name)
	if len(m.shop.limits) > 0 || m.shop.blocks != nil {
		k = binary.AppendVarint(k, int64(m.offer))
	}
	for _, pick := range m.picks {
		k = binary.AppendVarint(binary.AppendVarint(k, int64(pick.class.pods[0])), int64(pick.class.profile.id))
		k = binary.AppendVarint(k, int64(len(pick.pods)))
		k = binary.AppendVarint(k, int64(pick.way.id))
	}
	for _, w := range m.suits {
		k = binary.LittleEndian.AppendUint64(k, w)
	}
	return k
}

// machineSpot is the machine as a place on the board.
func (p *problem) machineSpot(m *machine) *spot {
	s := m.shop
	labels := s.decide(m.masks())
	at := &spot{values: make([]int32, len(p.book.keys)), may: make([][]int32, len(p.book.keys)), counts: make([]byte, len(p.book.tallies))}
	for k, key := range p.book.keys {
		at.values[k] = absent
		switch v, ok := labels[key]; {
		case k == p.book.host:
			at.values[k] = unnamed
		case s.market.decides(key):
			for _, v := range p.valueSets(s.market, k) {
				if meets(m.suits, v.offers) {
					at.may[k] = append(at.may[k], v.value)
				}
			}
			if at.values[k] = at.may[k][0]; len(at.may[k]) > 1 {
				at.values[k] = open
				at.may[k] = slices.DeleteFunc(at.may[k], func(v int32) bool { return v < 0 })
			}
		case ok:
			at.values[k] = p.book.value(k, v)
		default:
			if v, ok := s.fixed[key]; ok {
				at.values[k] = p.book.value(k, v)
			}
		}
	}
	for i, t := range p.book.tallies {
		if !t.spread {
			continue
		}
		if at.counts[i] = p.counts(m, t.filter, labels, at); at.counts[i] == perhaps && at.values[t.key] == open {
			on := slices.Clone(m.suits)
			on.and(p.filteredBy(s, t.filter, labels))
			at.narrow(int32(i), func(v int32) bool {
				return slices.ContainsFunc(p.valueSets(s.market, t.key), func(o valueSet) bool { return o.value == v && meets(on, o.offers) })
			}, t.key)
		}
	}
	if like := m.suits.next(0); like >= 0 {
		at.bring(s, like)
	}
	return at
}

func (p *problem) counts(m *machine, f *filter, labels map[string]string, at *spot) byte {
	if f == nil {
		return surely
	}
	for _, k := range f.keys {
		if at.values[k] == absent {
			return never
		}
	}
	on := p.filteredBy(m.shop, f, labels)
	if !meets(m.suits, on) {
		return never
	}
	for i, w := range m.suits {
		if w&^on[i] != 0 {
			return perhaps
		}
	}
	return surely
}

// filtered is the offers of a shop whose machines may count for a spread.
func (p *problem) filtered(s *shop, f *filter) set {
	if f == nil {
		return s.listed
	}
	if s.filtered == nil {
		s.filtered = map[*filter]set{}
	}
	on, ok := s.filtered[f]
	if !ok {
		on = f.offers(s, nil)
		s.filtered[f] = on
	}
	return on
}

// filteredBy is the same where the labels that the pool leaves open are decided.
func (p *problem) filteredBy(s *shop, f *filter, labels map[string]string) set {
	if f == nil || len(s.open) == 0 {
		return p.filtered(s, f)
	}
	if labels == nil {
		labels = map[string]string{}
	}
	return f.offers(s, labels)
}

// offers are those on which a machine of the shop counts; if labels is nil, with
// the open labels in any way.
func (f *filter) offers(s *shop, labels map[string]string) set {
	on := newSet(len(s.market.offers))
	if f.taints {
		if _, bad := world.FirstUntolerated(s.pool.Taints, f.tolerations); bad {
			return on
		}
	}
	if f.ways == nil {
		return s.listed
	}
	for _, reqs := range f.ways {
		if some, ok := s.satisfying(reqs, labels); ok {
			on.or(some)
		}
	}
	return on
}

// satisfying is the offers that meet the requirements, with the open labels as
// decided, or in any way if labels is nil.
func (s *shop) satisfying(reqs []label.Requirement, labels map[string]string) (set, bool) {
	on := slices.Clone(s.listed)
	for _, r := range reqs {
		_, open := slices.BinarySearch(s.open, r.Key)
		switch {
		case s.market.decides(r.Key):
			on.and(s.market.table.matching(r))
		case open:
			if v, ok := labels[r.Key]; labels != nil && !r.Allows(v, ok) {
				return on, false
			}
		case !s.allowsFixed(r):
			return on, false
		}
	}
	return on, true
}

// replay puts all pods that have rules on a board, in the order in which they
// were planned, as often as that takes. Those that are never accepted lose
// their place. It reports whether a machine has become empty by that, so that
// the others may have to be looked at again.
func (f *finisher) replay() bool {
	p := f.p
	for _, pod := range f.play() {
		f.lose(pod)
	}
	before := len(p.machines)
	p.machines = slices.DeleteFunc(p.machines, func(m machine) bool {
		if len(m.picks) > 0 {
			return false
		}
		for i := range m.shop.limits {
			m.shop.limits[i].left += m.shop.limits[i].size[m.offer]
		}
		return true
	})
	return len(p.machines) < before
}

// unsettle takes pods off their places that would be refused there if they came
// last, and reports whether there are any. Those that came last go first.
func (f *finisher) unsettle() (any bool) {
	p := f.p
	for _, pod := range slices.Backward(p.order) {
		if r, s := p.bound[pod], f.spotOf(pod); !f.board.lasting(r, s) {
			f.board.remove(r.adds, s)
			f.lose(pod)
			any = true
		}
	}
	return any
}

// play makes a new board, on which the pods are that were accepted, and returns
// the others.
func (f *finisher) play() (left []int32) {
	p := f.p
	f.board, f.spots = p.ground.board(), nil
	f.where = make([]int, len(p.pods))
	for i := range f.where {
		f.where[i] = nowhere
		if n := p.onNode[i]; n >= 0 {
			f.where[i] = int(n)
		}
	}
	for i := range p.machines {
		m := &p.machines[i]
		s := p.machineSpot(m)
		f.board.join(s)
		f.spots = append(f.spots, s)
		for _, k := range m.picks {
			for _, pod := range k.pods {
				f.where[pod] = ^i
			}
		}
	}
	left = f.queue()
	p.order = nil
	for before := -1; before != len(left); {
		before = len(left)
		left = slices.DeleteFunc(left, func(pod int32) bool {
			s := f.spotOf(pod)
			if f.board.check(p.bound[pod], s).kind != kept {
				return false
			}
			f.board.put(p.bound[pod], s)
			p.order = append(p.order, pod)
			return true
		})
	}
	return left
}

// queue lists the placed pods that have rules: first those whose order was
// decided.
func (f *finisher) queue() []int32 {
	p := f.p
	queued := make([]bool, len(p.pods))
	var out []int32
	add := func(pod int32) {
		if !queued[pod] && f.where[pod] != nowhere && p.bound[pod] != nil {
			queued[pod] = true
			out = append(out, pod)
		}
	}
	for _, pod := range p.order {
		add(pod)
	}
	for pod := range p.pods {
		add(int32(pod))
	}
	return out
}

func (f *finisher) spotOf(pod int32) *spot {
	if n := f.where[pod]; n >= 0 {
		return f.board.spots[f.p.ground.places[n]]
	}
	return f.spots[^f.where[pod]]
}

// lose takes a pod off its place.
func (f *finisher) lose(pod int32) {
	p := f.p
	c := p.classOf[pod]
	if n := f.where[pod]; n >= 0 {
		p.places.take(n, less(c.request, c.rules.again(&p.d, f.attachedBeside(pod))), -1)
		p.onNode[pod] = -1
	} else {
		m := &p.machines[^n]
		for i := range m.picks {
			k := &m.picks[i]
			k.pods = slices.DeleteFunc(slices.Clone(k.pods), func(o int32) bool { return o == pod })
		}
		m.picks = slices.DeleteFunc(m.picks, func(k pick) bool { return len(k.pods) == 0 })
	}
	f.where[pod] = nowhere
	c.returned = append(c.returned, pod)
}
