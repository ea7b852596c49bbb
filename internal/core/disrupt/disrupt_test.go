package disrupt

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// cluster is a world with one pool, "test", that buys 4-CPU machines in zone a.
func cluster(change func(*world.Pool), nodes ...world.Node) *world.Snapshot {
	pool := world.Pool{Name: "test", Kind: "Provisioner", Catalog: "c",
		Labels:       map[string]string{label.Provisioner: "test"},
		Requirements: []label.Requirement{{Key: label.CapacityType, Op: label.In, Values: []string{label.OnDemand}}},
		EmptyAfter:   &world.Duration{Duration: 30 * time.Second},
		ExpireAfter:  &world.Duration{Duration: time.Hour}}
	if change != nil {
		change(&pool)
	}
	size := quantity.Resources{MilliCPU: 4000, MemoryBytes: 16 << 30, Pods: 50}
	s := &world.Snapshot{Pools: []world.Pool{pool}, Nodes: nodes, Policy: world.DefaultPolicy(),
		Catalogs: map[world.CatalogKey]world.Catalog{"c": {Types: []world.InstanceType{{
			Name: "m.xlarge", Capacity: size, Allocatable: size,
			Labels:    map[string]string{label.InstanceType: "m.xlarge", label.Arch: "amd64", label.OS: "linux"},
			Offerings: []world.Offering{{Zone: "a", CapacityType: label.OnDemand, Price: 100_000, Available: true}},
		}}}}}
	world.SortNodes(s.Nodes)
	return s
}

// node is an initialized 4-CPU node of the pool, made at t0.
func node(name string, change func(*world.Node), pods ...world.Pod) world.Node {
	size := quantity.Resources{MilliCPU: 4000, MemoryBytes: 16 << 30, Pods: 50}
	n := world.Node{Name: name, Claim: "claim-" + name, Pool: "test", Joined: true, Ready: true, Registered: true, Initialized: true,
		Created: t0, Allocatable: size, Capacity: size,
		Labels: map[string]string{label.Provisioner: "test", label.Zone: "a", label.CapacityType: label.OnDemand, label.InstanceType: "m.xlarge",
			label.Arch: "amd64", label.OS: "linux", label.Hostname: name}}
	for _, p := range pods {
		if p.Node == "" {
			p.Node = name
		}
		n.Pods = append(n.Pods, p)
	}
	if change != nil {
		change(&n)
	}
	return n
}

func pod(name string, cpu int64, change func(*world.Pod)) world.Pod {
	p := world.Pod{ObjectName: world.ObjectName{Namespace: "default", Name: name}, UID: name, Owner: world.Owner{Kind: "ReplicaSet"},
		Labels: map[string]string{"app": name}, Requests: quantity.Resources{MilliCPU: cpu, MemoryBytes: 1 << 30, Pods: 1}, Created: t0}
	if change != nil {
		change(&p)
	}
	return p
}

func emptySince(at time.Time) func(*world.Node) { return func(n *world.Node) { n.EmptySince = &at } }
func daemon(p *world.Pod)                       { p.Owner.Kind = "DaemonSet" }
func protected(p *world.Pod)                    { p.DoNotEvict = true }

// protectedFor so long from t0.
func protectedFor(d time.Duration) func(*world.Pod) {
	until := t0.Add(d)
	return func(p *world.Pod) { p.DoNotEvictUntil = &until }
}

// words of a decision: what goes and after what, then who stays and why.
func words(d Decision) string {
	var b strings.Builder
	for _, c := range d.Commands {
		fmt.Fprintf(&b, "%s:", c.Method)
		for _, t := range c.Remove {
			fmt.Fprintf(&b, " %s", t.Node)
		}
		if c.Method == Consolidation {
			for _, m := range c.Replace {
				fmt.Fprintf(&b, " after %s/%s", m.Options[0].Type, m.Options[0].CapacityType)
			}
			fmt.Fprintf(&b, " saves %s for %v", c.Saves, c.Disturbs)
		} else if len(c.Replace) > 0 {
			fmt.Fprintf(&b, " after %d", len(c.Replace))
		}
		b.WriteString(";")
	}
	for _, k := range d.Kept {
		fmt.Fprintf(&b, " %s stays (%s);", k.Node, k.Reason.Code())
	}
	return strings.TrimSpace(b.String())
}

