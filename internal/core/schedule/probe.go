package schedule

import (
	"slices"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

// Probe tells quickly, and as often as asked, what would become of the pods of
// machines that go: which of them find room on the others, and whether one new
// machine would hold the rest. It compiles a snapshot once; after that the cost
// follows the pods that move.
//
// Rules between pods are left out, and pods are placed one after the other. So
// its "no" saves the work of asking [Solve], and its "yes" must be confirmed by
// it.
type Probe struct {
	d       dims
	places  *places
	classes []*class
	shops   []*shop
	stats   Stats

	at    map[string]int // number of a node among the places, by name
	loads [][]portionOf  // per place: its pods that would need another one
	order []int          // in which places are filled
	peak  []int64        // per block of order and resource: no place there has more room

	gone     set           // places that were taken out
	filled   []int32       // per place: pods that moved there
	homeless []portionOf   // pods that found no room
	log      []probeChange // what to undo
}

// portionOf is some pods of one class.
type portionOf struct{ class, pods int32 }

// probeChange is pods that moved to a place; with none, the place was taken out
// when so many portions were homeless.
type probeChange struct {
	place int
	portionOf
}

// block is how many places share one upper bound of their room.
const block = 64

// NewProbe compiles the snapshot. Pods that are pending there are of no
// concern. Places are filled in the given order of names; those that are not
// named, and are initialized, come first.
func NewProbe(s *world.Snapshot, last []string) *Probe {
	p := &Probe{at: map[string]int{}}
	nodes := sortedNodes(s.Nodes)
	var pods []*world.Pod
	for _, n := range nodes {
		if n.Claim == "" || n.Deleting {
			continue
		}
		for i := range n.Pods {
			if n.Pods[i].Leaves(n) {
				pods = append(pods, &n.Pods[i])
			}
		}
	}
	slices.SortFunc(pods, comparePods)
	daemons := slices.Clone(s.Daemons)
	slices.SortFunc(daemons, func(a, b world.Daemon) int { return a.ObjectName.Compare(b.ObjectName) })
	all := slices.Clone(pods)
	for i := range daemons {
		all = append(all, &daemons[i].Template)
	}
	p.d = dimsOf(all)
	var profiles []*profile
	p.classes, profiles = classify(pods, &p.d, nil)
	p.places = newPlaces(nodes, &p.d, daemons, &p.stats)
	p.compileLoads(pods)
	p.compileOrder(last)
	p.compileShops(s, daemons, profiles)
	return p
}

// compileLoads notes where the pods of each class are.
func (p *Probe) compileLoads(pods []*world.Pod) {
	for i, n := range p.places.nodes {
		p.at[n.Name] = i
	}
	p.loads = make([][]portionOf, len(p.places.nodes))
	for c, class := range p.classes {
		for _, pod := range class.pods {
			at := p.at[pods[pod].Node]
			if l := p.loads[at]; len(l) > 0 && l[len(l)-1].class == int32(c) {
				l[len(l)-1].pods++
			} else {
				p.loads[at] = append(l, portionOf{int32(c), 1})
			}
		}
	}
	p.gone, p.filled = newSet(len(p.places.nodes)), make([]int32, len(p.places.nodes))
}

func (p *Probe) compileOrder(last []string) {
	named := newSet(len(p.places.nodes))
	var then []int
	for _, name := range last {
		if i, ok := p.at[name]; ok && !named.has(i) {
			named.add(i)
			then = append(then, i)
		}
	}
	for i := range p.places.nodes {
		if !named.has(i) {
			p.order = append(p.order, i)
		}
	}
	p.order = append(p.order, then...)
	// Nobody is moved to a machine that is still coming up.
	p.order = slices.DeleteFunc(p.order, func(i int) bool { return !p.places.nodes[i].Initialized && p.places.nodes[i].Claim != "" })
	p.bound()
}

// bound computes the greatest room in each block.
func (p *Probe) bound() {
	n := p.d.n()
	p.peak = make([]int64, (len(p.order)+block-1)/block*n)
	for i, place := range p.order {
		peak := p.peak[i/block*n : i/block*n+n]
		for d, r := range p.places.roomOf(place) {
			peak[d] = max(peak[d], r)
		}
	}
}

func (p *Probe) compileShops(s *world.Snapshot, daemons []world.Daemon, profiles []*profile) {
	pools := slices.Clone(s.Pools)
	world.SortPools(pools)
	markets := map[world.CatalogKey]*market{}
	for i := range pools {
		key := pools[i].Catalog
		if markets[key] == nil {
			c := s.Catalogs[key]
			markets[key] = newMarket(&c, &p.d)
		}
		p.shops = append(p.shops, newShop(&pools[i], markets[key], &p.d, daemons, profiles, nil, &p.stats))
	}
}

// Leave takes the machine out and finds room for its pods on the others. It
// does nothing and returns false for a machine that is out already, to which
// pods have moved, or which is not in the snapshot.
func (p *Probe) Leave(node string) bool { return p.leave(node, p.house) }

// Clear takes the machine out as Leave does, and leaves all of its pods
// homeless.
func (p *Probe) Clear(node string) bool {
	return p.leave(node, func(l portionOf) int32 { return l.pods })
}

func (p *Probe) leave(node string, house func(portionOf) (left int32)) bool {
	at, ok := p.at[node]
	if !ok || p.gone.has(at) || p.filled[at] > 0 {
		return false
	}
	p.gone.add(at)
	p.log = append(p.log, probeChange{at, portionOf{int32(len(p.homeless)), 0}})
	for _, l := range p.loads[at] {
		if left := house(l); left > 0 {
			p.homeless = append(p.homeless, portionOf{l.class, left})
		}
	}
	return true
}

// house puts pods of one class where there is room, and returns how many are
// left.
func (p *Probe) house(l portionOf) int32 {
	c := p.classes[l.class]
	suits, n := p.places.matching(c.profile), p.d.n()
	for from := 0; from < len(p.order) && l.pods > 0; from += block {
		p.stats.Evaluations++
		if !fits(c.request, p.peak[from/block*n:from/block*n+n]) {
			continue
		}
		for _, place := range p.order[from:min(from+block, len(p.order))] {
			if p.gone.has(place) || !suits.has(place) {
				continue
			}
			p.stats.Evaluations++
			k := int32(times(c.request, p.places.roomOf(place), int(l.pods)))
			if k == 0 {
				continue
			}
			p.places.take(place, c.request, int64(k))
			p.filled[place] += k
			p.log = append(p.log, probeChange{place, portionOf{l.class, k}})
			if l.pods -= k; l.pods == 0 {
				break
			}
		}
	}
	return l.pods
}

// Mark is the present state, for [Probe.Undo].
func (p *Probe) Mark() int { return len(p.log) }

// Undo takes back everything since the mark.
func (p *Probe) Undo(mark int) {
	for i := len(p.log) - 1; i >= mark; i-- {
		c := p.log[i]
		if c.pods == 0 {
			p.gone.remove(c.place)
			p.homeless = p.homeless[:c.class]
			continue
		}
		p.places.take(c.place, p.classes[c.class].request, -int64(c.pods))
		p.filled[c.place] -= c.pods
	}
	p.log = p.log[:mark]
}

// Homeless is how many pods found no room.
func (p *Probe) Homeless() int {
	sum := 0
	for _, h := range p.homeless {
		sum += int(h.pods)
	}
	return sum
}

// Evaluations counts the work done so far, see [Stats].
func (p *Probe) Evaluations() int64 { return p.stats.Evaluations }

// Cheapest returns the price of the cheapest machine that would hold all
// homeless pods together, in the first pool that sells one; ok is false if there
// is none below the given price. Without spot, only on-demand machines count.
func (p *Probe) Cheapest(below quantity.Price, spot bool) (price quantity.Price, ok bool) {
	p.holding(below, func(_ *world.InstanceType, o *world.Offering) bool {
		if o.CapacityType == label.Spot && !spot {
			return true
		}
		price, ok = o.Price, o.Price < below // a dearer one too: the pods go to the first pool that takes them
		return false
	})
	return price, ok
}

// SpotTypes counts the instance types of which a spot machine below the price
// would hold all homeless pods.
func (p *Probe) SpotTypes(below quantity.Price) int {
	types := map[string]bool{}
	p.holding(below, func(t *world.InstanceType, o *world.Offering) bool {
		if o.CapacityType == label.Spot && o.Price < below {
			types[t.Name] = true
		}
		return o.Price < below
	})
	return len(types)
}

// holding calls yield with the offerings that would hold all homeless pods, of
// one pool after the other, from the cheapest, until it returns false. Of the
// last pool it leaves out those that are not below the price.
func (p *Probe) holding(below quantity.Price, yield func(*world.InstanceType, *world.Offering) bool) {
	need := make([]int64, p.d.n())
	for _, h := range p.homeless {
		for d, r := range p.classes[h.class].request {
			need[d] += r * int64(h.pods)
		}
	}
	for i, s := range p.shops {
		offers, any := p.offers(s)
		for o := offers.next(0); any && o >= 0; o = offers.next(o + 1) {
			p.stats.Evaluations++
			offer := s.market.offers[o]
			if offer.price >= below && i == len(p.shops)-1 {
				break
			}
			if fits(need, s.roomOf(o)) && s.affords(o) && !yield(s.market.kind(offer), s.market.offering(offer)) {
				return
			}
		}
	}
}

// offers are those of a pool that suit all homeless pods.
func (p *Probe) offers(s *shop) (set, bool) {
	out := slices.Clone(s.offers)
	for _, h := range p.homeless {
		ways := s.demand(p.classes[h.class].profile).ways
		if len(ways) == 0 {
			return nil, false
		}
		some := slices.Clone(ways[0].legal)
		for _, w := range ways[1:] {
			some.or(w.legal)
		}
		out.and(some)
	}
	return out, !out.empty()
}
