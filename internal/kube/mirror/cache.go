package mirror

import (
	"hash/maphash"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	apiv1 "karpenter/api/v1"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/convert"
	"karpenter/internal/kube/nominate"
)

// cache keeps what was translated, by UID and resource version, so that what
// has not changed is shared from snapshot to snapshot.
type cache struct {
	mu      *sync.Mutex
	pod     map[types.UID]podEntry
	records map[string]recordEntry
	places  map[types.UID]nodeEntry
	round   uint64
	// look holds what pods refer to, as it was when it added up to mark.
	look *convert.Lookups
	mark uint64
	seed maphash.Seed
}

func newCache() cache {
	return cache{mu: &sync.Mutex{}, pod: map[types.UID]podEntry{}, records: map[string]recordEntry{}, places: map[types.UID]nodeEntry{}, seed: maphash.MakeSeed()}
}

type podEntry struct {
	version string
	pod     world.Pod
	// wants: the scheduler found no place for it, and it is ours to find one.
	wants bool
	// ours is the node for which we nominated it.
	ours string
	// refers to other objects, which were as this mark says.
	refers bool
	mark   uint64
}

type recordEntry struct {
	version string
	record  world.Record
}

// pods translates all pods, in the order in which they were listed.
func (c *cache) pods(list []corev1.Pod) []podEntry {
	out := make([]podEntry, 0, len(list))
	next := make(map[types.UID]podEntry, len(list))
	for i := range list {
		p := &list[i]
		e, ok := c.pod[p.UID]
		if !ok || e.version != p.ResourceVersion || p.UID == "" || e.refers && e.mark != c.mark {
			e = c.translate(p)
		}
		next[p.UID] = e
		out = append(out, e)
	}
	c.pod = next
	return out
}

func (c *cache) translate(p *corev1.Pod) podEntry {
	e := podEntry{version: p.ResourceVersion, pod: c.look.Pod(p), wants: convert.Provisionable(p), refers: convert.Refers(p), mark: c.mark}
	node, ours := nominate.Of(p)
	e.pod.Nominated = ""
	if ours {
		e.ours = node
	} else {
		e.pod.Nominated = node
	}
	return e
}

func (c *cache) record(o *apiv1.NodeClaim) world.Record {
	e, ok := c.records[o.Name]
	if version := string(o.UID) + "/" + o.ResourceVersion; !ok || e.version != version {
		e = recordEntry{version, convert.Record(o)}
		c.records[o.Name] = e
	}
	return e.record
}

type nodeEntry struct {
	version string
	node    world.Node
	seen    uint64
}

func (c *cache) node(n *corev1.Node) world.Node {
	e, ok := c.places[n.UID]
	if !ok || e.version != n.ResourceVersion || n.UID == "" {
		e = nodeEntry{version: n.ResourceVersion, node: convert.Node(n)}
	}
	e.seen = c.round
	c.places[n.UID] = e
	return e.node
}

// sweep forgets what is gone.
func (c *cache) sweep(live map[string]world.Record) {
	for uid, e := range c.places {
		if e.seen != c.round {
			delete(c.places, uid)
		}
	}
	for name := range c.records {
		if _, ok := live[name]; !ok {
			delete(c.records, name)
		}
	}
}
