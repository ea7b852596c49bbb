package mirror

import (
	"sync"
	"time"

	"karpenter/internal/core/world"
)

// assumeFor is how long a write counts without being seen. The watch is behind
// by milliseconds; this bounds the harm of one that never shows a write.
const assumeFor = time.Minute

// assumed holds writes of ours that the watch may not show yet.
type assumed struct {
	mu        sync.Mutex
	claims    map[string]assumedClaim // by name
	intents   map[string]assumedIntent
	deletions map[string]time.Time // by claim
	nominated map[string]time.Time // by node: pods are expected until
}

type assumedClaim struct {
	record world.Record
	until  time.Time
}

type assumedIntent struct {
	method string // empty: the intent was taken back
	until  time.Time
}

func newAssumed() assumed {
	return assumed{claims: map[string]assumedClaim{}, intents: map[string]assumedIntent{},
		deletions: map[string]time.Time{}, nominated: map[string]time.Time{}}
}

// Claim counts a NodeClaim that was just made, until the watch shows it.
func (m *Mirror) Claim(r world.Record, now time.Time) {
	m.assumed.mu.Lock()
	defer m.assumed.mu.Unlock()
	m.assumed.claims[r.Name] = assumedClaim{r, now.Add(assumeFor)}
}

// Forget ends the counting of a NodeClaim that the watch has shown to be gone.
// It may have come and gone between two snapshots, so that none has seen it.
func (m *Mirror) Forget(claim string) {
	m.assumed.mu.Lock()
	defer m.assumed.mu.Unlock()
	delete(m.assumed.claims, claim)
}

// Intent counts an intent that was just written on a NodeClaim, or taken back
// (method empty).
func (m *Mirror) Intent(claim, method string, now time.Time) {
	m.assumed.mu.Lock()
	defer m.assumed.mu.Unlock()
	m.assumed.intents[claim] = assumedIntent{method, now.Add(assumeFor)}
}

// Deleted counts a NodeClaim as going, until the watch shows it.
func (m *Mirror) Deleted(claim string, now time.Time) {
	m.assumed.mu.Lock()
	defer m.assumed.mu.Unlock()
	m.assumed.deletions[claim] = now.Add(assumeFor)
}

// Expect tells that pods are expected on the node until the given time.
func (m *Mirror) Expect(node string, until time.Time) {
	m.assumed.mu.Lock()
	defer m.assumed.mu.Unlock()
	if until.After(m.assumed.nominated[node]) {
		m.assumed.nominated[node] = until
	}
}

// NominatedUntil says until when pods are expected on the node, as far as
// [Mirror.Expect] was told; the zero time if none are.
func (m *Mirror) NominatedUntil(node string) time.Time {
	m.assumed.mu.Lock()
	defer m.assumed.mu.Unlock()
	return m.assumed.nominated[node]
}

// merge lays the assumed writes over what was read, by claim name, and forgets
// those that the watch has shown or that are too old. intentOf tells which
// method the intent on a record as read names.
func (a *assumed) merge(read map[string]world.Record, intentOf map[string]string, now time.Time) (deleting map[string]bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, c := range a.claims {
		if _, seen := read[name]; seen || now.After(c.until) {
			delete(a.claims, name)
			continue
		}
		read[name] = c.record
	}
	for name, in := range a.intents {
		if _, there := read[name]; !there || intentOf[name] == in.method || now.After(in.until) {
			delete(a.intents, name)
			continue
		}
		intentOf[name] = in.method
	}
	deleting = map[string]bool{}
	for name, until := range a.deletions {
		r, there := read[name]
		if !there || r.DeletedAt != nil || now.After(until) {
			delete(a.deletions, name)
			continue
		}
		deleting[name] = true
	}
	for node, until := range a.nominated {
		if now.After(until) {
			delete(a.nominated, node)
		}
	}
	return deleting
}

func (a *assumed) expected(node string) *time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if t, ok := a.nominated[node]; ok {
		return &t
	}
	return nil
}
