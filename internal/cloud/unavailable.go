package cloud

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"
)

// RefusalMemory is how long a refused offering is left alone.
const RefusalMemory = 3 * time.Minute

// Unavailable remembers the offerings that the cloud refused. Each refusal
// starts the time anew. It is safe for use by several goroutines.
type Unavailable = Memory[OfferingKey]

// NewUnavailable returns an empty table of refused offerings.
func NewUnavailable(now func() time.Time) *Unavailable {
	return NewMemory[OfferingKey](now, RefusalMemory)
}

// Memory remembers keys for a fixed time. It is safe for use by several
// goroutines.
type Memory[K comparable] struct {
	now  func() time.Time
	last time.Duration

	mu    sync.Mutex
	until map[K]time.Time
}

// NewMemory returns an empty memory that keeps each key for the given time
// after it was last marked.
func NewMemory[K comparable](now func() time.Time, last time.Duration) *Memory[K] {
	return &Memory[K]{now: now, last: last, until: map[K]time.Time{}}
}

// Mark remembers the keys from now on.
func (m *Memory[K]) Mark(keys ...K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	until := m.now().Add(m.last)
	for _, k := range keys {
		m.until[k] = until
	}
}

// Has reports whether the key was marked and its time is not over.
func (m *Memory[K]) Has(key K) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	until, ok := m.until[key]
	return ok && m.now().Before(until)
}

// Forget drops the keys at once.
func (m *Memory[K]) Forget(keys ...K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range keys {
		delete(m.until, k)
	}
}

// All returns what is remembered now, with the end of its time, and forgets
// the rest.
func (m *Memory[K]) All() map[K]time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	maps.DeleteFunc(m.until, func(_ K, until time.Time) bool { return !now.Before(until) })
	return maps.Clone(m.until)
}

// SortedKeys returns the keys of refused offerings in a fixed order: by type,
// zone and capacity type.
func SortedKeys(refused map[OfferingKey]time.Time) []OfferingKey {
	return slices.SortedFunc(maps.Keys(refused), OfferingKey.Compare)
}

// Compare orders by type, then zone, then capacity type.
func (k OfferingKey) Compare(o OfferingKey) int {
	return cmp.Or(cmp.Compare(k.Type, o.Type), cmp.Compare(k.Zone, o.Zone), cmp.Compare(k.CapacityType, o.CapacityType))
}