func TestDecide(t *testing.T) {
	half := func(p ...world.Pod) []world.Pod { return p }
	for name, c := range map[string]struct {
		pool    func(*world.Pool)
		after   time.Duration // since t0
		nodes   []world.Node
		budgets []world.PodBudget
		want    string
	}{
		"all that are empty for long enough go together": {after: time.Minute, nodes: []world.Node{
			node("a", emptySince(t0)), node("b", emptySince(t0.Add(30*time.Second))), node("c", emptySince(t0.Add(31*time.Second))), node("d", nil)},
			want: "emptiness: a b;"},
		"daemon and static pods do not keep a node": {after: time.Minute, nodes: []world.Node{
			node("a", emptySince(t0), pod("d", 100, daemon), pod("s", 100, func(p *world.Pod) { p.Owner.Kind = "Node" }))}, want: "emptiness: a;"},
		"a pod that came after the stamp keeps it":       {after: time.Minute, nodes: []world.Node{node("a", emptySince(t0), pod("p", 100, nil))}},
		"a pod that is shutting down keeps it":           {after: time.Minute, nodes: []world.Node{node("a", emptySince(t0), pod("p", 100, func(p *world.Pod) { p.DeletedAt = &t0 }))}},
		"a finished pod does not":                        {after: time.Minute, nodes: []world.Node{node("a", emptySince(t0), pod("p", 100, func(p *world.Pod) { p.Finished = true }))}, want: "emptiness: a;"},
		"no ttl, no removal":                             {pool: func(p *world.Pool) { p.EmptyAfter = nil }, after: time.Minute, nodes: []world.Node{node("a", emptySince(t0))}},
		"a node without pool is nobody's":                {after: time.Minute, nodes: []world.Node{node("a", func(n *world.Node) { n.EmptySince, n.Pool = &t0, "other" })}},
		"a node that waits for its pods is not waste":    {after: time.Minute, nodes: []world.Node{node("a", emptySince(t0), pod("p", 100, func(p *world.Pod) { p.Node = "elsewhere" }))}},
		"a node on which pods are expected stays":        {after: time.Minute, nodes: []world.Node{node("a", func(n *world.Node) { u := t0.Add(2 * time.Minute); n.EmptySince, n.NominatedUntil = &t0, &u })}, want: "a stays (Promised);"},
		"an expectation that is over does not keep it":   {after: time.Minute, nodes: []world.Node{node("a", func(n *world.Node) { n.EmptySince, n.NominatedUntil = &t0, &t0 })}, want: "emptiness: a;"},
		"a node that is not initialized stays":           {after: time.Minute, nodes: []world.Node{node("a", func(n *world.Node) { n.EmptySince, n.Initialized = &t0, false })}, want: "a stays (NotInitialized);"},
		"a node that is going is not taken again":        {after: time.Minute, nodes: []world.Node{node("a", func(n *world.Node) { n.EmptySince, n.Deleting = &t0, true })}},
		"an annotated node stays":                        {after: time.Minute, nodes: []world.Node{node("a", func(n *world.Node) { n.EmptySince = &t0; n.Annotations = map[string]string{doNotDisrupt: "true"} })}, want: "a stays (ProtectedNode);"},
		"a protected daemon pod would block the drain":   {after: time.Minute, nodes: []world.Node{node("a", emptySince(t0), pod("d", 100, func(p *world.Pod) { daemon(p); protected(p) }))}, want: "a stays (ProtectedPod);"},
		"expiry comes before emptiness":                  {after: 2 * time.Hour, nodes: []world.Node{node("a", emptySince(t0)), node("b", emptySince(t0))}, want: "expiration: a; b stays (Busy);"},
		"the oldest goes first, its pods move to others": {after: 2 * time.Hour, nodes: []world.Node{node("a", func(n *world.Node) { n.Created = t0.Add(time.Minute) }, half(pod("p", 1000, nil))...), node("b", nil, half(pod("q", 1000, nil))...)}, want: "expiration: b; a stays (Busy);"},
		"a replacement is bought where nothing has room": {after: 2 * time.Hour, nodes: []world.Node{node("a", nil, pod("p", 3000, nil)), node("b", func(n *world.Node) { n.Created = t0.Add(time.Hour + time.Minute) }, pod("q", 3000, nil))}, want: "expiration: a after 1;"},
		"not before its time, to the second":             {after: time.Hour, nodes: []world.Node{node("a", nil, pod("p", 3000, nil))}},
		"one at a time per pool": {after: 2 * time.Hour, nodes: []world.Node{node("a", func(n *world.Node) { n.Deleting, n.Disruption = true, Expiration }), node("b", nil, pod("p", 3000, nil))},
			want: "b stays (Busy);"},
		"a pod that fits nowhere else keeps its node, and the next one is tried": {after: 2 * time.Hour, nodes: []world.Node{
			node("a", func(n *world.Node) { n.Labels[label.Zone] = "c" }, pod("stuck", 1000, func(p *world.Pod) {
				p.Selector = []label.Requirement{{Key: label.Zone, Op: label.In, Values: []string{"c"}}}
			})),
			node("b", func(n *world.Node) { n.Created = t0.Add(time.Minute) }, pod("p", 3500, nil))},
			want: "expiration: b after 1; a stays (NoOtherPlace);"},
		"a budget that allows nothing blocks": {after: 2 * time.Hour, nodes: []world.Node{node("a", nil, pod("p", 1000, nil))},
			budgets: []world.PodBudget{{ObjectName: world.ObjectName{Namespace: "default", Name: "b"}}}, want: "a stays (BudgetSpent);"},
		"a budget of another namespace does not": {after: 2 * time.Hour, nodes: []world.Node{node("a", nil, pod("p", 1000, nil))},
			budgets: []world.PodBudget{{ObjectName: world.ObjectName{Namespace: "other", Name: "b"}}}, want: "expiration: a after 1;"},
		"two budgets on one pod block for ever": {after: 2 * time.Hour, nodes: []world.Node{node("a", nil, pod("p", 1000, nil))},
			budgets: []world.PodBudget{{ObjectName: world.ObjectName{Namespace: "default", Name: "b"}, Allowed: 1}, {ObjectName: world.ObjectName{Namespace: "default", Name: "c"}, Allowed: 1}},
			want:    "a stays (TwoBudgets);"},
		"a pod that is protected for a while blocks": {after: 2 * time.Hour, nodes: []world.Node{node("a", nil, pod("p", 1000, protectedFor(2*time.Hour+1)))},
			want: "a stays (ProtectedPod);"},
		"and then it does not": {after: 2 * time.Hour, nodes: []world.Node{node("a", nil, pod("p", 1000, protectedFor(2*time.Hour)))}, want: "expiration: a after 1;"},
		"limits hold for replacements": {pool: func(p *world.Pool) {
			p.Limits, p.Used = []quantity.Amount{{Name: quantity.CPU, Value: 4000}}, quantity.Resources{MilliCPU: 4000}
		}, after: 2 * time.Hour, nodes: []world.Node{node("a", nil, pod("p", 1000, nil))}, want: "a stays (NoOtherPlace);"},
		"room on a node that is still coming up must be waited for": {after: 2 * time.Hour, nodes: []world.Node{node("a", nil, pod("p", 1000, nil)),
			node("b", func(n *world.Node) { n.Created, n.Initialized = t0.Add(2*time.Hour), false })}, want: "a stays (WaitsFor);"},
	} {
		t.Run(name, func(t *testing.T) {
			s := cluster(c.pool, c.nodes...)
			s.Budgets = c.budgets
			if got := words(Decide(s, t0.Add(c.after), Options{})); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestUnrelatedPendingPodsDoNotStopAnything(t *testing.T) {
	s := cluster(nil, node("a", nil, pod("p", 1000, nil)))
	s.Pending = []world.Pod{pod("huge", 100_000, nil)}
	if got, want := words(Decide(s, t0.Add(2*time.Hour), Options{})), "expiration: a after 1;"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What is bought for a machine that goes is for its pods: those that wait get
// their own, and the room that they are about to take is not given away twice.
func TestPendingPodsAreNotReplacedForAlong(t *testing.T) {
	at := t0.Add(2 * time.Hour)
	young := func(n *world.Node) { n.Created = at }
	s := cluster(nil, node("a", nil, pod("p", 1000, nil)))
	s.Pending = []world.Pod{pod("waits", 1000, nil)} // and goes to the old machine
	if got, want := words(Decide(s, at, Options{})), "a stays (Promised);"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	s = cluster(nil, node("a", nil, pod("p", 1500, nil)), node("full", young, pod("q", 3500, nil)))
	s.Pending = []world.Pod{pod("waits", 2600, nil)} // for a machine of its own
	d := Decide(s, at, Options{})
	if len(d.Commands) != 1 || len(d.Commands[0].Replace) != 1 || len(d.Commands[0].Replace[0].Pods) != 1 {
		t.Errorf("%+v", d.Commands)
	}
	s = cluster(nil, node("a", nil, pod("p", 1500, nil)), node("b", young, pod("q", 1000, nil)))
	s.Pending = []world.Pod{pod("waits", 2600, nil)} // for b, which has no room for p then
	if got, want := words(Decide(s, at, Options{})), "expiration: a after 1;"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSimulationsAreLimited(t *testing.T) {
	stuck := func(p *world.Pod) {
		p.Selector = []label.Requirement{{Key: label.Zone, Op: label.In, Values: []string{"z"}}}
	}
	s := cluster(nil, node("a", nil, pod("p", 1000, stuck)), node("b", nil, pod("q", 1000, stuck)))
	d := Decide(s, t0.Add(2*time.Hour), Options{WhatIfs: 1})
	if got, want := words(d), "a stays (NoOtherPlace); b stays (NotLookedAt);"; got != want || d.WhatIfs != 1 {
		t.Errorf("got %q after %d what-ifs, want %q", got, d.WhatIfs, want)
	}
}

// A command is looked at once more after its machines were closed to new pods.
func TestCheck(t *testing.T) {
	now := t0.Add(time.Minute)
	cmd := Decide(cluster(nil, node("a", emptySince(t0)), node("b", emptySince(t0)), node("c", emptySince(t0)), node("d", emptySince(t0))), now, Options{}).Commands[0]
	marked := func(n *world.Node) { n.EmptySince, n.Deleting, n.Disruption = &t0, true, Emptiness }
	fresh := cluster(nil, node("a", marked), node("b", marked, pod("late", 100, nil)), node("d", emptySince(t0)))
	got, kept := Check(fresh, now, cmd, Options{})
	if w := words(Decision{Commands: []Command{got}, Kept: kept}); w != "emptiness: a; b stays (NotDue); c stays (Gone); d stays (NotMarked);" {
		t.Error(w)
	}
}

func TestCheckPlansReplacementsAnew(t *testing.T) {
	now := t0.Add(2 * time.Hour)
	cmd := Decide(cluster(nil, node("a", nil, pod("p", 3000, nil))), now, Options{}).Commands[0]
	marked := func(n *world.Node) { n.Deleting, n.Disruption = true, Expiration }
	two := cluster(nil, node("a", marked, pod("p", 3000, nil), pod("q", 1000, nil)))
	got, kept := Check(two, now, cmd, Options{})
	if len(kept) > 0 || len(got.Replace) != 1 || len(got.Replace[0].Pods) != 2 {
		t.Errorf("%+v %+v", got, kept)
	}
	roomy := cluster(nil, node("a", marked, pod("p", 3000, nil)), node("b", func(n *world.Node) { n.Created = now }))
	got, kept = Check(roomy, now, cmd, Options{})
	if len(kept) > 0 || len(got.Replace) != 0 || len(got.Moves) != 1 {
		t.Errorf("%+v %+v", got, kept)
	}
}

// Machines that can never go do not keep the others waiting for ever: looks begin
// with other machines in turn.
func TestLooksAreInTurn(t *testing.T) {
	stuck := func(p *world.Pod) {
		p.Selector = []label.Requirement{{Key: label.Zone, Op: label.In, Values: []string{"z"}}}
	}
	var nodes []world.Node
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		nodes = append(nodes, node(name, nil, pod("of-"+name, 1000, stuck)))
	}
	last := node("z", func(n *world.Node) { n.Created = t0.Add(time.Minute) }, pod("of-z", 1000, nil))
	s := cluster(nil, append(nodes, last)...)
	for look := range 4 {
		d := Decide(s, t0.Add(2*time.Hour+time.Duration(look)*looksApart*time.Second), Options{WhatIfs: 2})
		if len(d.Commands) == 1 && d.Commands[0].Remove[0].Node == "z" {
			return
		}
	}
	t.Error("z is never looked at")
}
