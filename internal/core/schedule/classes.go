package schedule

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"strings"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

// The first dimensions of every amount vector; extended resources follow.
const (
	dimCPU = iota
	dimMemory
	dimEphemeral
	dimPods
	firstExtended
)

// dims numbers what pods and daemons ask for: resources, then volumes per driver.
type dims struct{ extended, drivers []string }

func (d *dims) n() int { return d.resources() + len(d.drivers) }

// resources is the number of dimensions that are resources.
func (d *dims) resources() int { return firstExtended + len(d.extended) }

func (d *dims) name(i int) string {
	switch {
	case i < firstExtended:
		return [...]string{quantity.CPU, quantity.Memory, quantity.EphemeralStorage, quantity.Pods}[i]
	case i < d.resources():
		return d.extended[i-firstExtended]
	}
	return d.drivers[i-d.resources()]
}

func (d *dims) vector(r quantity.Resources) []int64 {
	v := make([]int64, d.n())
	v[dimCPU], v[dimMemory], v[dimEphemeral], v[dimPods] = r.MilliCPU, r.MemoryBytes, r.EphemeralBytes, r.Pods
	for i, name := range d.extended {
		v[firstExtended+i] = r.Get(name)
	}
	return v
}

// dimsOf collects the extended resources that somebody asks for, and the drivers
// of volumes.
func dimsOf(pods []*world.Pod) dims {
	seen, drivers := map[string]bool{}, map[string]bool{}
	for _, p := range pods {
		for _, a := range p.Requests.Extended {
			seen[a.Name] = true
		}
		for _, a := range p.Attach {
			drivers[a.Driver] = true
		}
	}
	return dims{slices.Sorted(maps.Keys(seen)), slices.Sorted(maps.Keys(drivers))}
}

// fits reports whether a request finds room. As with kube-scheduler, what is
// not asked for always fits, even where the room is overdrawn.
func fits(request, room []int64) bool {
	for d, r := range request {
		if r > 0 && r > room[d] {
			return false
		}
	}
	return true
}

// profile is one set of constraints on nodes; pods with equal constraints share
// one.
type profile struct {
	id          int
	ways        [][]label.Requirement // selector and one required term each; any way will do
	preferred   []world.Preference
	tolerations []world.Toleration
	ports       []world.HostPort
	pinned      map[string]*profile // the same, with labels of its place decided
}

// tolerates reports whether pods of the profile may run beside the taints, and
// whether they do so without breaking a PreferNoSchedule.
func (p *profile) tolerates(taints []world.Taint) (may, gladly bool) {
	if _, bad := world.FirstUntolerated(taints, p.tolerations); bad {
		return false, false
	}
	for _, t := range taints {
		if t.Effect == world.PreferNoSchedule && !world.Tolerated(t, p.tolerations) {
			return true, false
		}
	}
	return true, true
}

// class is a group of pods that are equal to the scheduler.
type class struct {
	profile  *profile
	priority int32
	request  []int64
	pods     []int32 // into problem.pods, in the order in which they are tried
	next     int     // pods before it are placed
	rules    *rules  // between pods; nil if there are none

	buyable bool      // some pool could buy a machine for it
	value   float64   // what a pod of it is worth, see appraise
	unit    []float64 // the same for one unit of each resource

	// For classes with rules.

	nodes    []int // that suit, best first; valid if ranked
	ranked   bool
	tuples   []*tuple
	short    bool // the places that exist are not enough
	parts    map[*tuple]*class
	origin   *class  // of a part
	returned []int32 // pods that lost their place
}

func (c *class) left() int { return len(c.pods) - c.next }

// take removes n pods from the front of the class.
func (c *class) take(n int) []int32 {
	c.next += n
	return c.pods[c.next-n : c.next]
}

// comparePods is the order in which pods are tried: most urgent, most cpu, most
// memory, oldest, then by name. Constraints have no part in it.
func comparePods(a, b *world.Pod) int {
	if c := cmp.Compare(b.Priority, a.Priority); c != 0 {
		return c
	}
	if c := cmp.Compare(b.Requests.MilliCPU, a.Requests.MilliCPU); c != 0 {
		return c
	}
	if c := cmp.Compare(b.Requests.MemoryBytes, a.Requests.MemoryBytes); c != 0 {
		return c
	}
	if c := a.Created.Compare(b.Created); c != 0 {
		return c
	}
	if c := strings.Compare(a.UID, b.UID); c != 0 {
		return c
	}
	return a.Compare(b.ObjectName)
}

