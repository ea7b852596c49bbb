package disrupt

import (
	"fmt"
	"testing"
	"time"

	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
)

func TestBalanced(t *testing.T) {
	xl, old := of("m.xlarge", label.OnDemand), of("old.xlarge", label.OnDemand)
	many := func(node string, n int, cpu int64) (out []world.Pod) {
		for i := range n {
			out = append(out, pod(fmt.Sprint(node, i), cpu, nil))
		}
		return out
	}
	for name, c := range map[string]struct {
		nodes []world.Node
		want  string
	}{
		"half the size, half the price": {[]world.Node{node("a", xl, pod("p", 1500, nil))}, "consolidation: a after m.large/on-demand saves $0.1000/h for 2;"},
		"a little cheaper":              {[]world.Node{node("a", old, pod("p", 3500, nil))}, "a stays (Unbalanced);"},
		// A third of the cost, for 2 of 15 parts of the disturbance.
		"few pods move": {[]world.Node{node("a", xl, pod("p", 500, nil)), node("b", xl, many("b", 7, 500)...), node("c", xl, many("c", 4, 500)...)},
			"consolidation: a saves $0.2000/h for 2; b stays (Promised); c stays (Busy);"},
		// A third of the cost, for 21 of 25 parts of the disturbance.
		"many pods move": {[]world.Node{node("a", xl, many("a", 20, 100)...), node("b", xl, pod("b", 1900, nil)), node("c", xl, pod("c", 3900, nil))},
			"consolidation: b after m.large/on-demand saves $0.1000/h for 2; c stays (Busy); a stays (Unbalanced);"},
	} {
		t.Run(name, func(t *testing.T) {
			s := shop(cluster(func(p *world.Pool) {
				p.Consolidate, p.EmptyAfter, p.ExpireAfter, p.Disruption.Balanced = true, nil, nil, true
			}, c.nodes...))
			if got := words(Decide(s, t0.Add(time.Hour), Options{})); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}
