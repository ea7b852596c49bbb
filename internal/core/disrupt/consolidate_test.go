package disrupt

import (
	"strings"
	"testing"
	"time"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

// shop sells machines of 2, 4 and 8 CPU at a price that follows the size, and
// one of 4 CPU that is older and dearer; spot costs two fifths.
func shop(s *world.Snapshot) *world.Snapshot {
	var types []world.InstanceType
	for _, t := range []struct {
		name  string
		cpu   int64
		price quantity.Price
	}{{"m.2xlarge", 8, 400_000}, {"m.large", 2, 100_000}, {"m.xlarge", 4, 200_000}, {"old.xlarge", 4, 260_000}} {
		size := quantity.Resources{MilliCPU: t.cpu * 1000, MemoryBytes: t.cpu << 32, Pods: 50}
		types = append(types, world.InstanceType{Name: t.name, Capacity: size, Allocatable: size,
			Labels: map[string]string{label.InstanceType: t.name, label.Arch: "amd64", label.OS: "linux"},
			Offerings: []world.Offering{
				{Zone: "a", CapacityType: label.OnDemand, Price: t.price, Available: true},
				{Zone: "a", CapacityType: label.Spot, Price: t.price * 2 / 5, Available: true},
			}})
	}
	s.Catalogs = map[world.CatalogKey]world.Catalog{"c": {Types: types}}
	return s
}

// of makes a node of a type of [shop].
func of(kind, market string) func(*world.Node) {
	return func(n *world.Node) {
		n.Labels[label.InstanceType], n.Labels[label.CapacityType] = kind, market
		for _, t := range shop(&world.Snapshot{}).Catalogs["c"].Types {
			if t.Name == kind {
				n.Allocatable, n.Capacity = t.Allocatable, t.Capacity
			}
		}
	}
}

func both(changes ...func(*world.Node)) func(*world.Node) {
	return func(n *world.Node) {
		for _, c := range changes {
			c(n)
		}
	}
}

func markets(names ...string) func(*world.Pool) {
	return func(p *world.Pool) {
		p.Requirements = []label.Requirement{{Key: label.CapacityType, Op: label.In, Values: names}}
	}
}

func TestConsolidation(t *testing.T) {
	xl := of("m.xlarge", label.OnDemand)
	apart := func(p *world.Pod) {
		p.Labels = map[string]string{"app": "db"}
		p.AntiAffinity = []world.PodTerm{{Key: label.Hostname, Namespaces: []string{"default"},
			Selector: world.LabelSelector{Requirements: []label.Requirement{{Key: "app", Op: label.In, Values: []string{"db"}}}}}}
	}
	cheap := func(p *world.Pod) { p.DeletionCost = "-134217728" }
	for name, c := range map[string]struct {
		pool    func(*world.Pool)
		nodes   []world.Node
		budgets []world.PodBudget
		want    string
	}{
		"three machines that are nearly empty become one": {nodes: []world.Node{
			node("a", xl, pod("p", 1000, nil)), node("b", xl, pod("q", 1000, nil)), node("c", xl, pod("r", 1000, nil))},
			want: "consolidation: a b saves $0.4000/h for 4; c stays (Promised);"},
		"the same price is no reason": {nodes: []world.Node{
			node("a", xl, pod("p", 2200, nil)), node("b", xl, pod("q", 2200, nil))}, want: "a stays (NotCheaper); b stays (NotCheaper);"},
		"pods are not dealt out between a node and a smaller machine": {nodes: []world.Node{
			node("a", xl, pod("p1", 1100, nil), pod("p2", 1100, nil)), node("b", xl, pod("q1", 1100, nil), pod("q2", 1100, nil))},
			want: "a stays (NotCheaper); b stays (NotCheaper);"},
		"pods that were moved a while ago rest": {nodes: []world.Node{node("a", xl, pod("p", 1500, func(p *world.Pod) { at := t0.Add(time.Minute); p.MovedAt = &at }))},
			want: "a stays (JustMoved);"},
		"an hour later they do not": {nodes: []world.Node{node("a", xl, pod("p", 1500, func(p *world.Pod) { at := t0.Add(-time.Hour); p.MovedAt = &at }))},
			want: "consolidation: a after m.large/on-demand saves $0.1000/h for 2;"},
		"a smaller machine will do": {nodes: []world.Node{node("a", xl, pod("p", 1500, nil))},
			want: "consolidation: a after m.large/on-demand saves $0.1000/h for 2;"},
		"an older machine is replaced by one that costs less": {nodes: []world.Node{node("a", of("old.xlarge", label.OnDemand), pod("p", 3500, nil))},
			want: "consolidation: a after m.xlarge/on-demand saves $0.0600/h for 2;"},
		"several become one": {nodes: []world.Node{
			node("a", of("old.xlarge", label.OnDemand), pod("p", 3500, nil)), node("b", of("old.xlarge", label.OnDemand), pod("q", 3500, nil))},
			want: "consolidation: a b after m.2xlarge/on-demand saves $0.1200/h for 4;"},
		"spot if the pool allows it": {pool: markets(label.Spot, label.OnDemand), nodes: []world.Node{node("a", xl, pod("p", 3500, nil))},
			want: "consolidation: a after m.xlarge/spot saves $0.1200/h for 2;"},
		"spot is not replaced by spot": {pool: markets(label.Spot), nodes: []world.Node{node("a", of("m.2xlarge", label.Spot), pod("p", 1000, nil))},
			want: "a stays (SpotStays);"},
		"but it goes where there is room": {pool: markets(label.Spot), nodes: []world.Node{
			node("a", of("m.2xlarge", label.Spot), pod("p", 1000, nil)), node("b", of("m.2xlarge", label.Spot), pod("q", 1000, nil))},
			want: "consolidation: a saves $0.1600/h for 2; b stays (Promised);"},
		"spot to spot needs a choice": {pool: func(p *world.Pool) { markets(label.Spot)(p); p.Disruption.SpotToSpot = 4 },
			nodes: []world.Node{node("a", of("m.2xlarge", label.Spot), pod("p", 1000, nil))}, want: "a stays (FewSpotTypes);"},
		"and is made if there is one": {pool: func(p *world.Pool) { markets(label.Spot)(p); p.Disruption.SpotToSpot = 3 },
			nodes: []world.Node{node("a", of("m.2xlarge", label.Spot), pod("p", 1000, nil))}, want: "consolidation: a after m.large/spot saves $0.1200/h for 2;"},
		"pods that must not share a machine keep theirs": {nodes: []world.Node{
			node("a", of("m.large", label.OnDemand), pod("p", 500, apart)), node("b", of("m.large", label.OnDemand), pod("q", 500, apart))},
			want: "a stays (RulesKeep); b stays (RulesKeep);"},
		"what disturbs less goes first": {nodes: []world.Node{node("a", xl, pod("p", 1000, nil)), node("b", xl, pod("q", 1000, cheap))},
			want: "consolidation: b saves $0.2000/h for 1; a stays (Promised);"},
		"an annotated machine stays": {nodes: []world.Node{
			node("a", both(xl, func(n *world.Node) { n.Annotations = map[string]string{doNotConsolidate: "true"} }), pod("p", 1000, nil))}, want: "a stays (ProtectedNode);"},
		"with another value it does not": {nodes: []world.Node{
			node("a", both(xl, func(n *world.Node) { n.Annotations = map[string]string{doNotConsolidate: "false"} }), pod("p", 1500, nil))},
			want: "consolidation: a after m.large/on-demand saves $0.1000/h for 2;"},
		"nobody moves to a machine that is coming up": {nodes: []world.Node{
			node("a", of("m.large", label.OnDemand), pod("p", 1000, nil)), node("b", both(xl, func(n *world.Node) { n.Initialized = false }))},
			want: "b stays (NotInitialized); a stays (NotCheaper);"},
		"budgets of the pool": {pool: func(p *world.Pool) { p.Disruption.Budgets = []world.Budget{{Nodes: "50%"}} }, nodes: []world.Node{
			node("a", xl, pod("p", 1000, nil)), node("b", xl, pod("q", 1000, nil)), node("c", xl, pod("r", 1000, nil))},
			want: "consolidation: a b saves $0.4000/h for 4; c stays (Promised);"},
		"none allowed": {pool: func(p *world.Pool) {
			p.Disruption.Budgets = []world.Budget{{Nodes: "0", Reasons: []string{ReasonUnderutilized}}}
		}, nodes: []world.Node{
			node("a", xl, pod("p", 1000, nil))}, want: "a stays (PoolBudget);"},
		"a budget outside of its hours does not hold": {pool: func(p *world.Pool) { p.Disruption.Budgets = []world.Budget{{Nodes: "0", Inactive: true}} },
			nodes: []world.Node{node("a", xl, pod("p", 1500, nil))}, want: "consolidation: a after m.large/on-demand saves $0.1000/h for 2;"},
		"quiet is waited for": {pool: func(p *world.Pool) { p.Disruption.QuietFor = &world.Duration{Duration: time.Hour} },
			nodes: []world.Node{node("a", xl, pod("p", 1500, nil))}},
	} {
		t.Run(name, func(t *testing.T) {
			s := shop(cluster(func(p *world.Pool) {
				p.EmptyAfter, p.ExpireAfter, p.Consolidate = nil, nil, true
				if c.pool != nil {
					c.pool(p)
				}
			}, c.nodes...))
			s.Budgets = c.budgets
			d := Decide(s, t0.Add(time.Minute), Options{})
			if got := words(d); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			for _, cmd := range d.Commands {
				checkAgain(t, s, cmd)
			}
		})
	}
}

// checkAgain holds a command against the same world with its machines marked:
// it must be carried out as it was decided.
func checkAgain(t *testing.T, s *world.Snapshot, cmd Command) {
	t.Helper()
	marked := *s
	marked.Nodes = append([]world.Node(nil), s.Nodes...)
	for _, target := range cmd.Remove {
		for i := range marked.Nodes {
			if n := &marked.Nodes[i]; n.Name == target.Node {
				n.Deleting, n.Disruption = true, cmd.Method
			}
		}
	}
	got, kept := Check(&marked, t0.Add(time.Minute), cmd, Options{})
	if a, b := words(Decision{Commands: []Command{got}, Kept: kept}), words(Decision{Commands: []Command{cmd}}); a != b {
		t.Errorf("when checked: %q, decided: %q", a, b)
	}
}

func TestEvictionCost(t *testing.T) {
	for _, c := range []struct {
		cost     string
		priority int32
		want     float64
	}{{"", 0, 1}, {"134217728", 0, 2}, {"-134217728", 0, 0}, {"not a number", 0, 1}, {"", 1 << 25, 2}, {"", 2_000_000_000, 10}, {"-1e30", 0, -10}} {
		p := pod("p", 1, func(p *world.Pod) { p.DeletionCost, p.Priority = c.cost, c.priority })
		if got := EvictionCost(&p); got != c.want {
			t.Errorf("%+v: got %v", c, got)
		}
	}
}

func TestReasonsSayWhatIsWrong(t *testing.T) {
	ends := time.Date(2030, 1, 1, 22, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		got  interface{ String() string }
		want []string
	}{
		{PoolBudget{Pool: "main", Nodes: "0", Ends: &ends}, []string{"budget", "main", "22:00"}},
		{SpotStays{Types: 3}, []string{"spot", "3"}},
		{RulesKeep{Pod: world.ObjectName{Name: "db-1"}, Rules: []string{"anti-affinity"}}, []string{"db-1", "anti-affinity"}},
		{FewSpotTypes{Types: 3, Least: 15}, []string{"too few", "3", "15"}},
	} {
		for _, w := range c.want {
			if !strings.Contains(c.got.String(), w) {
				t.Errorf("%q does not say %q", c.got, w)
			}
		}
	}
}

// A machine that no pod has used yet waits as long as kube-scheduler may take to
// come back to the pods that it was bought for.
func TestAMachineThatNobodyHasUsedWaits(t *testing.T) {
	usable := t0
	unused := func(n *world.Node) { n.EmptySince, n.PodEvent, n.Unused = &usable, &usable, true }
	none := &world.Duration{}
	s := cluster(func(p *world.Pool) {
		p.EmptyAfter, p.ExpireAfter, p.Consolidate, p.Disruption.QuietFor = none, nil, true, none
	}, node("a", unused))
	for after, want := range map[time.Duration]string{sweep - time.Second: "", sweep: "emptiness: a;"} {
		if got := words(Decide(s, t0.Add(after), Options{})); got != want {
			t.Errorf("after %s: %q, want %q", after, got, want)
		}
	}
}

// Room that is kept elsewhere for a pod that has to move is not taken twice.
func TestRoomKeptForAPodThatMovesIsItsOwn(t *testing.T) {
	xl := of("m.xlarge", label.OnDemand)
	s := shop(cluster(func(p *world.Pool) { p.EmptyAfter, p.ExpireAfter, p.Consolidate = nil, nil, true },
		node("a", xl, pod("p", 2500, nil)), node("b", both(xl, func(n *world.Node) { n.Annotations = map[string]string{doNotConsolidate: "true"} }), pod("q", 1000, nil))))
	cmd := Decide(s, t0.Add(time.Minute), Options{}).Commands[0]
	for i := range s.Nodes { // after it was decided, p is nominated for b
		if n := &s.Nodes[i]; n.Name == "b" {
			n.Pods = append(n.Pods, pod("p", 2500, func(p *world.Pod) { p.Node, p.Nominated = "a", "b" }))
		}
	}
	checkAgain(t, s, cmd)
}