// classify groups pods, which are in order, into classes. Classes come in the
// order of their first pods.
func classify(pods []*world.Pod, d *dims, book *rulebook) ([]*class, []*profile) {
	var classes []*class
	var profiles []*profile
	classOf, profileOf := map[string]*class{}, map[string]*profile{}
	var buf []byte
	for i, p := range pods {
		buf = appendProfile(buf[:0], p)
		end := len(buf)
		buf = appendResources(buf, p.Requests)
		buf = binary.AppendVarint(buf, int64(p.Priority))
		if len(p.Attach) > 0 {
			buf = d.appendAttach(append(buf, 'v'), p)
		}
		var bound *rules
		if book != nil {
			if bound = book.of(p); bound != nil {
				buf = binary.AppendVarint(buf, int64(bound.id))
			}
		}
		c, ok := classOf[string(buf)]
		if !ok {
			prof, ok := profileOf[string(buf[:end])]
			if !ok {
				prof = newProfile(p)
				prof.id = len(profiles)
				profiles = append(profiles, prof)
				profileOf[string(buf[:end])] = prof
			}
			c = &class{profile: prof, priority: p.Priority, request: d.request(p), rules: bound}
			classes = append(classes, c)
			classOf[string(buf)] = c
		}
		c.pods = append(c.pods, int32(i))
	}
	return classes, profiles
}

func newProfile(p *world.Pod) *profile {
	prof := &profile{tolerations: p.Tolerations, ports: p.HostPorts, ways: affinityWays(p)}
	if len(p.Volumes) > 0 {
		var both [][]label.Requirement
		for _, way := range prof.ways {
			for _, reach := range p.Volumes {
				both = append(both, slices.Concat(way, normal(reach)))
			}
		}
		prof.ways = both
	}
	for _, pref := range p.Preferred {
		prof.preferred = append(prof.preferred, world.Preference{Weight: pref.Weight, Term: normal(pref.Term)})
	}
	slices.SortStableFunc(prof.preferred, func(a, b world.Preference) int { return cmp.Compare(b.Weight, a.Weight) })
	return prof
}

// affinityWays are the node selector and one required term each.
func affinityWays(p *world.Pod) (ways [][]label.Requirement) {
	selector := normal(p.Selector)
	if len(p.Terms) == 0 {
		return [][]label.Requirement{selector}
	}
	for _, term := range p.Terms {
		if len(term) > 0 { // an empty term matches nothing
			ways = append(ways, slices.Concat(selector, normal(term)))
		}
	}
	return ways
}

func normal(reqs []label.Requirement) []label.Requirement {
	out := slices.Clone(reqs)
	for i := range out {
		out[i].Key = label.Normalize(out[i].Key)
	}
	return out
}

func appendText(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func appendRequirement(b []byte, r label.Requirement) []byte {
	b = appendText(appendText(b, r.Key), string(r.Op))
	b = binary.AppendUvarint(b, uint64(len(r.Values)))
	for _, v := range r.Values {
		b = appendText(b, v)
	}
	return b
}

func appendRequirements(b []byte, reqs []label.Requirement) []byte {
	b = binary.AppendUvarint(b, uint64(len(reqs)))
	for _, r := range reqs {
		b = appendRequirement(b, r)
	}
	return b
}

func appendAffinity(b []byte, p *world.Pod) []byte {
	b = appendRequirements(b, p.Selector)
	b = binary.AppendUvarint(b, uint64(len(p.Terms)))
	for _, t := range p.Terms {
		b = appendRequirements(b, t)
	}
	return b
}

func appendTolerations(b []byte, p *world.Pod) []byte {
	b = binary.AppendUvarint(b, uint64(len(p.Tolerations)))
	for _, t := range p.Tolerations {
		b = appendText(appendText(appendText(appendText(b, t.Key), t.Op), t.Value), string(t.Effect))
	}
	return b
}

func appendProfile(b []byte, p *world.Pod) []byte {
	b = appendTolerations(appendAffinity(b, p), p)
	b = binary.AppendUvarint(b, uint64(len(p.Preferred)))
	for _, f := range p.Preferred {
		b = appendRequirements(binary.AppendVarint(b, int64(f.Weight)), f.Term)
	}
	b = binary.AppendUvarint(b, uint64(len(p.Volumes)))
	for _, t := range p.Volumes {
		b = appendRequirements(b, t)
	}
	b = binary.AppendUvarint(b, uint64(len(p.HostPorts)))
	for _, port := range p.HostPorts {
		b = binary.AppendVarint(appendText(appendText(b, port.IP), port.Protocol), int64(port.Port))
	}
	return b
}

func appendResources(b []byte, r quantity.Resources) []byte {
	for _, v := range [...]int64{r.MilliCPU, r.MemoryBytes, r.EphemeralBytes, r.Pods} {
		b = binary.AppendVarint(b, v)
	}
	for _, a := range r.Extended {
		b = binary.AppendVarint(appendText(b, a.Name), a.Value)
	}
	return b
}
