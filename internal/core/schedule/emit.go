package schedule

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

// offering is what a machine may be bought as; machines that hold the same
// share one.
type offering struct {
	options      []Option
	requirements []label.Requirement
	labels       map[string]string
	requests     quantity.Resources
}

// raise turns a planned machine into words.
func (p *problem) raise(m *machine, known map[string]*offering) Machine {
	key := m.key(nil)
	o := known[string(key)]
	if o == nil {
		o = p.offering(m)
		known[string(key)] = o
	}
	out := Machine{
		Pool: m.shop.pool.Name, PoolKind: m.shop.pool.Kind, Requests: o.requests, Requirements: o.requirements, Labels: maps.Clone(o.labels),
		Options: o.options, Price: o.options[0].Price,
	}
	for _, k := range m.picks {
		for _, i := range k.pods {
			out.Pods = append(out.Pods, p.pods[i].ObjectName)
		}
	}
	slices.SortFunc(out.Pods, world.ObjectName.Compare)
	return out
}

// offering finds all offers that hold the machine's pods.
func (p *problem) offering(m *machine) *offering {
	s := m.shop
	suits := slices.Clone(m.suits)
	if suits == nil {
		suits = p.suits(m)
	}
	p.prefer(m, suits)
	chosen := p.choose(s, suits)
	out := &offering{labels: s.decide(m.masks())}
	for _, i := range chosen {
		o := s.market.offers[i]
		at := s.market.offering(o)
		out.options = append(out.options, Option{s.market.kind(o).Name, at.Zone, at.CapacityType, o.price})
	}
	out.requirements = s.describe(chosen, out.labels)
	out.requests = p.requests(m, chosen)
	return out
}

// suits returns the offers that hold the machine's pods.
func (p *problem) suits(m *machine) set {
	suits := slices.Clone(m.shop.offers)
	if m.shop.blocks != nil && slices.ContainsFunc(m.picks, func(k pick) bool { return k.class.rules != nil }) {
		suits.and(m.shop.blocks[m.offer]) // rules narrow it as a whole
	}
	for _, k := range m.picks {
		suits.and(k.way.legal)
	}
	need := m.need(&p.d)
	for o := suits.next(0); o >= 0; o = suits.next(o + 1) {
		p.plan.Stats.Evaluations++
		if !fits(need, m.shop.wholeRoomOf(o)) || m.shop.outgrows(o, m.offer) {
			suits.remove(o)
		}
	}
	return suits
}

// outgrows reports whether an offer counts more against a limit than the one
// for which the machine was planned, and which was taken off the limits.
func (s *shop) outgrows(offer, planned int) bool {
	return slices.ContainsFunc(s.limits, func(l limit) bool { return l.size[offer] > l.size[planned] })
}

// prefer narrows the offers to what the pods prefer, heaviest first, as long as
// that costs no more than the policy allows.
func (p *problem) prefer(m *machine, suits set) {
	cheapest := suits.next(0)
	most := cost(m.shop.market.offers[cheapest], p.policy) * (1 + float64(p.policy.PreferenceMicros)/1e6)
	seen := map[*profile]bool{}
	var prefs []world.Preference
	for _, k := range m.picks {
		if !seen[k.class.profile] {
			seen[k.class.profile] = true
			prefs = append(prefs, k.class.profile.preferred...)
		}
	}
	slices.SortStableFunc(prefs, func(a, b world.Preference) int { return cmp.Compare(b.Weight, a.Weight) })
	for _, pref := range prefs {
		liked, masks, ok := m.shop.resolve(pref.Term, suits)
		if first := liked.next(0); ok && masks == nil && first >= 0 && m.shop.varied(liked) && cost(m.shop.market.offers[first], p.policy) <= most {
			suits.and(liked)
		}
	}
}

