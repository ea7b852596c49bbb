package schedule

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"

	"karpenter/internal/core/reason"
	"karpenter/internal/core/world"
)

// problem is a snapshot lowered to numbers, and the plan that grows from it.
type problem struct {
	opt      Options
	policy   world.Policy
	pods     []*world.Pod // by comparePods
	d        dims
	classes  []*class
	places   *places
	shops    []*shop
	machines []machine
	plan     Plan

	profiles int
	book     *rulebook // nil if there are no rules between pods
	ground   *ground
	settler  *settler
	parts    []*class // pods whose topology was decided
	order    []int32  // pods with rules, in the order in which they were placed
	onNode   []int32  // per pod: its place in places, or -1
	bound    []*rules // per pod
	classOf  []*class // per pod; of parts, the whole
}

// machine is one machine to be bought, or several equal ones.
type machine struct {
	shop  *shop
	offer int // the one it was filled for
	picks []pick
	suits set // what it may become; nil if nobody asked yet
}

// pick is some pods of one class on a machine, and the way in which the class
// is satisfied there.
type pick struct {
	class *class
	way   *way
	pods  []int32
}

// Solve decides where the pending pods go. Where preferences would keep pods
// pending they are not followed at all.
func Solve(s *world.Snapshot, opt Options) Plan {
	if opt.MaxOptions == 0 {
		opt.MaxOptions = 300
	}
	plan := solve(s, opt)
	if len(plan.Unplaced) > 0 && s.Policy.PreferenceMicros > 0 {
		if indifferent, some := withoutPreferences(s); some {
			if other := solve(indifferent, opt); len(other.Unplaced) < len(plan.Unplaced) {
				return other
			}
		}
	}
	return plan
}

func solve(s *world.Snapshot, opt Options) Plan {
	p := compile(s, opt)
	p.useNodes()
	p.buy()
	p.finish()
	p.unvaried()
	p.emit()
	return p.plan
}

func compile(s *world.Snapshot, opt Options) *problem {
	p := &problem{opt: opt, policy: s.Policy}
	p.collectPods(s)
	daemons := slices.Clone(s.Daemons)
	slices.SortFunc(daemons, func(a, b world.Daemon) int { return a.ObjectName.Compare(b.ObjectName) })

	all := slices.Clone(p.pods)
	for i := range daemons {
		all = append(all, &daemons[i].Template)
	}
	p.d = dimsOf(all)
	nodes := sortedNodes(s.Nodes)
	p.book = newRulebook(&p.d, p.pods, nodes, daemons, s.Policy.PreferenceMicros > 0)
	var profiles []*profile
	p.classes, profiles = classify(p.pods, &p.d, p.book)
	p.profiles = len(profiles)
	p.onNode = slices.Repeat([]int32{-1}, len(p.pods))
	if p.book != nil {
		p.bound, p.classOf = make([]*rules, len(p.pods)), make([]*class, len(p.pods))
		for _, c := range p.classes {
			for _, i := range c.pods {
				p.bound[i], p.classOf[i] = c.rules, c
			}
		}
	}
	stats := &p.plan.Stats
	stats.Pods, stats.Classes, stats.Profiles = len(p.pods), len(p.classes), len(profiles)

	p.places = newPlaces(nodes, &p.d, daemons, stats)
	if p.book != nil {
		p.ground = newGround(p.book, nodes, p.places)
	}
	topology := p.book.domains(nodes, s.Pools)
	pools := slices.Clone(s.Pools)
	world.SortPools(pools)
	markets := map[world.CatalogKey]*market{}
	for i := range pools {
		m := markets[pools[i].Catalog]
		if m == nil {
			c, ok := s.Catalogs[pools[i].Catalog]
			if !ok && c.Trouble == "" {
				c.Trouble = "its instance types are not known yet"
			}
			m = newMarket(&c, &p.d)
			markets[pools[i].Catalog] = m
			stats.Offers += len(m.offers)
		}
		shop := newShop(&pools[i], m, &p.d, daemons, profiles, topology, stats)
		if !s.Policy.RelaxMinValues {
			shop.insist(profiles)
		}
		p.shops = append(p.shops, shop)
	}
	if p.book != nil {
		p.book.accompany(p.shops, daemons)
	}
	return p
}

