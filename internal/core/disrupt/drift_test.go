package disrupt

import (
	"testing"
	"time"

	"karpenter/internal/core/world"
)

// adrift is a node that has drifted so long after t0.
func adrift(after time.Duration, more ...func(*world.Node)) func(*world.Node) {
	return func(n *world.Node) {
		at := t0.Add(after)
		n.Drifted, n.DriftedSince = "AMIDrift", &at
		for _, m := range more {
			m(n)
		}
	}
}

func TestDriftedMachinesAreReplaced(t *testing.T) {
	budget := func(nodes string, reasons ...string) func(*world.Pool) {
		return func(p *world.Pool) {
			p.EmptyAfter = nil
			p.Disruption.Budgets = []world.Budget{{Nodes: nodes, Reasons: reasons}}
		}
	}
	failed := func(times int, ago time.Duration) func(*world.Node) {
		return func(n *world.Node) {
			n.Failures = world.Failures{Count: times, Last: t0.Add(time.Minute - ago), Why: "late"}
		}
	}
	bounded := func(n *world.Node) { n.Bounded = true }
	full := func(name string) world.Pod { return pod(name, 3500, nil) }
	for name, c := range map[string]struct {
		pool  func(*world.Pool)
		nodes []world.Node
		want  string
	}{
		"the one that drifted first": {nodes: []world.Node{node("a", adrift(2), full("p")), node("b", adrift(1), full("q")), node("c", nil, full("r"))}, want: "drift: b after 1; a stays (Busy);"},
		"empty ones before others":   {budget("100%"), []world.Node{node("a", adrift(1), full("p")), node("b", adrift(2))}, "drift: b;drift: a after 1;"},
		"as many as the budget lets": {budget("2"), []world.Node{node("a", adrift(1), full("p")), node("b", adrift(1), full("q")), node("c", adrift(1), full("r"))}, "drift: a after 1;drift: b after 1; c stays (PoolBudget);"},
		"a budget for others":        {budget("0", ReasonEmpty, ReasonUnderutilized), []world.Node{node("a", adrift(1), full("p"))}, "drift: a after 1;"},
		"a budget of none":           {budget("0", ReasonDrifted), []world.Node{node("a", adrift(1), full("p"))}, "a stays (PoolBudget);"},
		"a pod that stays":           {nodes: []world.Node{node("a", adrift(1), pod("p", 3500, protected))}, want: "a stays (ProtectedPod);"},
		"but its node has an end":    {nodes: []world.Node{node("a", adrift(1, bounded), pod("p", 3500, protected))}, want: "drift: a after 1;"},
		"a node that stays, whatever its end": {nodes: []world.Node{node("a", adrift(1, bounded, func(n *world.Node) { n.Annotations = map[string]string{doNotDisrupt: "true"} }), full("p"))},
			want: "a stays (ProtectedNode);"},
		"replacements failed a moment ago, for another one": {budget("100%"), []world.Node{node("a", adrift(1), full("p")), node("b", adrift(1, failed(1, 4*time.Minute)), full("q"))},
			"a stays (ReplacementsFail); b stays (ReplacementsFail);"},
		"after a pause one is tried": {budget("100%"), []world.Node{node("a", adrift(1, failed(1, 5*time.Minute)), full("p")), node("b", adrift(1, failed(1, 5*time.Minute)), full("q"))},
			"drift: a after 1; b stays (Busy);"},
		"each pause is longer": {budget("100%"), []world.Node{node("a", adrift(1, failed(3, 19*time.Minute)), full("p"))}, "a stays (ReplacementsFail);"},
		"but it has an end":    {budget("100%"), []world.Node{node("a", adrift(1, failed(1000, 12*time.Hour)), full("p"))}, "drift: a after 1;"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := words(Decide(cluster(c.pool, c.nodes...), t0.Add(time.Minute), Options{})); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}
