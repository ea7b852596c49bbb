package disrupt

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"karpenter/internal/core/world"
)

// TestConfirm: a machine was chosen and its replacement is ready; what has become
// of the reasons meanwhile?
func TestConfirm(t *testing.T) {
	at := t0.Add(2 * time.Hour)
	chosen := func(method string, more ...func(*world.Node)) func(*world.Node) {
		return func(n *world.Node) {
			n.Deleting, n.Disruption, n.DriftedSince = true, method, &t0
			if method == Drift {
				n.Drifted = "AMIDrift"
			}
			for _, m := range more {
				m(n)
			}
		}
	}
	fresh := func(n *world.Node) { n.Created, n.Unused = at, true }
	down := func(n *world.Node) { n.Created, n.Ready = at, false }
	old := func(method string, p ...world.Pod) world.Node { return node("old", chosen(method), p...) }
	p := pod("p", 3000, nil)
	spent := world.PodBudget{ObjectName: world.ObjectName{Namespace: "default", Name: "b"}}
	never := spent
	never.Never = true
	keep := func(n *world.Node) { n.Annotations = map[string]string{doNotDisrupt: "true"} }
	budgets := func(nodes string) func(*world.Pool) {
		return func(p *world.Pool) { p.Disruption.Budgets = []world.Budget{{Nodes: nodes}} }
	}
	for name, c := range map[string]struct {
		pool    func(*world.Pool)
		budgets []world.PodBudget
		method  string
		nodes   []world.Node
		want    string
	}{
		"nothing has changed":       {method: Drift, nodes: []world.Node{old(Drift, p), node("new", fresh)}, want: ""},
		"a late pod finds room too": {method: Drift, nodes: []world.Node{old(Drift, p, pod("late", 900, nil)), node("new", fresh)}},
		"others took the room": {method: Drift, nodes: []world.Node{old(Drift, p), node("new", fresh, pod("thief", 2000, nil))},
			want: "old RoomTaken, may pass"},
		"others are about to": {method: Drift, nodes: []world.Node{old(Drift, p), node("new", fresh, pod("thief", 2000, func(p *world.Pod) { p.Node = "elsewhere" }))},
			want: "old RoomTaken, may pass"},
		"it is not expired any more": {pool: func(p *world.Pool) { p.ExpireAfter = &world.Duration{Duration: 3 * time.Hour} },
			method: Expiration, nodes: []world.Node{old(Expiration, p), node("new", fresh)}, want: "old NotDue"},
		"it does not expire at all any more": {pool: func(p *world.Pool) { p.ExpireAfter = nil },
			method: Expiration, nodes: []world.Node{old(Expiration, p), node("new", fresh)}, want: "old NotDue"},
		"it has not drifted any more": {method: Drift, nodes: []world.Node{node("old", chosen(Drift, func(n *world.Node) { n.Drifted = "" }), p), node("new", fresh)},
			want: "old NotDue"},
		"its mark was taken off":       {method: Drift, nodes: []world.Node{old("", p), node("new", fresh)}, want: "old NotMarked"},
		"another method has marked it": {method: Drift, nodes: []world.Node{old(Expiration, p), node("new", fresh)}, want: "old NotMarked"},
		"a pod is protected":           {method: Drift, nodes: []world.Node{old(Drift, pod("p", 3000, protected)), node("new", fresh)}, want: "old ProtectedPod"},
		"the node is protected":        {method: Drift, nodes: []world.Node{node("old", chosen(Drift, keep), p), node("new", fresh)}, want: "old ProtectedNode"},
		"a budget of pods is spent": {budgets: []world.PodBudget{spent}, method: Drift, nodes: []world.Node{old(Drift, p), node("new", fresh)},
			want: "old BudgetSpent, may pass"},
		"a budget of pods allows nothing ever": {budgets: []world.PodBudget{never}, method: Drift, nodes: []world.Node{old(Drift, p), node("new", fresh)},
			want: "old BudgetSpent"},
		"the pool is stopped":                    {pool: budgets("0"), method: Drift, nodes: []world.Node{old(Drift, p), node("new", fresh)}, want: "old PoolBudget, may pass"},
		"its own place in the budget is its own": {pool: budgets("1"), method: Drift, nodes: []world.Node{old(Drift, p), node("new", fresh)}},
		"another machine is down": {pool: budgets("1"), method: Drift, nodes: []world.Node{old(Drift, p), node("new", fresh), node("x", down)},
			want: "old PoolBudget, may pass"},
		"of more than the budget lets by now, the first goes": {pool: budgets("1"), method: Drift, nodes: []world.Node{old(Drift, p), node("new", fresh), node("p", chosen(Drift))}},
		"and the others wait": {pool: budgets("1"), method: Drift, nodes: []world.Node{old(Drift, p), node("new", fresh), node("a", chosen(Drift))},
			want: "old PoolBudget, may pass"},
		"saving money is not wanted any more": {method: Consolidation, nodes: []world.Node{old(Consolidation, p), node("new", fresh)}, want: "old NotDue"},
		"it is, and pods come and go": {pool: func(p *world.Pool) {
			p.Consolidate, p.Disruption.QuietFor = true, &world.Duration{Duration: time.Hour}
		}, method: Consolidation, nodes: []world.Node{node("old", chosen(Consolidation, func(n *world.Node) { n.PodEvent = &at }), p), node("new", fresh)}},
		"a method that nobody knows": {method: "whim", nodes: []world.Node{old("whim", p), node("new", fresh)}, want: "old NotDue"},
		"it is gone":                 {method: Drift, nodes: []world.Node{node("new", fresh)}},
	} {
		t.Run(name, func(t *testing.T) {
			s := cluster(c.pool, c.nodes...)
			s.Budgets = c.budgets
			kept := Confirm(s, at, Command{Method: c.method, Remove: []Target{{Node: "old", Claim: "claim-old", Pool: "test"}}}, Options{})
			if got := stays(kept); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A command of several machines is carried out whole or not at all.
func TestConfirmIsAboutTheWhole(t *testing.T) {
	at := t0.Add(time.Hour)
	marked := func(n *world.Node) { n.Deleting, n.Disruption = true, Consolidation }
	s := cluster(func(p *world.Pool) { p.Consolidate = true },
		node("a", marked, pod("p", 2000, nil)), node("b", marked, pod("q", 2000, nil)),
		node("new", func(n *world.Node) { n.Created = at }, pod("thief", 1000, nil)))
	cmd := Command{Method: Consolidation, Remove: []Target{{Node: "a", Claim: "claim-a"}, {Node: "b", Claim: "claim-b"}, {Node: "c", Claim: "claim-c"}}}
	if got, want := stays(Confirm(s, at, cmd, Options{})), "a RoomTaken, b RoomTaken, may pass"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// stays writes who stays and why.
func stays(kept []Kept) string {
	var out []string
	for _, k := range kept {
		out = append(out, fmt.Sprintf("%s %s", k.Node, k.Reason.Code()))
	}
	if len(kept) > 0 && Passes(kept) {
		out = append(out, "may pass")
	}
	return strings.Join(out, ", ")
}
