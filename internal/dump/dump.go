// Package dump is the file form of a moment: the snapshot from which decisions
// are made, the time, the limits, and what was decided.
//
// It imports the core and the standard library, and is pure but for the readers
// and writers that it is given. What always holds: a dump holds no secret, no
// environment, no user data and no annotation of others; what is decided from it
// is the same on every machine of an architecture, byte for byte.
package dump

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"karpenter/internal/core/disrupt"
	"karpenter/internal/core/schedule"
	"karpenter/internal/core/world"
)

const (
	format = "karpenter.sh/dump"
	// version is of the form of the file; a reader knows those up to its own.
	version = 1
	// most is how large a file may be when unpacked, in bytes.
	most = 1 << 30
)

// Kind says which function decides.
type Kind string

// The kinds of decision.
const (
	Schedule Kind = "schedule" // schedule.Solve: where pending pods go
	Disrupt  Kind = "disrupt"  // disrupt.Decide: which machines go
)

// Dump is a moment.
type Dump struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	// Source says who took it, in words: the controller, or whoever read the
	// cluster without it.
	Source string    `json:"source,omitempty"`
	Now    time.Time `json:"now"`
	// Limits are those with which the controller decides.
	Limits   Limits         `json:"limits"`
	Snapshot world.Snapshot `json:"snapshot"`

	// Records are the NodeClaims, by name, and Closed the offerings that the cloud
	// refused lately. No decision looks at them; they are for people.
	Records []world.Record `json:"records,omitempty"`
	Closed  []Closed       `json:"closed,omitempty"`

	// Decision was made from it; nil: none was.
	Decision *Decision `json:"decision,omitempty"`
}

// Limits of the search.
type Limits struct {
	MaxOptions int `json:"maxOptions,omitempty"` // schedule.Options
	WhatIfs    int `json:"whatIfs,omitempty"`    // disrupt.Options
	Commands   int `json:"commands,omitempty"`
}

// Usual are the limits of the controller.
func Usual() Limits { return Limits{WhatIfs: 100} }

// Plan are the limits as options of schedule.Solve.
func (l Limits) Plan() schedule.Options { return schedule.Options{MaxOptions: l.MaxOptions} }

// Look are the limits as options of disrupt.Decide.
func (l Limits) Look() disrupt.Options {
	return disrupt.Options{WhatIfs: l.WhatIfs, Commands: l.Commands, Schedule: l.Plan()}
}

// Closed is an offering that is left alone until a time, because the cloud had
// none left. An empty type and zone stand for all of the capacity type.
type Closed struct {
	Type         string    `json:"type,omitempty"`
	Zone         string    `json:"zone,omitempty"`
	CapacityType string    `json:"capacityType"`
	Until        time.Time `json:"until"`
}

// Decision is what was decided.
type Decision struct {
	Kind   Kind            `json:"kind"`
	Answer json.RawMessage `json:"answer"`
}

// New takes the moment. What may not leave the cluster is left out.
func New(source string, now time.Time, limits Limits, s *world.Snapshot, records []world.Record, closed []Closed) *Dump {
	d := &Dump{Format: format, Version: version, Source: source, Now: now.UTC(), Limits: limits, Snapshot: *s, Closed: closed}
	d.Snapshot.Pools = slices.Clone(s.Pools)
	for i := range d.Snapshot.Pools {
		p := &d.Snapshot.Pools[i]
		p.Annotations, p.Class.Inline = nil, ""
	}
	d.Snapshot.Nodes = slices.Clone(s.Nodes)
	for i := range d.Snapshot.Nodes {
		n := &d.Snapshot.Nodes[i]
		n.Annotations = switches(n.Annotations)
	}
	for _, r := range records {
		r.Annotations, r.LaunchRequest, r.Class.Inline = switches(r.Annotations), "", ""
		d.Records = append(d.Records, r)
	}
	return d
}

// switches keeps the annotations that people turn something on with: they are all
// that decisions look at, and cannot hold anything else.
func switches(annotations map[string]string) map[string]string {
	out := maps.Clone(annotations)
	maps.DeleteFunc(out, func(_, v string) bool { return v != "true" })
	if len(out) == 0 {
		return nil
	}
	return out
}

// Answer is a plan or a decision.
type Answer interface {
	// Text is the answer for people.
	Text() string
}

// Decide computes what is decided at this moment.
func (d *Dump) Decide(kind Kind) (Answer, error) {
	switch kind {
	case Schedule:
		plan := schedule.Solve(&d.Snapshot, d.Limits.Plan())
		return &plan, nil
	case Disrupt:
		return &look{disrupt.Decide(&d.Snapshot, d.Now, d.Limits.Look())}, nil
	}
	return nil, fmt.Errorf("kind %q of decision is not known; choose %s or %s", kind, Schedule, Disrupt)
}

// look is a disrupt.Decision with words.
type look struct{ disrupt.Decision }

func (l *look) Text() string { return Words(&l.Decision) }

// Record notes what was decided: answer, or if that is nil what is decided now.
func (d *Dump) Record(kind Kind, answer any) error {
	if answer == nil {
		a, err := d.Decide(kind)
		if err != nil {
			return err
		}
		answer = a
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	d.Decision = &Decision{kind, text}
	return nil
}

// Replay computes the recorded decision again, and reports whether it is the
// same, byte for byte.
func (d *Dump) Replay() (a Answer, same bool, err error) {
	if d.Decision == nil {
		return nil, false, errors.New("the dump holds no decision, only a moment; name one with --kind, or dump one of the journal")
	}
	if a, err = d.Decide(d.Decision.Kind); err != nil {
		return nil, false, err
	}
	text, err := json.Marshal(a)
	return a, err == nil && bytes.Equal(text, d.Decision.Answer), err
}

// Write packs the dump.
func (d *Dump) Write(w io.Writer) error {
	z := gzip.NewWriter(w)
	if err := json.NewEncoder(z).Encode(d); err != nil {
		return err
	}
	return z.Close()
}

// Read unpacks a dump; it may also be plain JSON.
func Read(r io.Reader) (*Dump, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return nil, fmt.Errorf("damaged: %w; dump it anew", err)
		}
		if data, err = io.ReadAll(io.LimitReader(z, most)); err != nil {
			return nil, fmt.Errorf("damaged: %w; dump it anew", err)
		}
	}
	d := &Dump{}
	err = json.Unmarshal(data, d)
	switch {
	case d.Format != format:
		return nil, errors.New("not a dump; make one with 'karpctl dump'")
	case d.Version > version:
		return nil, fmt.Errorf("version %d of the form is newer than %d, the last that this program knows; use a newer karpctl", d.Version, version)
	case err != nil:
		return nil, fmt.Errorf("damaged: %w; dump it anew", err)
	}
	return d, nil
}
