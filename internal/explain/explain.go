// Package explain answers questions of people about one pod, node or pool, from
// a moment: why it waits, why it is here, what it can buy.
//
// It imports the core and dump, and is pure. What always holds: it has no rules of
// its own; it asks the functions that decide, and puts their reasons together.
package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
	"karpenter/internal/dump"
)

// Answer is what is to be said about one thing.
type Answer struct {
	// About is the kind and name of the thing.
	About string `json:"about"`
	// State in one word, for programs.
	State string `json:"state"`
	// Summary says it in a line.
	Summary string `json:"summary"`
	// Parts go into detail.
	Parts []Part `json:"parts,omitempty"`
}

// Part is a heading and lines under it.
type Part struct {
	Title string `json:"title"`
	Lines []Line `json:"lines"`
}

// Line is a fact: words for people, and for programs a code and the values that
// the words were made of, if there are any.
type Line struct {
	Text  string `json:"text"`
	Code  string `json:"code,omitempty"`
	About any    `json:"values,omitempty"`
}

// Text is the answer for people.
func (a *Answer) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", a.About, a.Summary)
	for _, p := range a.Parts {
		fmt.Fprintf(&b, "\n%s\n", p.Title)
		for _, l := range p.Lines {
			fmt.Fprintf(&b, "  %s\n", l.Text)
		}
	}
	return b.String()
}

func (a *Answer) add(title string, lines ...Line) {
	if len(lines) > 0 {
		a.Parts = append(a.Parts, Part{title, lines})
	}
}

// words are lines without values.
func words(format string, args ...any) Line { return Line{Text: fmt.Sprintf(format, args...)} }

// UnknownError says that there is no such thing at this moment.
type UnknownError struct {
	Kind, Name string
	// Near are those whose names are like it.
	Near []string
	// More says why it may be missing here though it exists.
	More string
}

func (e *UnknownError) Error() string {
	s := fmt.Sprintf("there is no %s %q", e.Kind, e.Name)
	switch {
	case len(e.Near) > 0 && e.More != "":
		return fmt.Sprintf("%s; did you mean %s? (%s)", s, strings.Join(e.Near, " or "), e.More)
	case len(e.Near) > 0:
		return fmt.Sprintf("%s; did you mean %s?", s, strings.Join(e.Near, " or "))
	case e.More != "":
		return s + "; " + e.More
	}
	return s
}

// near returns up to three names like the one given.
func near(name string, all []string) (out []string) {
	for len(out) < 3 {
		one := label.Hint(name, all)
		if one == "" {
			break
		}
		out = append(out, one)
		all = slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == one })
	}
	return out
}

// at writes a time and how long ago, or ahead, it is.
func at(t, now time.Time) string {
	text := t.UTC().Format("2006-01-02 15:04:05 MST")
	switch d := now.Sub(t).Round(time.Second); {
	case d > 0:
		return fmt.Sprintf("%s (%s ago)", text, d)
	case d < 0:
		return fmt.Sprintf("%s (in %s)", text, -d)
	}
	return text
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// list writes the first few of some names.
func list(names []string, most int) string {
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// record returns the record of a claim, or nil.
func record(d *dump.Dump, claim string) *world.Record {
	for i := range d.Records {
		if d.Records[i].Name == claim && claim != "" {
			return &d.Records[i]
		}
	}
	return nil
}

// progress says how far a machine has come, and since when.
func progress(d *dump.Dump, n *world.Node) []Line {
	r := record(d, n.Claim)
	if r == nil {
		return nil
	}
	out := []Line{words("asked for %s", at(r.Created, d.Now))}
	for _, step := range []struct {
		done, waits string
		c           world.Condition
	}{
		{"launched as " + r.ProviderID, "is being launched", r.Launched},
		{"registered as node " + n.Name, "has not joined the cluster", r.Registered},
		{"initialized, and ready for pods", "has joined and is not ready for pods", r.Initialized},
	} {
		if step.c.True() {
			out = append(out, words("%s %s", step.done, at(step.c.Since, d.Now)))
			continue
		}
		line := words("%s", step.waits)
		if !step.c.Since.IsZero() {
			line.Text += ", since " + at(step.c.Since, d.Now)
		}
		if step.c.Message != "" {
			line.Text += ": " + step.c.Message
		}
		line.Code = step.c.Reason
		return append(out, line)
	}
	return out
}
