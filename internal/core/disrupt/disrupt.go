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

	"karpenter/internal/core/quantity"
	"karpenter/internal/core/reason"
	"karpenter/internal/core/schedule"
	"karpenter/internal/core/world"
)

// Decision is the answer of one round.
type Decision struct {
	// Commands are what to do; none of them needs another to be done first.
	Commands []Command `json:"commands,omitempty"`
	// Kept says of every machine that a method wanted to take why it stays,
	// sorted by method in their order, then in the order of the candidates.
	Kept []Kept `json:"kept,omitempty"`
	// WhatIfs counts the simulations that were made.
	WhatIfs int `json:"whatIfs,omitempty"`
	// Until is when the same snapshot may get another answer, because something
	// becomes due, or lapses; zero: never. It is not after now where the answer
	// depends on whose turn it is.
	Until time.Time `json:"-"`
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
	// Saves is what the machines cost per hour more than their replacements, as
	// far as their prices are known; it may be negative.
	Saves quantity.Price `json:"saves,omitempty"`
	// Disturbs is one for each machine, and the eviction costs of its pods.
	Disturbs float64 `json:"disturbs,omitempty"`
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
	// WhatIfs is the greatest number of simulations for each method, and Commands
	// of commands; 0 = no limit.
	WhatIfs  int
	Commands int
	Schedule schedule.Options
}

// method is one reason for which machines go.
type method struct {
	name string
	// budget is the reason that budgets of pools name; empty: they are not asked.
	budget string
	// due reports whether the method wants the machine, and since when.
	due func(c candidate) (since time.Time, ok bool)
	// lasts reports whether a machine is still wanted for which a replacement was
	// bought; nil: if it is due.
	lasts func(c candidate) bool
	// act finds commands among the machines that are due and not blocked.
	act func(r *round, m method, due []candidate)
	// quick: nothing has to move, so nothing else waits for it.
	quick bool
	// eventual: it will be done whatever the pods on the machine want, so those
	// do not block it where draining has an end.
	eventual bool
	// saves: the command is for the money, so it must stay as cheap as it was
	// decided.
	saves bool
}

// Names of methods, as in logs, metrics and intents.
const (
	Expiration    = "expiration"
	Drift         = "drift"
	Emptiness     = "emptiness"
	Consolidation = "consolidation"
)

// methods in the order in which they are tried.
var methods = []method{
	{name: Expiration, due: expired, act: (*round).oneByOne},
	{name: Drift, budget: ReasonDrifted, due: drifted, act: (*round).oneByOne, eventual: true},
	{name: Emptiness, budget: ReasonEmpty, due: empty, act: (*round).together, quick: true},
	{name: Consolidation, budget: ReasonUnderutilized, due: consolidatable, act: (*round).consolidate, saves: true, lasts: consolidates},
}

func methodNamed(name string) (method, bool) {
	i := slices.IndexFunc(methods, func(m method) bool { return m.name == name })
	if i < 0 {
		return method{name: name}, false
	}
	return methods[i], true
}

// candidate is one machine under consideration.
type candidate struct {
	snap *world.Snapshot
	node *world.Node
	pool *world.Pool // nil if the pool is gone
	*clock
	// method that looks at it.
	method          string
	eventual, quick bool
	// failures of replacements for machines of its pool: the most in a row, and
	// the latest.
	failures world.Failures
	since    time.Time // when it became due

	price    quantity.Price // per hour
	disturbs float64
}

func (c candidate) target() Target {
	return Target{c.node.Name, c.node.Claim, c.node.Pool, c.since, c.node.PoolKind}
}

// Decide returns what to do now. It changes nothing and may be asked again.
func Decide(s *world.Snapshot, now time.Time, opt Options) Decision {
	var d Decision
	r := newRound(s, now, opt, &d)
	for _, m := range methods {
		r.ledger, r.before = m.open(s), d.WhatIfs
		if due := r.candidates(m); len(due) > 0 {
			m.act(r, m, due)
		}
		if len(d.Commands) > 0 {
			break
		}
	}
	d.Until = r.next
	return d
}

// Check looks at a command again, on a fresh snapshot in which its machines are
// already marked. It returns the command as it is to be carried out now, with
// only the machines that may still go and with replacements planned anew, and
// why the others stay.
func Check(s *world.Snapshot, now time.Time, cmd Command, opt Options) (Command, []Kept) {
	var d Decision
	r := newRound(s, now, opt, &d)
	m, known := methodNamed(cmd.Method)
	if !known {
		return Command{Method: cmd.Method}, nil
	}
	var left []candidate
	for _, t := range cmd.Remove {
		c, why := r.still(m, t)
		if why != nil {
			r.keep(m, t.Node, why)
			continue
		}
		left = append(left, c)
	}
	out := Command{Method: cmd.Method}
	switch {
	case len(left) == 0:
	case m.quick:
		out = *(&whatIf{gone: left}).command(m.name)
	case m.saves:
		r.recheck(m, cmd, left, &out)
	default:
		for _, c := range left {
			w := r.whatIf([]candidate{c}, r.s)
			if w.why != nil {
				r.keep(m, c.node.Name, w.why)
				continue
			}
			one := w.command(m.name)
			out.Remove, out.Replace, out.Moves = append(out.Remove, one.Remove...), append(out.Replace, one.Replace...), append(out.Moves, one.Moves...)
			out.Saves, out.Disturbs = out.Saves+one.Saves, out.Disturbs+one.Disturbs
		}
	}
	return out, d.Kept
}

// still returns a machine that was chosen, or why it may not go any more.
func (r *round) still(m method, t Target) (candidate, reason.Reason) {
	n := find(r.s, t)
	if n == nil {
		return candidate{}, Gone{}
	}
	if n.Disruption != m.name {
		return candidate{}, NotMarked{}
	}
	c := r.candidate(n, m)
	if _, due := m.due(c); !due {
		return c, NotDue{}
	}
	c.since = t.Since
	return c, c.blocked()
}

func find(s *world.Snapshot, t Target) *world.Node {
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Name == t.Node && n.Claim == t.Claim {
			return n
		}
	}
	return nil
}
