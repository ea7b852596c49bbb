package schedule

import (
	"fmt"
	"slices"

	"karpenter/internal/core/label"
	"karpenter/internal/core/reason"
	"karpenter/internal/core/world"
)

// A pool may ask that what its machines may become keeps at least so many
// different values of a label (minValues of a requirement), so that the cloud
// has a choice. To plan for that, every offer stands for a block: itself and
// others with which it has enough values, of which no more is used than all of
// them hold, and which only pods share that may use all of them. Whatever is
// planned for the offer then fits the whole block. A block holds every
// combination of its types, zones and capacity types, so that each can be named
// by itself.

// variety is one such demand of a pool.
type variety struct {
	key   string
	least int
	ids   []int32 // per offer: number of its value, 0 if it has none
}

// compileVarieties collects what the pool asks for; of one key the greatest
// counts.
func (s *shop) compileVarieties() {
	for _, r := range normal(s.pool.Requirements) {
		if r.MinValues < 1 {
			continue
		}
		i := slices.IndexFunc(s.varieties, func(v variety) bool { return v.key == r.Key })
		if i < 0 {
			i = len(s.varieties)
			s.varieties = append(s.varieties, variety{key: r.Key})
			if s.market.decides(r.Key) {
				s.varieties[i].ids = s.market.table.column(r.Key).ids
			}
		}
		s.varieties[i].least = max(s.varieties[i].least, r.MinValues)
	}
}

// insist makes the pool buy nothing that has fewer values than it asks for.
func (s *shop) insist(profiles []*profile) {
	if len(s.varieties) == 0 {
		return
	}
	for _, v := range s.varieties {
		if has := v.count(s.listed); has < v.least && s.broken == "" {
			s.broken = fmt.Sprintf("its requirement on %s asks for at least %d different values (minValues), and the instance types that suit it have %d", v.key, v.least, has)
		}
	}
	s.room, s.blocks = slices.Clone(s.whole), make([]set, len(s.market.offers))
	m := newMason(s, profiles)
	for o := s.offers.next(0); o >= 0; o = s.offers.next(o + 1) {
		block, room := m.block(o)
		if block == nil {
			room = slices.Clone(s.roomOf(o))
			room[dimPods] = min(room[dimPods], 0)
		}
		s.blocks[o] = block
		copy(s.roomOf(o), room)
	}
}

// count is the number of different values among the offers.
func (v *variety) count(of set) int {
	seen := map[int32]bool{}
	for o := of.next(0); o >= 0 && v.ids != nil; o = of.next(o + 1) {
		if v.ids[o] > 0 {
			seen[v.ids[o]] = true
		}
	}
	return len(seen)
}

// wholeRoomOf is all the room of an offer, whatever other offers hold.
func (s *shop) wholeRoomOf(offer int) []int64 {
	n := s.d.n()
	return s.whole[offer*n : offer*n+n]
}

// closed reports whether whoever may use these offers may use the whole block of
// this one.
func (s *shop) closed(offer int, of set) bool {
	return s.blocks == nil || s.blocks[offer] != nil && within(s.blocks[offer], of)
}

// close returns the offers of which the whole block is among them.
func (s *shop) close(of set) set {
	if s.blocks == nil {
		return of
	}
	out := newSet(len(s.blocks))
	for o := of.next(0); o >= 0; o = of.next(o + 1) {
		if s.closed(o, of) {
			out.add(o)
		}
	}
	return out
}

// varied reports whether the offers have enough different values.
func (s *shop) varied(of set) bool {
	if s.blocks == nil {
		return true
	}
	for o := of.next(0); o >= 0; o = of.next(o + 1) {
		if s.closed(o, of) {
			return true
		}
	}
	return false
}

func within(a, b set) bool {
	for i := range a {
		if a[i]&^b[i] != 0 {
			return false
		}
	}
	return true
}

// cheapest returns the cheapest offers, at most so many, and those beyond that
// are needed for the values that the pool asks for.
func (s *shop) cheapest(of set, most int) (chosen []int) {
	t := newValueCount(s.varieties)
	for o := of.next(0); o >= 0; o = of.next(o + 1) {
		if missed := t.add([]int{o}); len(chosen) < most || missed {
			chosen = append(chosen, o)
		}
	}
	return chosen
}