// collectPods lists what wants a place. Which pods of nodes that are going away
// are among the pending ones is decided by who made the snapshot: some cannot
// leave, and some have a place already. Pods that are not understood are set
// aside.
func (p *problem) collectPods(s *world.Snapshot) {
	seen := make(map[world.ObjectName]bool, len(s.Pending))
	add := func(pod *world.Pod) {
		switch {
		case seen[pod.ObjectName]:
		case pod.Refused != "":
			p.plan.Unplaced = append(p.plan.Unplaced, Unplaced{pod.ObjectName, []reason.Reason{reason.NotUnderstood{What: pod.Refused}}})
		default:
			p.pods = append(p.pods, pod)
		}
		seen[pod.ObjectName] = true
	}
	for i := range s.Pending {
		add(&s.Pending[i])
	}
	sortPods(p.pods)
}

// sortPods sorts by comparePods. What mostly decides lies side by side.
func sortPods(pods []*world.Pod) {
	type rank struct {
		numbers [5]int64 // what comes before the UID
		uid     uint64   // its beginning
		pod     *world.Pod
	}
	ranks := make([]rank, len(pods))
	for i, p := range pods {
		var uid [8]byte
		copy(uid[:], p.UID)
		ranks[i] = rank{
			[5]int64{-int64(p.Priority), -p.Requests.MilliCPU, -p.Requests.MemoryBytes, p.Created.Unix(), int64(p.Created.Nanosecond())},
			binary.BigEndian.Uint64(uid[:]), p,
		}
	}
	slices.SortFunc(ranks, func(a, b rank) int {
		for i, n := range a.numbers {
			if n != b.numbers[i] {
				return cmp.Compare(n, b.numbers[i])
			}
		}
		if a.uid != b.uid {
			return cmp.Compare(a.uid, b.uid)
		}
		return comparePods(a.pod, b.pod)
	})
	for i, r := range ranks {
		pods[i] = r.pod
	}
}

func sortedNodes(nodes []world.Node) []*world.Node {
	sorted := slices.Clone(nodes)
	world.SortNodes(sorted)
	out := make([]*world.Node, len(sorted))
	for i := range sorted {
		out[i] = &sorted[i]
	}
	return out
}

// useNodes fills the places that exist. Pods that cannot be bought for come
// first, one by one in their order, in which constraints have no part; the
// others by what they are worth, see stow.
func (p *problem) useNodes() {
	p.appraise()
	type single struct {
		pod   int32
		class *class
	}
	var hopeful []single
	var rest []*class
	for _, c := range p.classes {
		if c.buyable {
			rest = append(rest, c)
			continue
		}
		if c.rules != nil {
			continue
		}
		for _, pod := range c.pods {
			hopeful = append(hopeful, single{pod, c})
		}
	}
	slices.SortFunc(hopeful, func(a, b single) int { return cmp.Compare(a.pod, b.pod) })
	orders := map[*class][]int{}
	for _, h := range hopeful {
		order, ok := orders[h.class]
		if !ok {
			order = p.places.ranked(h.class.profile)
		}
		// Room only shrinks: what refused an equal pod need not be asked again.
		for len(order) > 0 && times(h.class.request, p.places.roomOf(order[0]), 1) == 0 {
			p.plan.Stats.Evaluations++
			order = order[1:]
		}
		orders[h.class] = order
		p.places.fill(h.class, order, 1, p.place)
	}
	if p.book != nil {
		p.settler = newSettler(p)
		defer p.settler.settle()
	}
	if len(p.places.nodes) == 0 {
		return
	}
	p.stow(rest)
}

func (p *problem) place(node int, pods []int32) {
	for _, i := range pods {
		p.onNode[i] = int32(node)
	}
}

