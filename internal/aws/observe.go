package aws

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"karpenter/internal/aws/catalog"
	"karpenter/internal/aws/launch"
	"karpenter/internal/core/world"
)

// observedLast is how long it is remembered what nodes of a type had.
const observedLast = 60 * 24 * time.Hour

// Observation is what a node that has joined really has.
type Observation struct {
	Class   world.ClassRef
	Kubelet world.Kubelet
	Type    string
	ImageID string
	// CapacityBytes and AllocatableBytes are of memory.
	CapacityBytes    int64
	AllocatableBytes int64
}

// observed remembers the least that nodes were seen to have, so that a wrong
// estimate cannot buy twice.
type observed struct {
	mu      sync.Mutex
	version uint64
	least   map[observedKey]sighting
}

type observedKey struct{ catalog, kind, image string }

type sighting struct {
	catalog.Seen
	at time.Time
}

// Observe learns from a node that has joined. The catalogue of its class and
// kubelet settings follows, as long as the class has the same image.
func (p *Provider) Observe(o Observation) {
	key, err := shelfKey(o.Class, o.Kubelet)
	if err != nil || o.CapacityBytes <= 0 || o.AllocatableBytes <= 0 {
		return
	}
	p.observed.add(observedKey{key, o.Type, o.ImageID}, catalog.Seen{CapacityBytes: o.CapacityBytes, AllocatableBytes: o.AllocatableBytes}, p.now())
}

func (t *observed) add(k observedKey, seen catalog.Seen, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.least, func(_ observedKey, s sighting) bool { return now.Sub(s.at) > observedLast })
	old, known := t.least[k]
	if known {
		seen.CapacityBytes = min(seen.CapacityBytes, old.CapacityBytes)
		seen.AllocatableBytes = min(seen.AllocatableBytes, old.AllocatableBytes)
	}
	if !known || seen != old.Seen {
		t.version++
	}
	t.least[k] = sighting{seen, now}
}

// of returns what is known about the types of a catalogue, and a version that
// changes with it. A node of an image that the class has no more says nothing.
func (t *observed) of(key string, images imageSet) (map[string]catalog.Seen, uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := map[string]catalog.Seen{}
	for k, s := range t.least {
		if k.catalog != key || !images.has(k.image) {
			continue
		}
		if old, twice := out[k.kind]; twice {
			s.CapacityBytes = min(s.CapacityBytes, old.CapacityBytes)
			s.AllocatableBytes = min(s.AllocatableBytes, old.AllocatableBytes)
		}
		out[k.kind] = s.Seen
	}
	return out, t.version
}

// has reports whether the image is one of the set; of an empty set, whose
// images are the user's business, all are.
func (s imageSet) has(id string) bool {
	return len(s.list) == 0 || slices.ContainsFunc(s.list, func(im launch.Image) bool { return im.ID == id })
}

// shelfKey names the catalogue of a class and kubelet settings.
func shelfKey(ref world.ClassRef, kubelet world.Kubelet) (string, error) {
	key, err := json.Marshal([]any{ref, kubelet})
	if err != nil {
		return "", fmt.Errorf("naming the catalogue: %w", err)
	}
	return string(key), nil
}
