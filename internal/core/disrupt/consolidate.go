package disrupt

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/reason"
	"karpenter/internal/core/schedule"
	"karpenter/internal/core/world"
)

// Sizes of a search.
const (
	// mostAtOnce is how many machines one command removes at most.
	mostAtOnce = 100
	// mostMerged is how many machines are replaced by one.
	mostMerged = 8
	// tries is how often a set of machines is made smaller until it may go.
	tries = 4
)

// consolidatable: the pool wants its machines to cost less, and nothing has
// come to this one or gone from it for a while.
func consolidatable(c candidate) (time.Time, bool) {
	if c.pool == nil || !c.pool.Consolidate {
		return time.Time{}, false
	}
	since := c.node.Created
	if c.node.PodEvent != nil {
		since = *c.node.PodEvent
	}
	if q := c.pool.Disruption.QuietFor; q != nil {
		since = c.swept(since.Add(q.Duration))
		return since, !c.before(since)
	}
	return since, true
}

// consolidates: the pool still wants its machines to cost less. That pods come
// or go is no reason to keep a machine whose replacement is paid for.
func consolidates(c candidate) bool { return c.pool != nil && c.pool.Consolidate }

// consolidate looks for machines whose pods find room on others, then for
// machines that one cheaper machine can stand in for. The probe proposes, Solve
// confirms.
func (r *round) consolidate(m method, due []candidate) {
	// Most money for what is disturbed goes first, and is filled up last.
	slices.SortStableFunc(due, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.ratio(), a.ratio()), strings.Compare(a.node.Name, b.node.Name))
	})
	s := &search{round: r, method: m, due: due, kept: map[string]reason.Reason{}, ruled: map[string]reason.Reason{}}
	for s.remove() {
	}
	s.replaceAll()
	for _, c := range s.due {
		if why := s.kept[c.node.Name]; why != nil {
			r.keep(m, c.node.Name, why)
		}
	}
}

// ratio is the money that the machine's end would save for what it disturbs.
func (c candidate) ratio() float64 {
	if c.price == quantity.PriceUnknown {
		return 0
	}
	return float64(c.price) / c.disturbs
}

// search is one look for machines that can be had for less.
type search struct {
	*round
	method method
	due    []candidate // those that are left
	probe  *schedule.Probe
	kept   map[string]reason.Reason // by node
	// ruled are the machines that would be empty but for rules between pods.
	ruled map[string]reason.Reason
}

// look compiles what is there now.
func (s *search) look() *schedule.Probe {
	if s.probe == nil {
		last := make([]string, len(s.due))
		for i, c := range s.due {
			last[len(last)-1-i] = c.node.Name
		}
		s.probe = schedule.NewProbe(s.s, last)
	}
	return s.probe
}

// remove finds machines whose pods all find room on the others, and reports
// whether to look for more.
func (s *search) remove() bool {
	if len(s.due) == 0 || s.full() {
		return false
	}
	p, start, ruled := s.look(), s.look().Mark(), len(s.ruled)
	var set []candidate
	for _, c := range s.due {
		if len(set) == mostAtOnce {
			break
		}
		if s.kept[c.node.Name] != nil || s.ruled[c.node.Name] != nil {
			continue
		}
		if why := s.ledger.refuses(c); why != nil {
			s.kept[c.node.Name] = why
			continue
		}
		if why := s.unbalanced([]candidate{c}, known(c.price)); why != nil { // not even its end would be worth it
			s.kept[c.node.Name] = why
			continue
		}
		mark := p.Mark()
		if p.Leave(c.node.Name) && p.Homeless() == 0 {
			s.ledger.draw(c)
			set = append(set, c)
		} else {
			p.Undo(mark)
		}
	}
	p.Undo(start)
	drawn := set
	for range tries {
		if len(set) == 0 || s.spent() {
			break
		}
		w := s.whatIf(set, s.s)
		if w.why == nil && len(w.replace) == 0 {
			s.ledger.back(drawn)
			s.take(w.command(s.method.name), set)
			return true
		}
		s.blame(&w)
		set = slices.DeleteFunc(slices.Clone(set), func(c candidate) bool { return w.stuck[c.node.Name] })
	}
	s.ledger.back(drawn)
	return len(s.ruled) > ruled // those are left out the next time
}

// blame notes the machines that cannot go because of pods that did not find the
// room that the probe had seen.
func (s *search) blame(w *whatIf) {
	bought := map[world.ObjectName]bool{}
	for _, m := range w.replace {
		for _, pod := range m.Pods {
			bought[pod] = true
		}
	}
	for _, c := range w.gone {
		for _, p := range c.node.Pods {
			if bought[p.ObjectName] && !w.stuck[c.node.Name] {
				w.stuck[c.node.Name] = true
				s.ruled[c.node.Name] = RulesKeep{Pod: p.ObjectName, Rules: rulesOf(&p)}
			}
		}
		if w.why != nil && w.stuck[c.node.Name] && s.ruled[c.node.Name] == nil {
			s.ruled[c.node.Name] = w.why
		}
	}
}

