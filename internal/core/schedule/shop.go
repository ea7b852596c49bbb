package schedule

import (
	"fmt"
	"slices"

	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
)

// shop is a compiled pool: what may be bought there, how much room that leaves
// beside its daemon pods, and which labels are still open.
type shop struct {
	pool   *world.Pool
	market *market
	stats  *Stats
	d      *dims

	broken string // why nothing can be bought; empty if something can
	fixed  map[string]string
	open   []string // keys that the pool requires and leaves to the pods
	domain []label.Domain
	masks  []label.Mask // of the pool itself, per open key

	offers set     // what the pool's requirements allow and the cloud has
	listed set     // the same, with what the cloud says it has no more of
	whole  []int64 // per offer: allocatable less daemons
	room   []int64 // the same, as far as it may be used
	limits []limit
	// varieties are what the pool asks of the choice among offers; blocks, per
	// offer, are there if it insists, see [shop.insist].
	varieties []variety
	blocks    []set

	demands []*demand // per profile
	unique  map[string]*offerSet
	daemons []companion
	// filtered is where machines may count for a spread.
	filtered map[*filter]set
}

// companion is a daemon pod that rules between pods look at, on the offers
// where it will run.
type companion struct {
	name  string
	rules *rules // what it adds to
	on    set
}

// limit is what may still be bought of one resource.
type limit struct {
	name string
	left int64
	size []int64 // capacity per offer
}

// demand is what a profile asks for, in terms of one shop.
type demand struct {
	may, gladly bool // tolerates the pool's taints; without breaking a preference
	ways        []way
}

// way is one way to satisfy a profile: some offers, with the open labels
// within masks. A nil mask leaves its key alone.
type way struct {
	id     int // within the demand
	offers *offerSet
	legal  set // the same, and those that may be used together with others only
	masks  []label.Mask
}

// offerSet is a set of offers, unique in its shop.
type offerSet struct {
	set
	most []int64 // greatest room of each resource
}

func newShop(p *world.Pool, m *market, d *dims, daemons []world.Daemon, profiles []*profile, topology []label.Requirement, stats *Stats) *shop {
	s := &shop{pool: p, market: m, stats: stats, d: d, unique: map[string]*offerSet{}, fixed: map[string]string{
		label.Initialized: "true", label.Registered: "true",
	}}
	for k, v := range p.Labels {
		s.fixed[label.Normalize(k)] = v
	}
	s.demands = make([]*demand, len(profiles))
	s.listed = fullSet(len(m.offers))
	s.compileRequirements(daemons, profiles, topology)
	s.offers = slices.Clone(s.listed)
	for i, o := range m.offers {
		if !m.offering(o).Available {
			s.offers.remove(i)
		}
	}
	s.compileDaemons(daemons)
	s.whole = s.room
	s.compileVarieties()
	for _, l := range p.Limits {
		lim := limit{name: l.Name, left: l.Value - p.Used.Get(l.Name), size: make([]int64, len(m.offers))}
		for i, o := range m.offers {
			lim.size[i] = m.kind(o).Counts(l.Name)
		}
		s.limits = append(s.limits, lim)
	}
	switch {
	case p.NotReady != "":
		s.broken = p.NotReady
	case m.catalog.Trouble != "":
		s.broken = m.catalog.Trouble
	case s.broken == "" && len(m.offers) == 0:
		s.broken = "no instance types are known for it"
	case s.broken == "" && s.listed.empty():
		s.broken = "no instance type and zone satisfies its own requirements"
	}
	return s
}

// compileRequirements narrows the offers by what the pool itself asks for and
// finds the keys that it leaves open. topology lists the values of labels by which
// pods want to be together or apart.
func (s *shop) compileRequirements(daemons []world.Daemon, profiles []*profile, topology []label.Requirement) {
	reqs := normal(s.pool.Requirements)
	for _, r := range label.FromLabels(s.pool.Labels) {
		if s.market.decides(r.Key) {
			delete(s.fixed, r.Key)
			s.listed.and(s.market.table.matching(r))
		}
	}
	for _, r := range reqs {
		switch value, fixed := s.fixed[r.Key]; {
		case s.market.decides(r.Key):
			s.listed.and(s.market.table.matching(r))
		case fixed && !r.Allows(value, true):
			s.broken = fmt.Sprintf("its label %s=%s contradicts its requirement %s", r.Key, value, r)
		case !fixed && !slices.Contains(s.open, r.Key):
			s.open = append(s.open, r.Key)
		}
	}
	if len(s.open) == 0 {
		return
	}
	slices.Sort(s.open)
	named := map[string][]label.Requirement{}
	collect(named, topology)
	for _, p := range profiles {
		collect(named, p.ways...)
	}
	for i := range daemons {
		collect(named, newProfile(&daemons[i].Template).ways...)
	}
	for _, key := range s.open {
		own := slices.DeleteFunc(slices.Clone(reqs), func(r label.Requirement) bool { return r.Key != key })
		d := label.NewDomain(slices.Concat(own, named[key]))
		m := d.Mask(own...)
		if m.Empty() {
			s.broken = fmt.Sprintf("its requirements on %s contradict each other", key)
		}
		s.domain = append(s.domain, d)
		s.masks = append(s.masks, m)
	}
}

func collect(into map[string][]label.Requirement, ways ...[]label.Requirement) {
	for _, w := range ways {
		for _, r := range w {
			into[r.Key] = append(into[r.Key], r)
		}
	}
}

