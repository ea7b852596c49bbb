package schedule

import (
	"cmp"
	"slices"
	"strings"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/reason"
	"karpenter/internal/core/world"
)

// How close a pool came to taking a pod: what stopped it, from the first thing
// looked at to the last.
const (
	byTaint = iota
	byLabel
	byTypes
	byUnknown // nobody knows what the pool could buy
	bySize
	byCapacity
	byValues
	byRules
	byLimit
	byNothing
	byPool // all would suit, but the pool cannot buy now
)

// explain says for every pool why it does not take the class, the closest
// first.
func (p *problem) explain(c *class) []reason.Reason {
	if len(p.shops) == 0 {
		return []reason.Reason{reason.NoPools{}}
	}
	type answer struct {
		why   reason.Reason
		close int
	}
	answers := make([]answer, len(p.shops))
	for i, s := range p.shops {
		answers[i].why, answers[i].close = s.refuse(c)
		if answers[i].close == byNothing {
			if why := p.refuseRules(s, c); why != nil {
				answers[i].why, answers[i].close = why, byRules
			}
		}
	}
	slices.SortStableFunc(answers, func(a, b answer) int { return cmp.Compare(b.close, a.close) })
	out := make([]reason.Reason, len(answers))
	for i, a := range answers {
		out[i] = a.why
	}
	return out
}

// refuse says why the shop does not take the class: of several ways to satisfy
// it, the one that came closest.
func (s *shop) refuse(c *class) (why reason.Reason, close int) {
	pool := reason.Pool{Kind: s.pool.Kind, Name: s.pool.Name}
	if t, bad := world.FirstUntolerated(s.pool.Taints, c.profile.tolerations); bad {
		return reason.TaintNotTolerated{Pool: pool, Taint: t.String()}, byTaint
	}
	why, close = reason.NoTypeSuits{Pool: pool, Requirements: []string{"a node affinity of empty terms, which match nothing"}}, -1
	for _, reqs := range c.profile.ways {
		if w, k := s.refuseWay(c, reqs); k > close {
			why, close = w, k
		}
	}
	return why, close
}

func (s *shop) refuseWay(c *class, reqs []label.Requirement) (reason.Reason, int) {
	pool := reason.Pool{Kind: s.pool.Kind, Name: s.pool.Name}
	if why := s.refuseLabel(reqs); why != nil {
		return why, byLabel
	}
	if s.broken != "" && s.listed.empty() {
		return reason.PoolNotReady{Pool: pool, Why: s.broken}, byUnknown
	}
	suit := slices.Clone(s.listed)
	var asked []string
	for _, r := range reqs {
		if !s.market.decides(r.Key) {
			continue
		}
		asked = append(asked, r.String())
		has := s.market.table.matching(r)
		if !meets(s.listed, has) {
			offered := s.market.table.distinct(r.Key, s.listed)
			// What may have been meant need not be among what the pool allows.
			known := s.market.table.distinct(r.Key, fullSet(len(s.market.offers)))
			return reason.LabelMismatch{Pool: pool, Label: r.Key, Wants: r.String(), Has: offered, Hint: meant(r, known)}, byTypes
		}
		suit.and(has)
	}
	if suit.empty() {
		return reason.NoTypeSuits{Pool: pool, Requirements: asked}, byTypes
	}
	return s.refuseSize(c, suit)
}

// meant is a known value that somebody may have meant who asks for values of
// which none is known. All zones of a region are alike.
func meant(r label.Requirement, known []string) string {
	if r.Op != label.In || r.Key == label.Zone || slices.ContainsFunc(r.Values, func(v string) bool { return slices.Contains(known, v) }) {
		return ""
	}
	for _, v := range r.Values {
		if hint := label.Hint(v, known); hint != "" {
			return hint
		}
	}
	return ""
}

func meets(a, b set) bool {
	for i := range a {
		if a[i]&b[i] != 0 {
			return true
		}
	}
	return false
}

// refuseLabel looks at the labels that the cloud does not decide.
func (s *shop) refuseLabel(reqs []label.Requirement) reason.Reason {
	pool := reason.Pool{Kind: s.pool.Kind, Name: s.pool.Name}
	masks := slices.Clone(s.masks)
	for _, r := range reqs {
		if s.market.decides(r.Key) {
			continue
		}
		if i, open := slices.BinarySearch(s.open, r.Key); open {
			if len(masks) == 0 {
				continue // the pool is broken; that is said later
			}
			if masks[i] = masks[i].And(s.domain[i].Mask(r)); masks[i].Empty() {
				var has []string
				for _, own := range s.pool.Requirements {
					if label.Normalize(own.Key) == r.Key {
						has = append(has, strings.TrimPrefix(own.String(), own.Key+" "))
					}
				}
				return reason.LabelMismatch{Pool: pool, Label: r.Key, Wants: r.String(), Has: has}
			}
			continue
		}
		if s.allowsFixed(r) {
			continue
		}
		value, present := s.fixed[r.Key]
		switch {
		case r.Key == label.Hostname:
			return reason.HostNotPromised{Pool: pool, Wants: r.String()}
		case present:
			return reason.LabelMismatch{Pool: pool, Label: r.Key, Wants: r.String(), Has: []string{value}, Hint: meant(r, []string{value})}
		case label.Restricted(r.Key) != nil || r.Key == label.Provisioner || r.Key == label.NodePool:
			return reason.LabelMismatch{Pool: pool, Label: r.Key, Wants: r.String()}
		}
		why := reason.LabelUndefined{Pool: pool, Label: r.Key, Hint: label.Hint(r.Key, s.keys())}
		if r.Op == label.In && len(r.Values) > 0 {
			why.Value = r.Values[0]
		}
		return why
	}
	return nil
}

