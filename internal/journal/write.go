package journal

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"karpenter/internal/core/disrupt"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/schedule"
	"karpenter/internal/core/world"
	"karpenter/internal/dump"
)

// Bounds of one entry.
const (
	mostNames        = 100
	mostAlternatives = 8
)

// InputsOf is the moment in a few numbers.
func InputsOf(s *world.Snapshot) Inputs {
	machines, cost := disrupt.Cost(s)
	return Inputs{Pending: len(s.Pending), Machines: machines, PerHour: cost}
}

// Planned is the entry of a plan.
func Planned(s *world.Snapshot, plan *schedule.Plan, now time.Time) Entry {
	e := Entry{Time: now, Kind: Provision, Inputs: InputsOf(s), Decision: plan, Snapshot: s}
	pods := 0
	for i := range plan.Machines {
		m := &plan.Machines[i]
		pods += len(m.Pods)
		e.pool(m.Pool)
		for _, p := range m.Pods {
			e.Pods = few(e.Pods, p.String())
		}
	}
	for _, to := range plan.Placements {
		e.Pods = few(e.Pods, to.Pod.String())
		e.Nodes = few(e.Nodes, to.Node)
		e.Claims = few(e.Claims, to.Claim)
	}
	if p := plan.Price(); p != quantity.PriceUnknown {
		e.Change = p
	}
	e.Summary = fmt.Sprintf("%d pods on %d new machines for %s, %d on existing ones, %d without a place",
		pods, len(plan.Machines), plan.Price(), len(plan.Placements), len(plan.Unplaced))
	told := map[string]bool{}
	for _, u := range plan.Unplaced {
		e.Pods = few(e.Pods, u.Pod.String())
		if len(u.Reasons) == 0 || told[u.Reasons[0].String()] || len(e.Alternatives) == mostAlternatives {
			continue
		}
		why := u.Reasons[0].String()
		told[why] = true
		e.Alternatives = append(e.Alternatives, fmt.Sprintf("no place for %s: %s", u.Pod, why))
	}
	return e
}

// Bid is the entry of a machine that was asked for; command is that of which it is
// a part, if it is a replacement.
func Bid(claim string, m *schedule.Machine, command string, now time.Time) Entry {
	first := m.Options[0]
	e := Entry{Time: now, Kind: Bought, Command: command, Pools: []string{m.Pool}, Claims: []string{claim},
		Summary: fmt.Sprintf("NodeClaim %s of pool %q for %d pods: %s %s in %s, %s", claim, m.Pool, len(m.Pods), first.Type, first.CapacityType, first.Zone, m.Price)}
	if m.Price != quantity.PriceUnknown {
		e.Change = m.Price
	}
	for _, p := range m.Pods {
		e.Pods = few(e.Pods, p.String())
	}
	seen := map[string]bool{first.Type: true}
	for _, o := range m.Options[1:] {
		if seen[o.Type] || len(e.Alternatives) == mostAlternatives {
			continue
		}
		seen[o.Type] = true
		e.Alternatives = append(e.Alternatives, fmt.Sprintf("%s %s in %s, %s", o.Type, o.CapacityType, o.Zone, o.Price))
	}
	return e
}

// Chosen is the entry of a command, one of those of the decision.
func Chosen(s *world.Snapshot, d disrupt.Decision, c *disrupt.Command, id, summary string, limits dump.Limits, now time.Time) Entry {
	e := Entry{Time: now, Kind: Disrupt, Command: id, Summary: summary, Inputs: InputsOf(s), Change: -c.Saves, Decision: d, Snapshot: s, Limits: limits}
	for _, t := range c.Remove {
		e.pool(t.Pool)
		e.Nodes = few(e.Nodes, t.Node)
		e.Claims = few(e.Claims, t.Claim)
	}
	for _, m := range c.Replace {
		for _, p := range m.Pods {
			e.Pods = few(e.Pods, p.String())
		}
	}
	for _, p := range c.Moves {
		e.Pods = few(e.Pods, p.Pod.String())
	}
	for _, k := range d.Kept {
		if len(e.Alternatives) == mostAlternatives {
			break
		}
		if k.Method == c.Method {
			e.Alternatives = append(e.Alternatives, fmt.Sprintf("not %s: %s", k.Node, k.Reason))
		}
	}
	return e
}

// Noted is an entry about machines, by NodeClaim and node, which may be empty.
func Noted(kind Kind, summary, command string, machines [][2]string, now time.Time) Entry {
	e := Entry{Time: now, Kind: kind, Command: command, Summary: summary}
	for _, m := range machines {
		e.Claims, e.Nodes = few(e.Claims, m[0]), few(e.Nodes, m[1])
	}
	return e
}

func (e *Entry) pool(name string) {
	if !slices.Contains(e.Pools, name) {
		e.Pools = few(e.Pools, name)
	}
}

func few(list []string, name string) []string {
	if name == "" || len(list) == mostNames || slices.Contains(list, name) {
		return list
	}
	return append(list, name)
}

// Machines are the machines, by NodeClaim, with the names of their nodes, that
// the entries know to have joined and not to have gone; and those that were bought
// and have not joined, with an empty name.
func Machines(entries []Entry) map[string]string {
	out := map[string]string{}
	for _, e := range entries {
		for i, claim := range e.Claims {
			switch e.Kind {
			case Bought:
				out[claim] = ""
			case Joined:
				if i < len(e.Nodes) {
					out[claim] = e.Nodes[i]
				}
			case Gone, Lost:
				delete(out, claim)
			}
		}
	}
	return out
}

// Filter says which entries are wanted; what is empty is not asked for.
type Filter struct {
	Node, Pod string // a node or NodeClaim; a pod as namespace/name, or its name
	Kind      Kind
	Since     time.Time
}

// Select returns the entries about the node or pod, and those that belong to the
// same commands; of these the ones of the kind and time.
func Select(entries []Entry, f Filter) (out []Entry) {
	names := map[string]bool{f.Node: f.Node != ""}
	for _, e := range entries { // a machine has two names
		for i := range min(len(e.Claims), len(e.Nodes)) {
			if e.Kind == Joined && (e.Nodes[i] == f.Node || e.Claims[i] == f.Node) {
				names[e.Nodes[i]], names[e.Claims[i]] = true, true
			}
		}
	}
	about := func(e *Entry) bool {
		has := func(n string) bool { return names[n] }
		if f.Node != "" && !slices.ContainsFunc(e.Nodes, has) && !slices.ContainsFunc(e.Claims, has) {
			return false
		}
		return f.Pod == "" || slices.ContainsFunc(e.Pods, func(p string) bool { return p == f.Pod || strings.HasSuffix(p, "/"+f.Pod) })
	}
	commands := map[string]bool{}
	for i := range entries {
		if e := &entries[i]; e.Command != "" && about(e) {
			commands[e.Command] = true
		}
	}
	for i := range entries {
		e := &entries[i]
		if (about(e) || commands[e.Command]) && (f.Kind == "" || e.Kind == f.Kind) && !e.Time.Before(f.Since) {
			out = append(out, *e)
		}
	}
	return out
}