// compileDaemons takes off every offer's room what the daemons ask for that
// will run there. A daemon that selects on an open label counts if it may match.
// An offer that its daemons overfill takes no pods at all.
func (s *shop) compileDaemons(daemons []world.Daemon) {
	n := s.d.n()
	s.room = make([]int64, len(s.market.offers)*n)
	for i, o := range s.market.offers {
		copy(s.room[i*n:], s.market.room[int(o.kind)*n:int(o.kind+1)*n])
	}
	for i := range daemons {
		request := s.d.vector(daemons[i].Template.Requests)
		on := s.daemonOffers(&daemons[i])
		for o := on.next(0); o >= 0; o = on.next(o + 1) {
			for d, r := range request {
				s.room[o*n+d] -= r
			}
		}
	}
	for i := range s.market.offers {
		if room := s.roomOf(i); slices.Min(room) < 0 {
			room[dimPods] = min(room[dimPods], 0)
		}
	}
}

// daemonOffers returns the offers on which pods of the daemon set will run.
func (s *shop) daemonOffers(d *world.Daemon) set {
	p := newProfile(&d.Template)
	on := newSet(len(s.market.offers))
	if may, _ := p.tolerates(s.pool.Taints); may {
		for _, reqs := range p.ways {
			if offers, _, ok := s.resolve(reqs, s.listed); ok {
				on.or(offers)
			}
		}
	}
	return on
}

func (s *shop) roomOf(offer int) []int64 {
	n := s.d.n()
	return s.room[offer*n : offer*n+n]
}

// resolve turns requirements into offers and masks over open keys. ok is false
// if a label that the pool fixes, or does not have, breaks one of them.
func (s *shop) resolve(reqs []label.Requirement, within set) (offers set, masks []label.Mask, ok bool) {
	offers = slices.Clone(within)
	for _, r := range reqs {
		if s.market.decides(r.Key) {
			offers.and(s.market.table.matching(r))
			continue
		}
		if i, open := slices.BinarySearch(s.open, r.Key); open {
			if masks == nil {
				masks = make([]label.Mask, len(s.open))
			}
			if masks[i] == nil {
				masks[i] = s.masks[i]
			}
			masks[i] = masks[i].And(s.domain[i].Mask(r))
			if masks[i].Empty() {
				return offers, masks, false
			}
			continue
		}
		if !s.allowsFixed(r) {
			return offers, masks, false
		}
	}
	return offers, masks, true
}

// allowsFixed decides a requirement on a label that is the same on all nodes of
// the pool: one that the pool sets, or does not have. A new node has a name, but
// nobody can ask for it.
func (s *shop) allowsFixed(r label.Requirement) bool {
	if r.Key == label.Hostname {
		return r.Allows("", true)
	}
	value, present := s.fixed[r.Key]
	return r.Allows(value, present)
}

// demand returns what the profile asks of this shop.
func (s *shop) demand(p *profile) *demand {
	if d := s.demands[p.id]; d != nil {
		return d
	}
	d := &demand{}
	s.demands[p.id] = d
	d.may, d.gladly = p.tolerates(s.pool.Taints)
	if !d.may || s.broken != "" {
		return d
	}
	within := s.offers
	for i := range s.daemons {
		if _, bad := conflict(p.ports, s.daemons[i].rules.ports); bad {
			within = slices.Clone(within)
			for o := s.daemons[i].on.next(0); o >= 0; o = s.daemons[i].on.next(o + 1) {
				within.remove(o)
			}
		}
	}
	var plain set // ways that leave all open keys alone are one way
	for _, reqs := range p.ways {
		offers, masks, ok := s.resolve(reqs, within)
		switch {
		case !ok || offers.empty():
		case masks != nil:
			d.ways = append(d.ways, way{offers: s.intern(s.close(offers)), legal: offers, masks: masks})
		case plain == nil:
			plain = offers
		default:
			plain.or(offers)
		}
	}
	if plain != nil {
		d.ways = append([]way{{offers: s.intern(s.close(plain)), legal: plain}}, d.ways...)
	}
	for i := range d.ways {
		d.ways[i].id = i
	}
	return d
}

func (s *shop) intern(offers set) *offerSet {
	key := make([]byte, 0, len(offers)*8)
	for _, w := range offers {
		for i := range 8 {
			key = append(key, byte(w>>(8*i)))
		}
	}
	if known, ok := s.unique[string(key)]; ok {
		return known
	}
	os := &offerSet{set: offers, most: make([]int64, s.d.n())}
	for o := offers.next(0); o >= 0; o = offers.next(o + 1) {
		for d, r := range s.roomOf(o) {
			os.most[d] = max(os.most[d], r)
		}
	}
	s.unique[string(key)] = os
	return os
}

// affords reports whether the limits leave room for a machine of the offer.
func (s *shop) affords(offer int) bool {
	for i := range s.limits {
		if size := s.limits[i].size[offer]; size > 0 && size > s.limits[i].left {
			return false
		}
	}
	return true
}

// firstFit returns the cheapest affordable offer that holds one pod of the
// class, or -1.
func (s *shop) firstFit(c *class) int {
	best := -1
	for _, w := range s.demand(c.profile).ways {
		if !fits(c.request, w.offers.most) {
			continue
		}
		for o := w.offers.next(0); o >= 0 && (best < 0 || o < best); o = w.offers.next(o + 1) {
			s.stats.Evaluations++
			if fits(c.request, s.roomOf(o)) && s.affords(o) {
				best = o
			}
		}
	}
	return best
}