// rulesOf names the kinds of rules between pods that the pod has.
func rulesOf(p *world.Pod) (out []string) {
	for _, kind := range []struct {
		name string
		has  bool
	}{
		{"topology spread", len(p.Spread) > 0}, {"affinity", len(p.Affinity) > 0},
		{"anti-affinity", len(p.AntiAffinity) > 0}, {"host ports", len(p.HostPorts) > 0},
	} {
		if kind.has {
			out = append(out, kind.name)
		}
	}
	return out
}

// take commits a command.
func (s *search) take(cmd *Command, set []candidate) {
	for _, c := range set {
		s.ledger.draw(c)
		s.ledger.close(c)
		delete(s.kept, c.node.Name)
	}
	s.commit(cmd)
	s.probe = nil
	// Machines to which pods move stay: no command may need another to be done
	// first.
	s.due = slices.DeleteFunc(s.due, func(c candidate) bool {
		i := slices.IndexFunc(cmd.Moves, func(m schedule.Placement) bool { return m.Node == c.node.Name })
		if i >= 0 {
			s.keep(s.method, c.node.Name, Promised{Pod: cmd.Moves[i].Pod})
		}
		return i >= 0 || slices.ContainsFunc(set, func(o candidate) bool { return o.node.Name == c.node.Name })
	})
	for i := range s.due { // the snapshot is another one now
		s.due[i].node = nodeNamed(s.s, s.due[i].node.Name)
	}
}

func nodeNamed(s *world.Snapshot, name string) *world.Node {
	i := slices.IndexFunc(s.Nodes, func(n world.Node) bool { return n.Name == name })
	return &s.Nodes[i]
}

// replaceAll looks for machines that a cheaper one can stand in for.
func (s *search) replaceAll() {
	for i := 0; i < len(s.due); {
		if s.full() {
			return
		}
		c := s.due[i]
		if s.kept[c.node.Name] == nil && !s.replaceOne(i) || s.kept[c.node.Name] != nil {
			i++ // otherwise another one stands there now
		}
	}
}

// replaceOne looks for a machine that stands in for a candidate and those after
// it, and reports whether it has taken some.
func (s *search) replaceOne(i int) bool {
	c := s.due[i]
	switch why := s.ledger.refuses(c); {
	case why != nil:
		s.kept[c.node.Name] = why
		return false
	case c.price == quantity.PriceUnknown:
		s.kept[c.node.Name] = NoPrice{}
		return false
	case s.spent():
		s.kept[c.node.Name] = NotLookedAt{}
		return false
	}
	set, most := s.propose(i)
	if len(set) == 0 {
		s.kept[c.node.Name] = s.notCheaper(c)
		return false
	}
	w, why := s.cheaper(set, most)
	if why == nil {
		why = s.unbalanced(set, w.command(s.method.name).Saves)
	}
	if why != nil {
		if ruled := s.ruled[c.node.Name]; ruled != nil {
			why = ruled
		}
		s.kept[c.node.Name] = why
		return false
	}
	s.take(w.command(s.method.name), set)
	return true
}

// propose returns the candidate and those after it for which one new machine
// would save most, and what that may cost at most.
func (s *search) propose(i int) (set []candidate, most quantity.Price) {
	p := s.look()
	defer p.Undo(p.Mark())
	var sum, saves quantity.Price
	var all []candidate
	for _, c := range s.due[i:] {
		if len(all) == mostMerged {
			break
		}
		if c.price == quantity.PriceUnknown || s.kept[c.node.Name] != nil {
			continue
		}
		if s.ledger.refuses(c) != nil || !p.Clear(c.node.Name) {
			break
		}
		s.ledger.draw(c)
		all, sum = append(all, c), sum+c.price
		if price, ok := p.Cheapest(s.below(sum), spotTypes(all) != 0); ok && sum-price > saves {
			set, most, saves = slices.Clone(all), s.below(sum), sum-price
		}
	}
	s.ledger.back(all)
	return set, most
}

// notCheaper says why no machine can stand in for the candidate alone.
func (s *search) notCheaper(c candidate) reason.Reason {
	if why := s.ruled[c.node.Name]; why != nil {
		return why
	}
	if spotTypes([]candidate{c}) == 0 {
		p := s.look()
		defer p.Undo(p.Mark())
		if p.Clear(c.node.Name) {
			if n := p.SpotTypes(s.below(c.price)); n > 0 {
				return SpotStays{Types: n}
			}
		}
	}
	return NotCheaper{Price: c.price}
}