// choose picks the cheapest offers such that type, zone and capacity type can be
// named independently: every combination of them that exists will do. Where the
// demands do not allow that, zone and capacity type are those of the cheapest.
func (p *problem) choose(s *shop, suits set) []int {
	if s.blocks != nil {
		return s.chooseVaried(suits, p.opt.MaxOptions)
	}
	chosen := s.cheapest(suits, p.opt.MaxOptions)
	if s.independent(chosen, suits) {
		return chosen
	}
	first := s.market.offering(s.market.offers[chosen[0]])
	return slices.DeleteFunc(chosen, func(c int) bool {
		a := s.market.offering(s.market.offers[c])
		return a.Zone != first.Zone || a.CapacityType != first.CapacityType
	})
}

// independent reports whether every combination of the types, zones and capacity
// types of the chosen offers suits, as far as it exists.
func (s *shop) independent(chosen []int, suits set) bool {
	kinds := make([]bool, len(s.market.catalog.Types))
	zone, capacity := s.market.table.column(label.Zone), s.market.table.column(label.CapacityType)
	zones, capacities := make([]bool, len(zone.values)+1), make([]bool, len(capacity.values)+1)
	for _, i := range chosen {
		kinds[s.market.offers[i].kind], zones[zone.ids[i]], capacities[capacity.ids[i]] = true, true, true
	}
	for w := range suits {
		for word := s.offers[w] &^ suits[w]; word != 0; word &= word - 1 {
			i := w<<6 + bits.TrailingZeros64(word)
			if kinds[s.market.offers[i].kind] && zones[zone.ids[i]] && capacities[capacity.ids[i]] {
				return false
			}
		}
	}
	return true
}

// decide gives every open label a value.
func (s *shop) decide(masks []label.Mask) map[string]string {
	out := s.labels()
	for i, key := range s.open {
		mask := s.masks[i]
		if masks != nil && masks[i] != nil {
			mask = masks[i]
		}
		if value, present, _ := s.domain[i].Value(mask); present {
			if out == nil {
				out = map[string]string{}
			}
			out[key] = value
		}
	}
	return out
}

// describe writes the chosen offers and decided labels as requirements.
func (s *shop) describe(chosen []int, labels map[string]string) []label.Requirement {
	some := newSet(len(s.market.offers))
	for _, i := range chosen {
		some.add(i)
	}
	var out []label.Requirement
	for _, key := range []string{label.InstanceType, label.Zone, label.CapacityType} {
		out = append(out, label.Requirement{Key: key, Op: label.In, Values: s.market.table.distinct(key, some)})
	}
	for _, r := range normal(s.pool.Requirements) {
		switch r.Key {
		case label.InstanceType, label.Zone, label.CapacityType:
		default:
			if s.market.decides(r.Key) {
				out = append(out, r)
			}
		}
	}
	for i, r := range out {
		out[i].MinValues = s.leastOf(r.Key, chosen)
	}
	for _, key := range s.open {
		if v, ok := labels[key]; ok {
			out = append(out, label.Requirement{Key: key, Op: label.In, Values: []string{v}})
		}
	}
	label.Sort(out)
	return out
}

// requests adds up what pods and daemons ask for; of the daemons, the least
// over the options.
func (p *problem) requests(m *machine, options []int) quantity.Resources {
	var pods quantity.Resources
	for _, k := range m.picks {
		for _, i := range k.pods {
			pods = pods.Add(p.pods[i].Requests)
		}
	}
	n := p.d.n()
	least := make([]int64, n)
	for j, i := range options {
		kind := int(m.shop.market.offers[i].kind)
		for d, left := range m.shop.wholeRoomOf(i) {
			if used := m.shop.market.room[kind*n+d] - left; j == 0 || used < least[d] {
				least[d] = used
			}
		}
	}
	for d, v := range least[:p.d.resources()] {
		if v != 0 {
			pods = pods.With(p.d.name(d), pods.Get(p.d.name(d))+v)
		}
	}
	return pods
}