// chooseVaried chooses offers as choose does, with enough different values: all
// that suit, else those of one zone and capacity type, the cheapest first, else a
// block. It returns nil if there is no such choice.
func (s *shop) chooseVaried(suits set, most int) []int {
	good := func(chosen []int) bool {
		t := newValueCount(s.varieties)
		t.add(chosen)
		return t.enough() && s.independent(chosen, suits)
	}
	if all := s.cheapest(suits, most); good(all) {
		return all
	}
	tried := map[[2]string]bool{}
	for o := suits.next(0); o >= 0; o = suits.next(o + 1) {
		at := s.market.offering(s.market.offers[o])
		if place := [2]string{at.Zone, at.CapacityType}; !tried[place] {
			tried[place] = true
			here := slices.Clone(suits)
			for i := here.next(0); i >= 0; i = here.next(i + 1) {
				if there := s.market.offering(s.market.offers[i]); there.Zone != at.Zone || there.CapacityType != at.CapacityType {
					here.remove(i)
				}
			}
			if some := s.cheapest(here, most); good(some) {
				return some
			}
		}
	}
	for o := suits.next(0); o >= 0; o = suits.next(o + 1) {
		if s.closed(o, suits) {
			return s.cheapest(s.blocks[o], len(s.blocks[o])*64)
		}
	}
	return nil
}

// leastOf is the number of different values of the key that a machine is bought
// with: what the pool asks for, or where it may be less, what the offers have.
func (s *shop) leastOf(key string, chosen []int) int {
	for _, v := range s.varieties {
		if v.key == key && s.blocks != nil {
			return v.least
		}
		if v.key == key {
			of := newSet(len(s.market.offers))
			for _, o := range chosen {
				of.add(o)
			}
			return min(v.least, v.count(of))
		}
	}
	return 0
}

// tooFewValues says that the offers, which are large enough for the class, have
// too few different values; nil if they have enough.
func (s *shop) tooFewValues(c *class, large set) reason.Reason {
	if s.blocks == nil {
		return nil
	}
	for o := large.next(0); o >= 0; o = large.next(o + 1) {
		if fits(c.request, s.roomOf(o)) && s.closed(o, large) {
			return nil
		}
	}
	short := s.varieties[0]
	for _, v := range s.varieties {
		if v.count(large) < v.least {
			short = v
			break
		}
	}
	return reason.TooFewValues{Pool: reason.Pool{Kind: s.pool.Kind, Name: s.pool.Name}, Label: short.key, Need: short.least, Has: short.count(large)}
}

// unvaried finds the machines that rules between pods have left with too few
// values, and takes them off the plan; their pods wait.
func (p *problem) unvaried() {
	p.machines = slices.DeleteFunc(p.machines, func(m machine) bool {
		suits := m.suits
		if m.shop.blocks == nil || suits == nil || m.shop.varied(suits) {
			return false
		}
		for _, k := range m.picks {
			why := m.shop.tooFewValues(k.class, suits)
			for _, i := range k.pods {
				p.plan.Unplaced = append(p.plan.Unplaced, Unplaced{p.pods[i].ObjectName, []reason.Reason{why}})
				p.order = slices.DeleteFunc(p.order, func(o int32) bool { return o == i })
			}
		}
		return true
	})
}

// insists reports whether the pool buys nothing with too few values; then it is
// not for the checker to say what it could have bought.
func (c *checker) insists(p *world.Pool) bool {
	return !c.s.Policy.RelaxMinValues && slices.ContainsFunc(p.Requirements, func(r label.Requirement) bool { return r.MinValues > 0 })
}

// checkValues checks that a machine keeps the values that its pool asks for.
func (c *checker) checkValues(where string, p *world.Pool, m *Machine) {
	cat := c.s.Catalogs[p.Catalog]
	for _, r := range normal(p.Requirements) {
		seen := map[string]bool{}
		for _, o := range m.Options {
			for t := range cat.Types {
				if kind := &cat.Types[t]; kind.Name == o.Type {
					at := newPlace(p, &cat, kind, &world.Offering{Zone: o.Zone, CapacityType: o.CapacityType}, nil)
					seen[at.labels[r.Key]] = true
				}
			}
		}
		if delete(seen, ""); len(seen) < r.MinValues && !c.s.Policy.RelaxMinValues {
			c.bad("%s: %d different values of %s among its options, the pool asks for %d", where, len(seen), r.Key, r.MinValues)
		}
	}
}
