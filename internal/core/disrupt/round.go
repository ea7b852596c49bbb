package disrupt

import (
	"cmp"
	"math"
	"slices"
	"time"

	"karpenter/internal/core/reason"
	"karpenter/internal/core/schedule"
	"karpenter/internal/core/world"
)

// round is one look for machines that may go. Its snapshot is as if everything
// decided so far had been carried out.
type round struct {
	*clock
	s      *world.Snapshot
	opt    Options
	out    *Decision
	prices prices
	ledger *ledger // of the method that is tried
	before int     // simulations made by the methods before it
	// failures of replacements, by pool.
	failures map[poolKey]world.Failures
	began    *world.Snapshot   // as it was
	wholes   map[poolKey]whole // see wholeOf
}

func newRound(s *world.Snapshot, now time.Time, opt Options, out *Decision) *round {
	s = settled(s, opt)
	return &round{clock: &clock{now: now}, s: s, opt: opt, out: out, prices: prices{}, began: s, failures: failures(s)}
}

// settled is the snapshot as if the pods that wait had got what there is for
// them. What has to be bought for the rest is another's business: it must neither
// stop a machine from going nor be bought together with a replacement.
func settled(s *world.Snapshot, opt Options) *world.Snapshot {
	if len(s.Pending) == 0 {
		return s
	}
	to := map[world.ObjectName]string{}
	for _, p := range schedule.Solve(s, opt.Schedule).Placements {
		to[p.Pod] = cmp.Or(p.Node, p.Claim)
	}
	return s.Expecting(to)
}

// failures sums up, for each pool, how often replacements of machines that are
// still there did not come up.
func failures(s *world.Snapshot) map[poolKey]world.Failures {
	out := map[poolKey]world.Failures{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Failures.Count == 0 {
			continue
		}
		f := out[poolKey{n.PoolKind, n.Pool}]
		f.Count = max(f.Count, n.Failures.Count)
		if n.Failures.Last.After(f.Last) {
			f.Last, f.Why = n.Failures.Last, n.Failures.Why
		}
		out[poolKey{n.PoolKind, n.Pool}] = f
	}
	return out
}

// full reports whether as many commands were found as are wanted.
func (r *round) full() bool { return r.opt.Commands > 0 && len(r.out.Commands) >= r.opt.Commands }

// spent reports whether the method has made all simulations that it is allowed.
func (r *round) spent() bool { return r.opt.WhatIfs > 0 && r.out.WhatIfs-r.before >= r.opt.WhatIfs }

// inTurn begins with other candidates in each look where there are more than may
// be looked at, so that some that can never go do not keep the rest waiting for
// ever.
func (r *round) inTurn(due []candidate) []candidate {
	if r.opt.WhatIfs == 0 || len(due) <= r.opt.WhatIfs {
		return due
	}
	r.changes(r.now) // those whose turn it is
	first := int(r.now.Unix()/looksApart*int64(r.opt.WhatIfs)) % len(due)
	return slices.Concat(due[first:], due[:first])
}

// looksApart is at most how many seconds are between two looks.
const looksApart = 10

func (r *round) keep(m method, node string, why reason.Reason) {
	r.out.Kept = append(r.out.Kept, Kept{node, m.name, why})
}

// candidates are the machines that the method wants and may have; why the
// others stay is noted.
func (r *round) candidates(m method) []candidate {
	var out []candidate
	for i := range r.s.Nodes {
		c := r.candidate(&r.s.Nodes[i], m)
		since, due := m.due(c)
		if !due || c.node.Deleting {
			continue
		}
		if why := c.blocked(); why != nil {
			r.keep(m, c.node.Name, why)
			continue
		}
		c.since = since
		out = append(out, c)
	}
	return out
}

func (r *round) candidate(n *world.Node, m method) candidate {
	c := candidate{clock: r.clock, snap: r.s, node: n, method: m.name, eventual: m.eventual, quick: m.quick, failures: r.failures[poolKey{n.PoolKind, n.Pool}], pool: r.s.Pool(n.PoolKind, n.Pool)}
	c.price, c.disturbs = r.prices.of(r.s, c.pool, n), disturbance(n)
	return c
}

