package schedule

import (
	"slices"

	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
)

// gather returns the classes with rules of which pods have no place.
func (f *finisher) gather() []*class {
	p := f.p
	var classes []*class
	for _, c := range p.classes {
		if c.origin != nil {
			c.origin.returned = append(c.origin.returned, c.pods[c.next:]...)
			c.next = len(c.pods)
		}
	}
	for _, c := range p.classes {
		if c.rules == nil || c.origin != nil {
			continue
		}
		c.pods = slices.Concat(c.pods[:c.next], c.returned, c.pods[c.next:])
		slices.Sort(c.pods[c.next:])
		c.returned = nil
		if c.left() > 0 {
			classes = append(classes, c)
		}
	}
	return classes
}

// rescue looks for a place for every pod of the classes that has none yet, one
// by one: on a node, on a planned machine, which may have to grow, or on one
// more machine, whichever costs least. It reports whether it found any.
func (f *finisher) rescue(classes []*class) bool {
	any := false
	f.refused = map[refusal]bool{}
	for progress := true; progress; {
		progress = false
		for _, c := range classes {
			for c.left() > 0 && f.placeSomewhere(c) {
				progress, any = true, true
			}
		}
	}
	return any
}

// refusal is a purchase for a class: a new machine of a tuple, or a planned
// machine that grows.
type refusal struct {
	class   *class
	tuple   *tuple
	machine int
}

// placeSomewhere finds the cheapest place for the next pod of the class.
func (f *finisher) placeSomewhere(c *class) bool {
	p := f.p
	if n := f.node(c); n >= 0 {
		pods := c.take(1)
		f.enter(c, n)
		p.order = append(p.order, pods[0])
		p.place(n, pods)
		return true
	}
	if f.joinOthers(c) {
		return true
	}
	for {
		best, extra := -1, 0.0
		var grown grown
		for i := range p.machines {
			if g, ok := f.grow(i, c); ok && (best < 0 || g.extra < extra) {
				best, extra, grown = i, g.extra, g
			}
			if best >= 0 && extra <= 0 {
				break
			}
		}
		offer := f.quote(c)
		switch {
		case best >= 0 && (offer.machine == nil || extra <= offer.price/float64(offer.count)):
			if f.enlarge(c, best, grown) {
				return true
			}
		case offer.machine == nil:
			return false
		case f.buy(c, offer):
			return true
		}
	}
}

// joinOthers puts the next pod of the class on a planned machine with others for
// which the same volume is to be made.
func (f *finisher) joinOthers(c *class) bool {
	if len(c.rules.follow) == 0 {
		return false
	}
	for i, s := range f.spots {
		if c.rules.joins(s.volumes) {
			if g, ok := f.grow(i, c); ok && f.enlarge(c, i, g) {
				return true
			}
		}
	}
	return false
}

// enlarge puts the next pod of the class on a planned machine, unless that would
// undo what was placed before.
func (f *finisher) enlarge(c *class, at int, grown grown) bool {
	m := &f.p.machines[at]
	before := *m
	return f.dare(refusal{c, nil, at}, func() {
		m.suits = grown.suits
		m.picks = append(slices.Clip(m.picks), pick{c, grown.way, slices.Clone(c.take(1))})
		f.respot(at)
		f.board.put(c.rules, f.spots[at])
		f.p.order = append(f.p.order, c.pods[c.next-1])
	}, func() {
		c.next--
		*m = before
	})
}

// buy plans a new machine for pods of the class, unless that would undo what was
// placed before.
func (f *finisher) buy(c *class, q quote) bool {
	p, m := f.p, q.machine
	spend := func(sign int64) {
		for i := range m.shop.limits {
			m.shop.limits[i].left -= sign * m.shop.limits[i].size[m.offer]
		}
	}
	return f.dare(refusal{c, q.tuple, -1}, func() {
		spend(1)
		m.picks[0].pods = slices.Clone(c.take(q.count))
		p.machines = append(p.machines, *m)
		s := p.machineSpot(m)
		f.board.join(s)
		f.spots = append(f.spots, s)
		for _, pod := range m.picks[0].pods {
			f.board.put(c.rules, s)
			p.order = append(p.order, pod)
		}
	}, func() {
		spend(-1)
		c.next -= q.count
		p.machines = p.machines[:len(p.machines)-1]
	})
}

// dare does something that may open a new domain for spreads. All pods are held
// against that from the first: kube-scheduler sees all machines at once. What
// would cost one of them its place is undone and refused from then on.
func (f *finisher) dare(what refusal, do, undo func()) bool {
	p := f.p
	opened, order := f.board.opened, slices.Clip(p.order)
	do()
	if f.board.opened <= opened || len(f.play()) == 0 {
		return true
	}
	undo()
	f.refused[what] = true
	p.order = order
	f.play()
	return false
}

// grown is a planned machine with one more pod.
type grown struct {
	suits set
	way   *way
	extra float64 // what it costs more
}