// appraise finds out which classes can be bought for, and what their pods are
// worth in the first pool that takes them.
func (p *problem) appraise() {
	at := make(map[*shop][]*class)
	for _, c := range p.classes {
		for _, s := range p.shops {
			if s.firstFit(c) >= 0 {
				c.buyable = true
				at[s] = append(at[s], c)
				break
			}
		}
	}
	for _, s := range p.shops {
		appraise(s, at[s], p.policy)
	}
}

// buy plans new machines. The first pool in which a pod fits gets it; pools
// with a taint that a pod would rather avoid come after all others.
func (p *problem) buy() {
	for _, gladly := range []bool{true, false} {
		if !gladly {
			p.topUp()
		}
		for _, s := range p.shops {
			var here []*class
			for _, c := range p.classes {
				d := s.demand(c.profile)
				if c.left() > 0 && c.buyable && len(d.ways) > 0 && (d.gladly || !gladly) && s.firstFit(c) >= 0 {
					here = append(here, c)
				}
			}
			if len(here) > 0 {
				pk := newPacker(s, here, p.policy, p.book)
				p.machines = append(p.machines, pk.run()...)
			}
		}
	}
}

// topUp gives pods that only pools take which they would rather avoid the room
// that is left on machines of those pools, before more are bought.
func (p *problem) topUp() {
	for i := range p.machines {
		m := &p.machines[i]
		room := slices.Clone(m.shop.roomOf(m.offer))
		masks := m.masks()
		for d, r := range m.need(&p.d) {
			room[d] -= r
		}
		for _, c := range p.classes {
			if c.left() == 0 || !c.buyable || c.rules != nil {
				continue
			}
			ways := m.shop.demand(c.profile).ways
			for w := range ways {
				both, ok := meet(masks, ways[w].masks)
				k := times(c.request, room, c.left())
				if !ok || k == 0 || !ways[w].offers.has(m.offer) {
					continue
				}
				masks = both
				for d, r := range c.request {
					room[d] -= r * int64(k)
				}
				m.picks = append(m.picks, pick{c, &ways[w], c.take(k)})
				break
			}
		}
	}
}

// emit raises the machines to the plan and explains what is left.
func (p *problem) emit() {
	for i, at := range p.onNode {
		if at < 0 {
			continue
		}
		n := p.places.nodes[at]
		to := Placement{Pod: p.pods[i].ObjectName, Claim: n.Claim}
		if n.Joined {
			to.Node = n.Name
		}
		p.plan.Placements = append(p.plan.Placements, to)
	}
	known := map[string]*offering{}
	for i := range p.machines {
		p.plan.Machines = append(p.plan.Machines, p.raise(&p.machines[i], known))
	}
	for _, c := range p.classes {
		if c.left() == 0 {
			continue
		}
		why := p.explain(c)
		for _, i := range c.pods[c.next:] {
			p.plan.Unplaced = append(p.plan.Unplaced, Unplaced{p.pods[i].ObjectName, why})
		}
	}
	p.emitOrder()
	slices.SortFunc(p.plan.Unplaced, func(a, b Unplaced) int { return a.Pod.Compare(b.Pod) })
	slices.SortFunc(p.plan.Placements, func(a, b Placement) int { return a.Pod.Compare(b.Pod) })
}

// emitOrder writes down in which order pods are to come: those that rules bind
// as they were placed, then the others.
func (p *problem) emitOrder() {
	if p.book == nil {
		return
	}
	p.plan.Order = make([]world.ObjectName, 0, len(p.pods))
	for _, i := range p.order {
		p.plan.Order = append(p.plan.Order, p.pods[i].ObjectName)
	}
	for i, pod := range p.pods {
		if p.bound[i] == nil && p.onNode[i] >= 0 {
			p.plan.Order = append(p.plan.Order, pod.ObjectName)
		}
	}
	for i := range p.machines {
		for _, k := range p.machines[i].picks {
			for _, pod := range k.pods {
				if p.bound[pod] == nil {
					p.plan.Order = append(p.plan.Order, p.pods[pod].ObjectName)
				}
			}
		}
	}
}

// labels are what machines of the shop carry, less what is decided per machine.
func (s *shop) labels() map[string]string { return maps.Clone(s.pool.Labels) }