// spotTypes is of how many spot types there must be a choice for one spot
// machine to stand in for the set; 0: none may.
func spotTypes(set []candidate) int {
	least := 0
	for _, c := range set {
		if c.node.Labels[label.CapacityType] != label.Spot {
			return 1
		}
		if least = max(least, c.pool.Disruption.SpotToSpot); c.pool.Disruption.SpotToSpot == 0 {
			return 0
		}
	}
	if len(set) > 1 {
		return 1 // several become one: that is no walk down the ladder
	}
	return least
}

// below is what a replacement must cost less than. What differs by no more than
// the tolerance counts as equally dear.
func (s *search) below(sum quantity.Price) quantity.Price {
	return sum - quantity.Price(float64(sum)*float64(s.s.Policy.TieToleranceMicros)/1e6)
}

// cheaper asks Solve for one machine that stands in for the set and costs less
// than most, whatever the cloud makes of it.
func (s *search) cheaper(set []candidate, most quantity.Price) (whatIf, reason.Reason) {
	var first reason.Reason
	for _, market := range []string{label.Spot, label.OnDemand} {
		least := 1
		if market == label.Spot {
			least = spotTypes(set)
		}
		if least == 0 {
			continue
		}
		w := s.whatIf(set, selling(s.s, market, most))
		why := w.why
		if why == nil && len(w.replace) > 1 {
			why = SeveralNeeded{Machines: len(w.replace)}
		}
		if why == nil && len(w.replace) == 1 && least > 1 {
			types := map[string]bool{}
			for _, o := range w.replace[0].Options {
				types[o.Type] = true
			}
			if len(types) < least {
				why = FewSpotTypes{Types: len(types), Least: least}
			}
		}
		if why == nil {
			return w, nil
		}
		if first == nil {
			first = why
		}
	}
	return whatIf{}, first
}

// aMachine is what a machine costs per hour, beside its price, where one is
// wanted and not several: more than any price.
const aMachine quantity.Price = 1_000_000_000

// selling is the snapshot with only those types for sale, in one market, that
// cost less than most in every zone: whichever zone the cloud chooses, the
// machine is cheaper. Nodes have no room: a replacement takes all the pods of
// the machines that it stands in for, or what is saved would be paid for with a
// second kind of disturbance each time. Machines are so dear that one is bought rather than two;
// what preferences may cost stays the same share of the price.
func selling(s *world.Snapshot, market string, most quantity.Price) *world.Snapshot {
	out := *s
	if out.Policy.PreferenceMicros > 0 {
		out.Policy.PreferenceMicros = max(1, int64(float64(out.Policy.PreferenceMicros)*float64(most)/float64(aMachine)))
	}
	out.Policy.MachineCost, out.Policy.TieToleranceMicros = aMachine, 0
	out.Nodes = slices.Clone(s.Nodes)
	for i := range out.Nodes {
		out.Nodes[i].Allocatable = quantity.Resources{}
	}
	out.Catalogs = make(map[world.CatalogKey]world.Catalog, len(s.Catalogs))
	for key, c := range s.Catalogs {
		types := make([]world.InstanceType, 0, len(c.Types))
		for _, t := range c.Types {
			var offerings []world.Offering
			worst := quantity.Price(0)
			for _, o := range t.Offerings {
				if o.CapacityType == market && o.Available {
					offerings, worst = append(offerings, o), max(worst, o.Price)
				}
			}
			if len(offerings) > 0 && worst < most {
				t.Offerings = offerings
				types = append(types, t)
			}
		}
		c.Types = types
		out.Catalogs[key] = c
	}
	return &out
}

// recheck looks at a command for the money again: all of its machines must still
// be there to go, and it must need no more machines, and no dearer ones.
func (r *round) recheck(m method, cmd Command, left []candidate, out *Command) {
	keepAll := func(why reason.Reason) {
		for _, c := range left {
			r.keep(m, c.node.Name, why)
		}
	}
	if len(left) < len(cmd.Remove) {
		keepAll(Reduced{})
		return
	}
	w, why := whatIf{}, reason.Reason(nil)
	if len(cmd.Replace) == 0 {
		w = r.whatIf(left, r.s)
		if why = w.why; why == nil && len(w.replace) > 0 {
			why = SeveralNeeded{Machines: len(w.replace)}
		}
	} else {
		s := &search{round: r, method: m}
		w, why = s.cheaper(left, s.below(total(left)))
		if why == nil && len(w.replace) != 1 {
			why = Reduced{}
		}
	}
	if why == nil {
		why = r.unbalanced(left, w.command(m.name).Saves)
	}
	if why != nil {
		keepAll(why)
		return
	}
	*out = *w.command(m.name)
}

// known is the price; 0 if it is not known.
func known(price quantity.Price) quantity.Price {
	if price == quantity.PriceUnknown {
		return 0
	}
	return price
}

func total(set []candidate) (sum quantity.Price) {
	for _, c := range set {
		if c.price >= math.MaxInt64-sum {
			return quantity.PriceUnknown
		}
		sum += c.price
	}
	return sum
}
