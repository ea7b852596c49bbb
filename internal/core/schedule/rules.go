package schedule

import (
	"encoding/binary"
	"maps"
	"slices"

	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
)

// rules are the rules between pods that bind a class, in terms of tallies: what
// must be true of a place before a pod of the class goes there, and what
// changes when it has gone there. Classes with equal rules share them; most
// classes have none.
type rules struct {
	id       int
	spread   []spreadRule
	affinity []int32 // tallies that must not be 0
	follow   []int32 // and those that must not be, once somebody is there
	first    bool    // the pod matches its own affinity: it may be the first
	anti     []int32 // tallies that must be 0: of pods that this one repels,
	shun     []int32 // and of pods that repel this one
	adds     []int32 // tallies in which the pod counts
	wishes   []wish
	ports    []world.HostPort
	shared   []world.Attachment // volumes that other pods use too
	keys     []int              // topology keys of all tallies, less the host name
	onHost   bool               // some tally is per host, or there are ports
	tied     bool               // must share its host with another pod, or had better do so
}

// spreadRule is a hard spread: the pods in a domain, less those in the domain
// that has fewest, are at most skew.
type spreadRule struct {
	tally      int32
	skew, self int32
	minDomains int32
}

// wish is a preference between pods. Its weight is positive to be together,
// negative to be apart.
type wish struct {
	tally  int32
	weight int32
}

// matcher selects pods.
type matcher struct {
	all        bool // namespaces
	namespaces []string
	selector   world.LabelSelector
	volume     world.Attachment // if set, pods that use it
}

func (m *matcher) matches(p *world.Pod) bool {
	if m.volume.Volume != "" {
		return slices.Contains(p.Attach, m.volume)
	}
	if m.selector.Nothing || !m.all && !slices.Contains(m.namespaces, p.Namespace) {
		return false
	}
	for _, r := range m.selector.Requirements {
		value, present := p.Labels[r.Key]
		if !r.Allows(value, present) {
			return false
		}
	}
	return true
}

// tally counts pods per value of a topology key.
type tally struct {
	key      int
	matchers []int32 // all must match for a pod to count, or to be shunned
	owners   bool    // counts the pods that have the term, not those it matches
	spread   bool    // pods that are going do not count
	wish     bool    // only preferences look at it
	filter   *filter // nodes that count; nil: all
}

// filter says which nodes count for a spread.
type filter struct {
	id          int
	ways        [][]label.Requirement // nil: whatever the labels
	tolerations []world.Toleration
	taints      bool  // nodes with other taints do not count
	keys        []int // the labels that a node must have
}

// rulebook holds the rules between pods of a snapshot.
type rulebook struct {
	dims      *dims
	keys      []string
	host      int // the host name in keys, or -1
	matchers  []matcher
	tallies   []*tally
	values    []map[string]int32 // numbers of the values, per key
	names     [][]string         // and back
	mentioned []string           // labels of pods that selectors look at

	known   map[string]int32 // matchers and tallies by content
	filters map[string]*filter
	wishes  bool // preferences are wanted
	owned   map[string]*owned
	kins    map[string]*kin
	rules   map[string]*rules
	shared  map[world.Attachment]bool // volumes that several pods use
	buf     []byte
}

// owned are the rules that a pod states itself.
type owned struct {
	id    int
	rule  rules   // adds: what it counts in as an owner
	self  []int32 // matchers of its spreads
	terms []int32 // matchers of its affinity
}

// kin are pods that the same selectors match.
type kin struct {
	id       int
	counts   []int32 // tallies
	shun     []int32
	leaving  []int32 // tallies in which it counts even while it goes
	selected set     // matchers
}

// newRulebook collects the rules of the pods, and of pods on nodes that repel
// others. It returns nil if there are none.
func newRulebook(d *dims, pods []*world.Pod, nodes []*world.Node, daemons []world.Daemon, wishes bool) *rulebook {
	b := &rulebook{dims: d, host: -1, wishes: wishes, shared: sharedVolumes(pods, nodes), known: map[string]int32{}, filters: map[string]*filter{}, owned: map[string]*owned{}, kins: map[string]*kin{}, rules: map[string]*rules{}}
	some := false
	for _, p := range pods {
		some = some || b.ruled(p)
	}
	repels := func(p *world.Pod) {
		if !p.Finished && repellent(p) {
			b.own(p)
			some = true
		}
	}
	for _, n := range nodes {
		for i := range n.Pods {
			repels(&n.Pods[i])
		}
	}
	for i := range daemons {
		repels(&daemons[i].Template)
	}
	if !some {
		return nil
	}
	for _, p := range pods {
		if b.ruled(p) {
			b.own(p)
		}
	}
	for i := range b.matchers {
		for _, r := range b.matchers[i].selector.Requirements {
			if !slices.Contains(b.mentioned, r.Key) {
				b.mentioned = append(b.mentioned, r.Key)
			}
		}
	}
	slices.Sort(b.mentioned)
	return b
}

