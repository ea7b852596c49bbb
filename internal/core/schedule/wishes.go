package schedule

import (
	"slices"

	"karpenter/internal/core/world"
)

// wish decides topology that is still open by what the pods on the machines
// would like: to be spread, with others, or apart. A machine may become dearer
// by what the policy allows, but none is bought for it.
func (f *finisher) wish() {
	if !f.p.book.wishes {
		return
	}
	for i := range f.p.machines {
		m := &f.p.machines[i]
		for k := range f.p.book.keys {
			if f.spots[i].values[k] == open && f.cares(m, k) && f.p.shopDecides(m.shop, k) {
				f.grant(i, k)
			}
		}
	}
}

// cares reports whether preferences of some pod look at the key on the machine.
func (f *finisher) cares(m *machine, key int) bool {
	on := func(t int32) bool { return f.p.book.tallies[t].wish && f.p.book.tallies[t].key == key }
	return slices.ContainsFunc(m.picks, func(k pick) bool {
		r := k.class.rules
		return r != nil && (slices.ContainsFunc(r.adds, on) || slices.ContainsFunc(r.wishes, func(w wish) bool { return on(w.tally) }))
	})
}

// grant chooses the value of a key for a machine.
func (f *finisher) grant(i, key int) {
	p, m := f.p, &f.p.machines[i]
	values := p.valuesIn(m.shop.market, key)
	price := func(o int) float64 { return cost(m.shop.market.offers[o], p.policy) }
	most := price(m.suits.next(0)) * (1 + float64(p.policy.PreferenceMicros)/1e6)
	best, score := int32(absent), int64(0)
	var seen []int32
	for o := m.suits.next(0); o >= 0 && price(o) <= most; o = m.suits.next(o + 1) {
		v := values[o]
		if slices.Contains(seen, v) {
			continue
		}
		seen = append(seen, v)
		if at := f.liking(m, key, v); len(seen) == 1 || at > score {
			best, score = v, at
		}
	}
	m.keep(values, best)
	f.respot(i)
}

// liking is how much the pods of the machine would like the value.
func (f *finisher) liking(m *machine, key int, v int32) (sum int64) {
	for _, k := range m.picks {
		if k.class.rules == nil {
			continue
		}
		for _, w := range k.class.rules.wishes {
			t := f.p.book.tallies[w.tally]
			if t.key != key {
				continue
			}
			n := int64(f.board.count[w.tally].at(v))
			if !t.spread {
				n = min(n, 1)
			}
			sum += int64(w.weight) * n * int64(len(k.pods))
		}
	}
	return sum
}

// withoutPreferences is the snapshot as if no pending pod had any, and whether one
// of those that are planned does.
func withoutPreferences(s *world.Snapshot) (*world.Snapshot, bool) {
	out, some := *s, false
	out.Pending = slices.Clone(s.Pending)
	for i := range out.Pending {
		p := &out.Pending[i]
		wish := func(t world.PodTerm) bool { return t.Weight > 0 }
		soft := func(c world.Spread) bool { return c.Soft }
		if p.Refused != "" || len(p.Preferred) == 0 && !slices.ContainsFunc(p.Affinity, wish) && !slices.ContainsFunc(p.AntiAffinity, wish) && !slices.ContainsFunc(p.Spread, soft) {
			continue
		}
		some = true
		p.Preferred = nil
		p.Affinity, p.AntiAffinity = slices.DeleteFunc(slices.Clone(p.Affinity), wish), slices.DeleteFunc(slices.Clone(p.AntiAffinity), wish)
		p.Spread = slices.DeleteFunc(slices.Clone(p.Spread), soft)
	}
	return &out, some
}
