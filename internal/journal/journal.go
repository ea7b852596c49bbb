// Package journal keeps the last decisions: what was decided, when, from what, what
// else there was, and what came of it.
//
// It imports the core, dump and the standard library. The number of entries and the
// size of each are bounded, and only the last few have their whole inputs; somebody
// else writes entries down for longer (see [Journal.Since] and [Journal.Resume]).
package journal

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
	"karpenter/internal/dump"
)

// Kind says what was decided, or has happened.
type Kind string

// The kinds of entries.
const (
	Provision  Kind = "provision"   // where pending pods go
	Bought     Kind = "bought"      // a machine was asked for
	Joined     Kind = "joined"      // machines became nodes
	Lost       Kind = "lost"        // a machine went before it was usable
	Disrupt    Kind = "disrupt"     // which machines go
	Dropped    Kind = "dropped"     // a command that no longer held when its time came
	Removed    Kind = "removed"     // a machine was told to go
	Gone       Kind = "gone"        // nodes are no more
	RolledBack Kind = "rolled-back" // a command was taken back
	Tally      Kind = "tally"       // what there was at a time
	Kept       Kind = "kept"        // why machines stay, as of the last look
)

// Kinds are all of them.
func Kinds() []Kind {
	return []Kind{Provision, Bought, Joined, Lost, Disrupt, Dropped, Removed, Gone, RolledBack, Tally, Kept}
}

// Entry is one decision, or something that has happened.
type Entry struct {
	Seq  uint64    `json:"seq"`
	Time time.Time `json:"time"`
	Kind Kind      `json:"kind"`
	// Summary is the decision in a line for people.
	Summary string `json:"summary"`
	// Command ties together what belongs to one disruption.
	Command string `json:"command,omitempty"`
	// Inputs in short.
	Inputs Inputs `json:"inputs,omitzero"`
	// What it is about: pools, nodes, NodeClaims, and pods as namespace/name; of
	// long lists the first.
	Pools  []string `json:"pools,omitempty"`
	Nodes  []string `json:"nodes,omitempty"`
	Claims []string `json:"claims,omitempty"`
	Pods   []string `json:"pods,omitempty"`
	// Change of the price per hour.
	Change quantity.Price `json:"change,omitempty"`
	// Alternatives that there were, and why not they.
	Alternatives []string `json:"alternatives,omitempty"`

	// Decision is the whole answer: a schedule.Plan or a disrupt.Decision.
	Decision any `json:"decision,omitempty"`
	// Snapshot is what it was made from, Limits are those of the search.
	Snapshot *world.Snapshot `json:"snapshot,omitempty"`
	Limits   dump.Limits     `json:"limits,omitzero"`
}

// Inputs is a moment in a few numbers.
type Inputs struct {
	Pending  int `json:"pending"`  // pods that want a place
	Machines int `json:"machines"` // that are owned, those on their way included
	// PerHour is what they cost, as far as their prices are known.
	PerHour quantity.Price `json:"perHour"`
}

// Short is the entry without its whole inputs and answer, as it is written down.
func (e Entry) Short() Entry {
	e.Decision, e.Snapshot, e.Limits = nil, nil, dump.Limits{}
	return e
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
// the last inputs of those that have one.
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
	left := j.inputs
	for i := len(j.entries) - 1; i >= 0 && e.Snapshot != nil; i-- {
		switch old := &j.entries[i]; {
		case old.Snapshot == nil:
		case left > 0:
			left--
		default:
			old.Snapshot, old.Decision = nil, nil
		}
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

// Find returns the entry with the number, which is given as people write it.
func (j *Journal) Find(seq string) (Entry, bool) {
	n, err := strconv.ParseUint(seq, 10, 64)
	entries := j.Entries()
	i := slices.IndexFunc(entries, func(e Entry) bool { return e.Seq == n })
	if err != nil || i < 0 {
		return Entry{}, false
	}
	return entries[i], true
}

// Since returns the entries after the one with the number, in short, without what
// stands.
func (j *Journal) Since(seq uint64) (out []Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.entries {
		if e.Seq > seq {
			out = append(out, e.Short())
		}
	}
	return out
}

// Resume puts what was written down before before what there is. Numbers go on.
func (j *Journal) Resume(before []Entry) {
	if len(before) == 0 {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	last := before[len(before)-1].Seq
	for i := range j.entries {
		j.entries[i].Seq += last
	}
	if j.stands != nil {
		j.stands.Seq += last
	}
	j.seq += last
	all := slices.Concat(before, j.entries)
	j.entries = all[max(0, len(all)-j.size):]
}

// ServeHTTP answers with the journal as JSON: a list without snapshots, or with
// ?seq=N one entry complete.
func (j *Journal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body any
	if s := r.URL.Query().Get("seq"); s != "" {
		e, found := j.Find(s)
		if !found {
			http.Error(w, "no entry with seq="+strconv.Quote(s)+"; ask without seq for the list", http.StatusNotFound)
			return
		}
		body = e
	} else {
		entries := j.Entries()
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