// grow says what a planned machine would become with one more pod of the class.
func (f *finisher) grow(i int, c *class) (best grown, ok bool) {
	p, m := f.p, &f.p.machines[i]
	undecided := slices.ContainsFunc(c.rules.keys, func(k int) bool { return f.spots[i].values[k] == open })
	if len(m.picks) == 0 || f.refused[refusal{c, nil, i}] || !undecided && f.board.check(c.rules, f.spots[i]).kind != kept {
		return best, false
	}
	more := *m
	more.picks = append(slices.Clip(m.picks), pick{class: c, pods: make([]int32, 1)})
	need := more.need(&p.d)
	ways := m.shop.demand(c.profile).ways
	p.plan.Stats.Evaluations++
	for w := range ways {
		if _, fine := meet(m.masks(), ways[w].masks); !fine || !fits(need, ways[w].offers.most) {
			continue
		}
		g := grown{suits: slices.Clone(m.suits), way: &ways[w]}
		g.suits.and(ways[w].legal)
		for o := g.suits.next(0); o >= 0; o = g.suits.next(o + 1) {
			if !fits(need, m.shop.wholeRoomOf(o)) {
				g.suits.remove(o)
			}
		}
		if g.suits.empty() || !m.shop.varied(g.suits) {
			continue
		}
		trial := *m
		trial.picks = append(slices.Clip(m.picks), pick{c, g.way, nil})
		for _, k := range c.rules.keys {
			if p.shopDecides(m.shop, k) {
				trial.suits = g.suits
				values := p.valuesIn(m.shop.market, k)
				trial.keep(values, values[g.suits.next(0)])
			}
		}
		trial.suits = g.suits
		p.sharpen(&trial)
		s := p.machineSpot(&trial)
		if p.book.host >= 0 {
			s.values[p.book.host] = f.spots[i].values[p.book.host]
		}
		s.ports, s.brings = f.spots[i].ports, nil
		if f.board.check(c.rules, s).kind != kept {
			continue
		}
		price := func(s set) float64 { return cost(m.shop.market.offers[s.next(0)], p.policy) }
		if g.extra = price(g.suits) - price(m.suits); !ok || g.extra < best.extra {
			best, ok = g, true
		}
	}
	return best, ok
}

// respot brings the board up to date with what a machine has become.
func (f *finisher) respot(i int) {
	f.board.change(f.spots[i], func() { f.p.redraw(f.spots[i], &f.p.machines[i]) })
}

// quote is a machine that could be bought for some pods.
type quote struct {
	machine *machine // nil if there is none
	tuple   *tuple
	count   int
	price   float64
}

// quote is the cheapest new machine for a pod of the class; where its pods must
// share a host, for as many as one can hold.
func (f *finisher) quote(c *class) (best quote) {
	for _, t := range f.tuplesOf(c) {
		if first := t.first(c); first >= 0 {
			t.spot.bring(t.shop, first)
		}
		if f.refused[refusal{c, t, -1}] || f.board.check(c.rules, &t.spot).kind != kept {
			continue
		}
		count := 1
		if c.rules.tied {
			count = max(1, min(c.left(), 10_000, newHost(f.p.book).with(t.shop, t.first(c)).limit(c.rules)))
		}
		for ; count > 0; count /= 2 {
			need := make([]int64, len(c.request))
			for d, r := range c.request {
				need[d] = r * int64(count)
			}
			at := slices.IndexFunc(t.offers, func(o int) bool { return fits(need, t.shop.roomOf(o)) && t.shop.affords(o) })
			if at < 0 {
				continue
			}
			o := t.offers[at]
			each := cost(t.shop.market.offers[o], f.p.policy)
			if best.machine == nil || each/float64(count) < best.price/float64(best.count) {
				if m := f.newMachine(c, t, o, count); m != nil {
					best = quote{m, t, count, each}
				}
			}
			break
		}
	}
	return best
}

func (f *finisher) newMachine(c *class, t *tuple, offer, count int) *machine {
	p := f.p
	prof := p.pinned(c.profile, t)
	ways := t.shop.demand(prof).ways
	for w := range ways {
		if !ways[w].offers.has(offer) {
			continue
		}
		part := *c
		part.profile, part.origin = prof, c
		m := &machine{shop: t.shop, offer: offer, picks: []pick{{&part, &ways[w], make([]int32, count)}}}
		m.suits = p.suits(m)
		p.sharpen(m)
		return m
	}
	return nil
}

// masks are what the pods of the machine leave of the open labels.
func (m *machine) masks() (masks []label.Mask) {
	for _, k := range m.picks {
		masks, _ = meet(masks, k.way.masks)
	}
	return masks
}

// need is what the pods of the machine ask for; volumes that they share count
// once.
func (m *machine) need(d *dims) []int64 {
	need := make([]int64, d.n())
	var there []world.Attachment
	for _, k := range m.picks {
		for i, r := range k.class.request {
			need[i] += r * int64(len(k.pods))
		}
		if k.class.rules == nil {
			continue
		}
		for range k.pods {
			for i, n := range k.class.rules.again(d, there) {
				need[i] -= n
			}
			there = append(there, k.class.rules.shared...)
		}
	}
	return need
}