// ruled reports whether the pod states rules between pods, or shares a volume.
func (b *rulebook) ruled(p *world.Pod) bool {
	return len(p.Spread)+len(p.Affinity)+len(p.AntiAffinity)+len(p.HostPorts) > 0 ||
		len(b.shared) > 0 && slices.ContainsFunc(p.Attach, func(a world.Attachment) bool { return b.shared[a] })
}

// repellent reports whether the pod keeps others away.
func repellent(p *world.Pod) bool {
	return slices.ContainsFunc(p.AntiAffinity, func(t world.PodTerm) bool { return t.Weight == 0 })
}

func (b *rulebook) key(name string) int {
	name = label.Normalize(name)
	at := slices.Index(b.keys, name)
	if at < 0 {
		at = len(b.keys)
		b.keys = append(b.keys, name)
		b.values, b.names = append(b.values, map[string]int32{}), append(b.names, nil)
		if name == label.Hostname {
			b.host = at
		}
	}
	return at
}

// domains lists, per topology key, the values that nodes have and that pools name:
// a machine of a pool that leaves the label open may get one of them.
func (b *rulebook) domains(nodes []*world.Node, pools []world.Pool) (out []label.Requirement) {
	if b == nil {
		return nil
	}
	for k, key := range b.keys {
		seen := map[string]bool{}
		for _, n := range nodes {
			if v, ok := nodeLabel(n, key); ok && k != b.host {
				seen[v] = true
			}
		}
		for i := range pools {
			for _, r := range append(label.FromLabels(pools[i].Labels), pools[i].Requirements...) {
				if (r.Op == label.In || r.Op == label.NotIn) && label.Normalize(r.Key) == key {
					for _, v := range r.Values {
						seen[v] = true
					}
				}
			}
		}
		if len(seen) > 0 {
			out = append(out, label.Requirement{Key: key, Op: label.In, Values: slices.Sorted(maps.Keys(seen))})
		}
	}
	return out
}

// value numbers a value of a topology key. Host names have the numbers of
// their places instead.
func (b *rulebook) value(key int, v string) int32 {
	id, ok := b.values[key][v]
	if !ok {
		id = int32(len(b.values[key]))
		b.values[key][v] = id
		b.names[key] = append(b.names[key], v)
	}
	return id
}

// name is the value with the number.
func (b *rulebook) name(key int, v int32) string { return b.names[key][v] }

func (b *rulebook) matcher(all bool, namespaces []string, s world.LabelSelector) int32 {
	k := append(b.buf[:0], 'm')
	if all {
		k, namespaces = append(k, '*'), nil
	}
	k = binary.AppendUvarint(k, uint64(len(namespaces)))
	for _, n := range namespaces {
		k = appendText(k, n)
	}
	if s.Nothing {
		k = append(k, '-')
	}
	k = appendRequirements(k, s.Requirements)
	b.buf = k
	id, ok := b.known[string(k)]
	if !ok {
		id = int32(len(b.matchers))
		b.known[string(k)] = id
		b.matchers = append(b.matchers, matcher{all: all, namespaces: namespaces, selector: s})
	}
	return id
}