// keys are the label keys that a pod may ask for here.
func (s *shop) keys() []string {
	out := label.WellKnownKeys()
	for _, r := range label.FromLabels(s.pool.Labels) {
		out = append(out, r.Key)
	}
	return append(out, s.open...)
}

// refuseSize looks at what the suitable offers hold, whether the cloud has
// them, and whether the limits allow them.
func (s *shop) refuseSize(c *class, suit set) (reason.Reason, int) {
	pool := reason.Pool{Kind: s.pool.Kind, Name: s.pool.Name}
	large := newSet(len(s.market.offers))
	for o := suit.next(0); o >= 0; o = suit.next(o + 1) {
		if fits(c.request, s.wholeRoomOf(o)) {
			large.add(o)
		}
	}
	if large.empty() {
		return s.tooSmall(c, suit), bySize
	}
	if s.broken != "" {
		return reason.PoolNotReady{Pool: pool, Why: s.broken}, byPool
	}
	had := slices.Clone(large)
	had.and(s.offers)
	if had.empty() {
		return reason.NoCapacity{Pool: pool, Types: s.market.table.distinct(label.InstanceType, large), Zones: s.market.table.distinct(label.Zone, large)}, byCapacity
	}
	if why := s.tooFewValues(c, had); why != nil {
		return why, byValues
	}
	for i := range s.limits {
		l := &s.limits[i]
		least := int64(-1)
		for o := had.next(0); o >= 0; o = had.next(o + 1) {
			if size := l.size[o]; least < 0 || size < least {
				least = size
			}
		}
		if least > 0 && least > l.left {
			word := func(v int64) string { return quantity.Amount{Name: l.name, Value: v}.Format() }
			return reason.LimitReached{
				Pool: pool, Resource: l.name, Limit: word(s.limitOf(l.name)),
				Used: word(s.limitOf(l.name) - l.left), Smallest: word(least),
			}, byLimit
		}
	}
	return reason.NoTypeSuits{Pool: pool, Requirements: []string{"its limits on different resources"}}, byNothing
}

func (s *shop) limitOf(name string) int64 {
	for _, l := range s.pool.Limits {
		if l.Name == name {
			return l.Value
		}
	}
	return 0
}

// tooSmall names the resource of which the suitable offers leave too little:
// the first that none has enough of, else what the roomiest lacks.
func (s *shop) tooSmall(c *class, suit set) reason.Reason {
	pool := reason.Pool{Kind: s.pool.Kind, Name: s.pool.Name}
	short, at := -1, -1
	for d, r := range c.request {
		best := -1
		for o := suit.next(0); o >= 0; o = suit.next(o + 1) {
			if best < 0 || s.wholeRoomOf(o)[d] > s.wholeRoomOf(best)[d] {
				best = o
			}
		}
		// Where daemons overfill every type, nothing has room, however small.
		if left := s.wholeRoomOf(best)[d]; r > 0 && r > left || left < 0 {
			short, at = d, best
			break
		}
	}
	if short < 0 {
		// Enough of each, but not together: report the roomiest in cpu.
		for o := suit.next(0); o >= 0; o = suit.next(o + 1) {
			if at < 0 || s.wholeRoomOf(o)[dimCPU] > s.wholeRoomOf(at)[dimCPU] {
				at = o
			}
		}
		for d, r := range c.request {
			if r > 0 && r > s.wholeRoomOf(at)[d] {
				short = d
				break
			}
		}
	}
	name := s.d.name(short)
	if short >= s.d.resources() {
		return reason.TooManyVolumes{Pool: pool, Driver: name, Need: c.request[short], Limit: s.wholeRoomOf(at)[short]}
	}
	kind := s.market.kind(s.market.offers[at])
	word := func(v int64) string { return quantity.Amount{Name: name, Value: v}.Format() }
	if kind.Allocatable.Get(name) == 0 {
		return reason.ResourceUnknown{Pool: pool, Resource: name}
	}
	why := reason.TooSmall{Pool: pool, Resource: name, Need: word(c.request[short]), Largest: word(s.wholeRoomOf(at)[short]), Type: kind.Name}
	if used := kind.Allocatable.Get(name) - s.wholeRoomOf(at)[short]; used > 0 {
		why.Daemons = word(used)
	}
	return why
}
