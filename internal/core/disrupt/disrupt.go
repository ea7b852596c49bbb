// Package disrupt decides which machines go, and what must be bought first.
//
// It imports core/schedule, core/world and below. Decide and Check are
// functions from a snapshot and a time to an answer. Two lists carry the rules:
// methods (why a machine should go, tried in order, the first that acts wins)
// and blockers (why it may not, the first that holds is the reason shown).
package disrupt

import (
	"slices"
	"time"

	"karpenter/internal/core/reason"
	"karpenter/internal/core/schedule"
	"karpenter/internal/core/world"
)

// Decision is the answer of one round.
type Decision struct {
	// Command is what to do; nil if nothing.
	Command *Command `json:"command,omitempty"`
	// Kept says of every machine that a method wanted to take why it stays,
	// sorted by method in their order, then in the order of the candidates.
	Kept []Kept `json:"kept,omitempty"`
	// WhatIfs counts the simulations that were made.
	WhatIfs int `json:"whatIfs,omitempty"`
}

// Command removes machines, after their replacements are ready.
type Command struct {
	// Method is the name of the method that asks for it.
	Method string `json:"method"`
	// Remove lists the machines to go.
	Remove []Target `json:"remove"`
	// Replace lists what must be bought, and be ready, first.
	Replace []schedule.Machine `json:"replace,omitempty"`
	// Moves tells which pods go to nodes that exist.
	Moves []schedule.Placement `json:"moves,omitempty"`
}

// Target is a machine to be removed.
type Target struct {
	Node  string    `json:"node"`
	Claim string    `json:"claim"`
	Pool  string    `json:"pool"`
	Since time.Time `json:"since"` // when it became due
	// PoolKind tells pools of one name apart.
	PoolKind string `json:"poolKind,omitempty"`
}

// Kept is a machine that a method wanted to take and that stays for now.
type Kept struct {
	Node   string        `json:"node"`
	Method string        `json:"method"`
	Reason reason.Reason `json:"reason"`
}

// Options limit a round.
type Options struct {
	// WhatIfs is the greatest number of simulations; 0 = no limit.
	WhatIfs  int
	Schedule schedule.Options
}

// method is one reason for which machines go.
type method struct {
	name string
	// due reports whether the method wants the machine, and since when.
	due func(c candidate) (since time.Time, ok bool)
	// all: takes everything that is due at once, and nothing has to move.
	// Otherwise one machine at a time per pool, with its pods placed first.
	all bool
}

// Names of methods, as in logs, metrics and intents.
const (
	Expiration = "expiration"
	Emptiness  = "emptiness"
)

// methods in the order in which they are tried.
var methods = []method{
	{name: Expiration, due: expired},
	{name: Emptiness, due: empty, all: true},
}

// candidate is one machine under consideration.
type candidate struct {
	snap *world.Snapshot
	node *world.Node
	pool *world.Pool // nil if the pool is gone
	now  time.Time
	// method that looks at it.
	method string
}

// Decide returns what to do now. It changes nothing and may be asked again.
func Decide(s *world.Snapshot, now time.Time, opt Options) Decision {
	var d Decision
	for _, m := range methods {
		if d.Command = m.decide(s, now, opt, &d); d.Command != nil {
			break
		}
	}
	return d
}

func (m method) decide(s *world.Snapshot, now time.Time, opt Options, d *Decision) *Command {
	keep := func(node string, r reason.Reason) { d.Kept = append(d.Kept, Kept{node, m.name, r}) }
	var targets []Target
	for i := range s.Nodes {
		c := newCandidate(s, &s.Nodes[i], now, m.name)
		since, due := m.due(c)
		if !due || c.node.Deleting {
			continue
		}
		if r := c.blocked(); r != nil {
			keep(c.node.Name, r)
			continue
		}
		targets = append(targets, Target{c.node.Name, c.node.Claim, c.node.Pool, since, c.node.PoolKind})
	}
	if len(targets) == 0 {
		return nil
	}
	if m.all {
		return &Command{Method: m.name, Remove: targets}
	}
	slices.SortStableFunc(targets, func(a, b Target) int { return a.Since.Compare(b.Since) })
	for _, t := range targets {
		if other := busy(s, t); other != "" {
			keep(t.Node, Busy{Other: other})
			continue
		}
		if opt.WhatIfs > 0 && d.WhatIfs >= opt.WhatIfs {
			keep(t.Node, NotLookedAt{})
			continue
		}
		d.WhatIfs++
		cmd, r := replace(s, m.name, t, opt)
		if r == nil {
			return cmd
		}
		keep(t.Node, r)
	}
	return nil
}

// busy returns the name of a machine of the target's pool that is just being
// replaced.
func busy(s *world.Snapshot, t Target) string {
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Pool == t.Pool && n.PoolKind == t.PoolKind && slices.ContainsFunc(methods, func(m method) bool { return m.name == n.Disruption && !m.all }) {
			return n.Name
		}
	}
	return ""
}

// Check looks at a command again, on a fresh snapshot in which its machines are
// already marked. It returns the command as it is to be carried out now, with
// only the machines that may still go and with replacements planned anew, and
// why the others stay.
func Check(s *world.Snapshot, now time.Time, cmd Command, opt Options) (Command, []Kept) {
	out := Command{Method: cmd.Method}
	var kept []Kept
	for _, t := range cmd.Remove {
		one, r := check(s, now, cmd.Method, t, opt)
		if r != nil {
			kept = append(kept, Kept{t.Node, cmd.Method, r})
			continue
		}
		out.Remove = append(out.Remove, t)
		out.Replace = append(out.Replace, one.Replace...)
		out.Moves = append(out.Moves, one.Moves...)
	}
	return out, kept
}

func check(s *world.Snapshot, now time.Time, name string, t Target, opt Options) (*Command, reason.Reason) {
	i := slices.IndexFunc(methods, func(m method) bool { return m.name == name })
	if i < 0 {
		return nil, NotDue{}
	}
	n := find(s, t)
	if n == nil {
		return nil, Gone{}
	}
	if n.Disruption != name {
		return nil, NotMarked{}
	}
	c := newCandidate(s, n, now, name)
	if _, due := methods[i].due(c); !due {
		return nil, NotDue{}
	}
	if r := c.blocked(); r != nil {
		return nil, r
	}
	if methods[i].all {
		return &Command{}, nil
	}
	return replace(s, name, t, opt)
}

func find(s *world.Snapshot, t Target) *world.Node {
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Name == t.Node && n.Claim == t.Claim {
			return n
		}
	}
	return nil
}

func newCandidate(s *world.Snapshot, n *world.Node, now time.Time, method string) candidate {
	return candidate{snap: s, node: n, now: now, method: method, pool: s.Pool(n.PoolKind, n.Pool)}
}