// commit takes a command into the answer, and goes on as if it were done.
func (r *round) commit(cmd *Command) {
	var gone []string
	for _, t := range cmd.Remove {
		gone = append(gone, t.Node)
	}
	to := map[world.ObjectName]string{}
	for _, p := range cmd.Moves {
		to[p.Pod] = p.Node
	}
	r.s = r.s.After(gone, to)
	r.out.Commands = append(r.out.Commands, *cmd)
}

// together takes everything that is due at once; nothing has to move.
func (r *round) together(m method, due []candidate) {
	w := whatIf{}
	for _, c := range due {
		if why := r.ledger.refuses(c); why != nil {
			r.keep(m, c.node.Name, why)
			continue
		}
		r.ledger.draw(c)
		w.gone = append(w.gone, c)
	}
	if len(w.gone) > 0 {
		r.commit(w.command(m.name))
	}
}

// oneByOne replaces machines, empty ones first, then those that have been due for
// longest, with places for their pods found or bought first. Prices do not
// matter. Where a pool's replacements have failed lately, one machine is tried
// at a time.
func (r *round) oneByOne(m method, due []candidate) {
	slices.SortStableFunc(due, func(a, b candidate) int {
		if a, b := a.vacant(), b.vacant(); a != b {
			if a {
				return -1
			}
			return 1
		}
		return a.since.Compare(b.since)
	})
	for _, c := range r.inTurn(due) {
		if r.full() {
			return
		}
		if why := r.ledger.refuses(c); why != nil {
			r.keep(m, c.node.Name, why)
			continue
		}
		if r.spent() {
			r.keep(m, c.node.Name, NotLookedAt{})
			continue
		}
		w := r.whatIf([]candidate{c}, r.s)
		if w.why != nil {
			r.keep(m, c.node.Name, w.why)
			continue
		}
		r.ledger.draw(c)
		r.ledger.close(c)
		r.commit(w.command(m.name))
	}
}

// whatIf is what would become of machines' pods if the machines were gone.
type whatIf struct {
	gone []candidate
	// why not all of the pods have a place that is ready for them; nil if they
	// have. stuck are the machines that the others come from.
	why     reason.Reason
	stuck   map[string]bool
	moves   []schedule.Placement
	replace []schedule.Machine
}

// whatIf asks Solve. sold is the snapshot with what may be bought.
func (r *round) whatIf(gone []candidate, sold *world.Snapshot) whatIf {
	r.out.WhatIfs++
	w := whatIf{gone: gone, stuck: map[string]bool{}}
	var names []string
	from := map[world.ObjectName]string{}
	for _, c := range gone {
		names = append(names, c.node.Name)
		for _, p := range c.node.Pods {
			if p.Leaves(c.node) {
				from[p.ObjectName] = c.node.Name
			}
		}
	}
	plan := schedule.Solve(sold.Without(names...), r.opt.Schedule)
	fail := func(pod world.ObjectName, why reason.Reason) {
		w.stuck[from[pod]] = true
		if w.why == nil {
			w.why = why
		}
	}
	for _, u := range plan.Unplaced {
		if from[u.Pod] != "" {
			fail(u.Pod, NoOtherPlace{Pod: u.Pod, Reasons: u.Reasons})
		}
	}
	coming := map[string]string{}
	for i := range sold.Nodes {
		if n := &sold.Nodes[i]; n.Claim != "" && !n.Initialized {
			coming[n.Claim] = n.Name
		}
	}
	for _, p := range plan.Placements {
		if from[p.Pod] == "" {
			continue
		}
		if n := coming[p.Claim]; n != "" {
			fail(p.Pod, WaitsFor{Pod: p.Pod, Node: n})
		}
		w.moves = append(w.moves, p)
	}
	for _, m := range plan.Machines {
		if slices.ContainsFunc(m.Pods, func(p world.ObjectName) bool { return from[p] != "" }) {
			w.replace = append(w.replace, m)
		}
	}
	return w
}

// command removes the machines, for what it saves and disturbs.
func (w *whatIf) command(method string) *Command {
	cmd := &Command{Method: method, Replace: w.replace, Moves: w.moves}
	for _, c := range w.gone {
		cmd.Remove = append(cmd.Remove, c.target())
		cmd.Disturbs += c.disturbs
		if c.price < math.MaxInt64-max(0, cmd.Saves) {
			cmd.Saves += c.price
		}
	}
	for _, m := range w.replace {
		if m.Price < math.MaxInt64/2 {
			cmd.Saves -= m.Price
		}
	}
	return cmd
}