func (b *rulebook) tally(t tally) int32 {
	k := append(b.buf[:0], 't')
	k = binary.AppendVarint(k, int64(t.key))
	k = append(k, bit(t.owners), bit(t.spread), bit(t.wish))
	if t.filter != nil {
		k = binary.AppendVarint(append(k, 'f'), int64(t.filter.id))
	}
	for _, m := range t.matchers {
		k = binary.AppendVarint(k, int64(m))
	}
	b.buf = k
	id, ok := b.known[string(k)]
	if !ok {
		id = int32(len(b.tallies))
		b.known[string(k)] = id
		b.tallies = append(b.tallies, &t)
	}
	return id
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// own compiles what the pod states.
func (b *rulebook) own(p *world.Pod) *owned {
	k := b.appendOwned(nil, p)
	o := b.owned[string(k)]
	if o == nil {
		o = &owned{id: len(b.owned)}
		for _, c := range constraints {
			c(b, o, p)
		}
		b.owned[string(k)] = o
	}
	return o
}

// constraints are all rules between pods, each in a file of its own.
var constraints = []func(*rulebook, *owned, *world.Pod){spreadOf, affinityOf, antiAffinityOf, portsOf, volumesShared}

func (b *rulebook) appendOwned(k []byte, p *world.Pod) []byte {
	k = appendText(k, p.Namespace)
	for i := range p.Spread {
		s := &p.Spread[i]
		k = appendText(append(k, 's', bit(s.Soft), bit(s.IgnoreAffinity), bit(s.HonorTaints), bit(s.Selector.Nothing)), s.Key)
		k = binary.AppendVarint(binary.AppendVarint(k, int64(s.MaxSkew)), int64(s.MinDomains))
		k = appendRequirements(k, s.Selector.Requirements)
	}
	if len(p.Spread) > 0 { // the nodes that count depend on these
		k = appendTolerations(appendAffinity(k, p), p)
	}
	for _, terms := range [][]world.PodTerm{p.Affinity, p.AntiAffinity} {
		k = append(k, 'a')
		for i := range terms {
			t := &terms[i]
			k = appendText(append(k, 't', bit(t.AllNamespaces), bit(t.Selector.Nothing)), t.Key)
			k = binary.AppendVarint(k, int64(t.Weight))
			k = binary.AppendUvarint(k, uint64(len(t.Namespaces)))
			for _, n := range t.Namespaces {
				k = appendText(k, n)
			}
			k = appendRequirements(k, t.Selector.Requirements)
		}
	}
	for _, port := range p.HostPorts {
		k = binary.AppendVarint(appendText(appendText(append(k, 'p'), port.IP), port.Protocol), int64(port.Port))
	}
	for _, a := range b.sharedBy(p) {
		k = appendText(appendText(append(k, 'v'), a.Driver), a.Volume)
	}
	return k
}

// kin returns the kin of the pod.
func (b *rulebook) kin(p *world.Pod) *kin {
	k := appendText(b.buf[:0], p.Namespace)
	for _, name := range b.mentioned {
		if v, ok := p.Labels[name]; ok {
			k = appendText(append(k, 1), v)
		} else {
			k = append(k, 0)
		}
	}
	for _, a := range b.sharedBy(p) {
		k = appendText(appendText(append(k, 'v'), a.Driver), a.Volume)
	}
	b.buf = k
	if found := b.kins[string(k)]; found != nil {
		return found
	}
	n := &kin{id: len(b.kins), selected: newSet(len(b.matchers))}
	b.kins[string(k)] = n
	for i := range b.matchers {
		if b.matchers[i].matches(p) {
			n.selected.add(i)
		}
	}
	for i, t := range b.tallies {
		if !n.all(t.matchers) {
			continue
		}
		switch {
		case t.owners:
			n.shun = append(n.shun, int32(i))
		default:
			n.counts = append(n.counts, int32(i))
			if !t.spread {
				n.leaving = append(n.leaving, int32(i))
			}
		}
	}
	return n
}

func (n *kin) all(matchers []int32) bool {
	for _, m := range matchers {
		if !n.selected.has(int(m)) {
			return false
		}
	}
	return true
}

// of returns the rules that bind the pod; nil if none do.
func (b *rulebook) of(p *world.Pod) *rules {
	n := b.kin(p)
	var o *owned
	if b.ruled(p) {
		o = b.own(p)
	}
	if o == nil && len(n.counts)+len(n.shun) == 0 {
		return nil
	}
	k := binary.AppendVarint(nil, int64(-1))
	if o != nil {
		k = binary.AppendVarint(k[:0], int64(o.id))
		k = binary.AppendVarint(k, int64(n.id))
	} else {
		for _, list := range [][]int32{n.counts, n.shun} {
			k = binary.AppendVarint(k, int64(len(list)))
			for _, t := range list {
				k = binary.AppendVarint(k, int64(t))
			}
		}
	}
	if r := b.rules[string(k)]; r != nil {
		return r
	}
	r := &rules{shun: n.shun, adds: n.counts}
	if o != nil {
		*r = o.rule
		r.shun, r.adds = n.shun, slices.Concat(n.counts, o.rule.adds)
		r.first = n.all(o.terms)
		r.spread = slices.Clone(r.spread)
		for i := range r.spread {
			if o.self[i] < 0 || n.selected.has(int(o.self[i])) {
				r.spread[i].self = 1
			}
		}
	}
	r.id = len(b.rules) + 1
	b.scope(r)
	b.rules[string(k)] = r
	return r
}

// scope finds out which keys the rules are about.
func (b *rulebook) scope(r *rules) {
	look := func(list []int32) {
		for _, t := range list {
			if key := b.tallies[t].key; key == b.host {
				r.onHost = true
			} else if !slices.Contains(r.keys, key) {
				r.keys = append(r.keys, key)
			}
		}
	}
	for _, s := range r.spread {
		look([]int32{s.tally})
	}
	for _, list := range [][]int32{r.affinity, r.follow, r.anti, r.shun} {
		look(list)
	}
	for _, t := range r.adds {
		if !b.tallies[t].wish {
			look([]int32{t})
		}
	}
	slices.Sort(r.keys)
	for _, t := range r.affinity {
		r.tied = r.tied || b.tallies[t].key == b.host
	}
	// While a volume is being made for one pod, the others find only its node.
	r.tied = r.tied || len(r.follow) > 0
	r.onHost = r.onHost || len(r.ports) > 0
}
