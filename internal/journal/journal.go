// Package journal keeps the last decisions together with what they were made
// from, so that a decision can be looked at, and replayed, afterwards.
//
// It imports the core and the standard library. Entries are in memory only and
// the number of them is limited.
package journal

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"karpenter/internal/core/world"
	"karpenter/internal/dump"
)

// Kind says what was decided.
type Kind string

// The kinds of decision.
const (
	Provision  Kind = "provision" // where pending pods go
	Disrupt    Kind = "disrupt"   // which machines go
	Dropped    Kind = "dropped"   // a command that no longer held when its time came
	RolledBack Kind = "rolled-back"
	Kept       Kind = "kept" // why machines stay, as of the last look
)

// Entry is one decision.
type Entry struct {
	Seq  uint64    `json:"seq"`
	Time time.Time `json:"time"`
	Kind Kind      `json:"kind"`
	// Summary is the decision in a line for people.
	Summary string `json:"summary"`
	// Command ties together what belongs to one disruption.
	Command string `json:"command,omitempty"`
	// Decision is the whole answer: a schedule.Plan or a disrupt.Decision.
	Decision any `json:"decision,omitempty"`
	// Snapshot is what it was made from, Limits are those of the search.
	Snapshot *world.Snapshot `json:"snapshot,omitempty"`
	Limits   dump.Limits     `json:"limits,omitzero"`
}

// Dump is the decision as a file that can be replayed.
func (e *Entry) Dump() (*dump.Dump, error) {
	kind, decided := map[Kind]dump.Kind{Provision: dump.Schedule, Disrupt: dump.Disrupt}[e.Kind]
	switch {
	case !decided:
		return nil, fmt.Errorf("entry %d is of kind %s; only %s and %s can be replayed", e.Seq, e.Kind, Provision, Disrupt)
	case e.Snapshot == nil:
		return nil, fmt.Errorf("entry %d is too old: only the inputs of the last decisions are kept", e.Seq)
	}
	d := dump.New("journal", e.Time, e.Limits, e.Snapshot, nil, nil)
	return d, d.Record(kind, e.Decision)
}

// Journal is a ring of the last entries. It is safe for concurrent use.
type Journal struct {
	mu      sync.Mutex
	entries []Entry // oldest first
	size    int
	inputs  int
	seq     uint64
	stands  *Entry // see Stand
}

// New makes a journal that keeps the last size entries, and the snapshots of
// the last inputs of them.
func New(size, inputs int) *Journal { return &Journal{size: size, inputs: inputs} }

// Add writes an entry; its Seq is assigned. Snapshot and Decision are kept by
// reference and must not change afterwards.
func (j *Journal) Add(e Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.seq++
	e.Seq = j.seq
	if len(j.entries) == j.size {
		j.entries = slices.Delete(j.entries, 0, 1)
	}
	j.entries = append(j.entries, e)
	if old := len(j.entries) - 1 - j.inputs; old >= 0 {
		j.entries[old].Snapshot = nil
	}
}

// Stand writes what holds until the next such entry takes its place. It comes
// with every look, so it must not push out what was decided.
func (j *Journal) Stand(e Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.seq++
	e.Seq = j.seq
	j.stands = &e
}

// Entries returns the entries, oldest first, then what stands.
func (j *Journal) Entries() []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := slices.Clone(j.entries)
	if j.stands != nil {
		out = append(out, *j.stands)
	}
	return out
}

// ServeHTTP answers with the journal as JSON: a list without snapshots, or with
// ?seq=N one entry complete.
func (j *Journal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body any
	entries := j.Entries()
	if s := r.URL.Query().Get("seq"); s != "" {
		seq, err := strconv.ParseUint(s, 10, 64)
		i := slices.IndexFunc(entries, func(e Entry) bool { return e.Seq == seq })
		if err != nil || i < 0 {
			http.Error(w, "no entry with seq="+strconv.Quote(s)+"; ask without seq for the list", http.StatusNotFound)
			return
		}
		body = entries[i]
	} else {
		for i := range entries {
			entries[i].Snapshot = nil
		}
		body = entries
	}
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	if err := enc.Encode(body); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
