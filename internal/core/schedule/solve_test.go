package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

// largeWorld has 10 classes of pods, a node for every 100 pods and 600 offers.
func largeWorld(pods int) *world.Snapshot {
	d := newDice(1)
	s := &world.Snapshot{Catalogs: map[world.CatalogKey]world.Catalog{}, Policy: world.DefaultPolicy()}
	var c world.Catalog
	for i := range 100 {
		cpu := int64(1 + i%32)
		t := world.InstanceType{Name: fmt.Sprintf("t%03d", i), Labels: map[string]string{label.Arch: one(d, "amd64", "arm64")}}
		t.Capacity = quantity.Resources{MilliCPU: cpu * 1000, MemoryBytes: cpu * one[int64](d, 2, 4, 8) << 30, Pods: 10 + 8*cpu}
		t.Allocatable = t.Capacity
		for _, zone := range []string{"a", "b", "c"} {
			for i, market := range []string{label.OnDemand, label.Spot} {
				price := quantity.Price(cpu*40_000+d.Int64N(9000)) / quantity.Price(1+2*i)
				t.Offerings = append(t.Offerings, world.Offering{Zone: zone, CapacityType: market, Price: price, Available: true})
			}
		}
		c.Types = append(c.Types, t)
	}
	s.Catalogs[""] = c
	s.Pools = []world.Pool{{Name: "main"}}
	for i := range pods / 100 {
		s.Nodes = append(s.Nodes, world.Node{Name: fmt.Sprintf("n%04d", i), Joined: true, Initialized: true, Allocatable: quantity.Resources{MilliCPU: 1000, MemoryBytes: 4 << 30, Pods: 10}})
	}
	for i := range pods {
		p := world.Pod{ObjectName: world.ObjectName{Name: fmt.Sprintf("p%06d", i)}}
		kind := int64(i % 10)
		p.Requests = quantity.Resources{MilliCPU: 100 + 170*kind, MemoryBytes: (1 + kind*7%9) << 28, Pods: 1}
		if kind < 3 {
			p.Selector = []label.Requirement{{Key: label.CapacityType, Op: label.In, Values: []string{label.OnDemand}}}
		}
		s.Pending = append(s.Pending, p)
	}
	return s
}

// The work depends on classes, nodes and offers, hardly on the number of pods.
func TestWork(t *testing.T) {
	work := func(pods int) Stats {
		s := largeWorld(pods)
		plan := Solve(s, Options{})
		if len(plan.Unplaced) > 0 {
			t.Fatalf("%d pods left out", len(plan.Unplaced))
		}
		return plan.Stats
	}
	few, many := work(1000), work(20000)
	if few.Classes != 10 || few.Profiles != 2 || few.Offers != 600 {
		t.Errorf("compiled to %+v", few)
	}
	if most := int64(100 * few.Classes * few.Offers); few.Evaluations > most {
		t.Errorf("%d evaluations, want at most %d", few.Evaluations, most)
	}
	if many.Evaluations > 3*few.Evaluations {
		t.Errorf("20 times the pods took %d evaluations instead of %d", many.Evaluations, few.Evaluations)
	}
}

// What is bought stays near what the pods would cost if machines could be
// bought in fractions.
func TestPriceNearBound(t *testing.T) {
	s := largeWorld(5000)
	s.Nodes, s.Policy = nil, world.Policy{}
	p := compile(s, Options{MaxOptions: 1})
	p.appraise()
	bound := 0.0
	for _, c := range p.classes {
		bound += c.value * float64(c.left())
	}
	plan := Solve(s, Options{})
	if ratio := float64(plan.Price()) / bound; ratio < 1 || ratio > 1.03 {
		t.Errorf("price %s is %.4f of the bound", plan.Price(), ratio)
	}
}

func TestWithoutMovesPods(t *testing.T) {
	s, err := parseWorld(`
node a foreign cpu=2
node b foreign cpu=2
pod web on=a cpu=1
pod agent on=a cpu=1 owner=DaemonSet/agent
`)
	if err != nil {
		t.Fatal(err)
	}
	if plan := Solve(s, Options{}); len(plan.Placements) != 0 {
		t.Errorf("nothing is pending, but %v", plan.Placements)
	}
	plan := Solve(s.Without("a"), Options{})
	want := []Placement{{Pod: world.ObjectName{Namespace: "default", Name: "web"}, Node: "b"}}
	if !slices.Equal(plan.Placements, want) {
		t.Errorf("placements %v, want %v", plan.Placements, want)
	}
	if s.Nodes[0].Deleting {
		t.Error("the snapshot was changed")
	}
}

func TestEmptySnapshot(t *testing.T) {
	plan := Solve(&world.Snapshot{}, Options{})
	if got := plan.Text(); got != "0 machines, $0.0000/h; 0 pods placed, 0 pending\n" {
		t.Error(got)
	}
}

func TestUnknownPriceIsLastResort(t *testing.T) {
	s, err := parseWorld(`
zones a
type dear cpu=4 memory=8Gi od=9
type odd cpu=4 memory=8Gi od=1
type odd-large cpu=64 memory=8Gi od=1
pool main
pod web cpu=1
pod large cpu=32
`)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{1, 2} {
		s.Catalogs[""].Types[i].Offerings[0].Price = quantity.PriceUnknown
	}
	plan := Solve(s, Options{})
	for _, fault := range Check(s, &plan) {
		t.Error(fault)
	}
	if len(plan.Machines) != 2 || plan.Machines[0].Options[0].Type != "dear" || plan.Machines[1].Options[0].Type != "odd-large" || plan.Price() != quantity.PriceUnknown {
		t.Error(plan.Text())
	}
}

// TestCheckFindsFaults spoils a legal plan in many ways.
func TestCheckFindsFaults(t *testing.T) {
	s, err := parseWorld(`
zones a b
type small cpu=2 memory=4Gi od=1 spot=0.4
type large cpu=4 memory=8Gi od=2 spot=0.8
pool first weight=2 require:karpenter.sh/capacity-type,In,on-demand limit:cpu=4
pool second
node n foreign cpu=1
pod a x2 cpu=1500m select:karpenter.sh/provisioner-name=first
pod b cpu=3 select:karpenter.sh/provisioner-name=second
pod c cpu=1
pod d cpu=9
`)
	if err != nil {
		t.Fatal(err)
	}
	name := func(n string) world.ObjectName { return world.ObjectName{Namespace: "default", Name: n} }
	for what, c := range map[string]struct {
		spoil func(p *Plan)
		want  string
	}{
		"nothing":       {func(*Plan) {}, ""},
		"lost":          {func(p *Plan) { p.Unplaced = nil }, "pod default/d is lost"},
		"twice":         {func(p *Plan) { p.Placements = append(p.Placements, p.Placements[0]) }, "is at node n and at node n"},
		"no room":       {func(p *Plan) { p.Placements = append(p.Placements, Placement{Pod: name("d"), Node: "n"}) }, "node n has no room"},
		"unknown pod":   {func(p *Plan) { p.Placements[0].Pod.Name = "x" }, "unknown pod"},
		"wrong pool":    {func(p *Plan) { p.Machines[0].Pool, p.Machines[1].Pool = "second", "first" }, "breaks the pool's requirement"},
		"too small":     {func(p *Plan) { p.Machines[0].Options[0] = Option{"small", "a", label.OnDemand, 1_000_000} }, "too full"},
		"price":         {func(p *Plan) { p.Machines[0].Price++ }, "not the price"},
		"no reason":     {func(p *Plan) { p.Unplaced[0].Reasons = nil }, "without a reason"},
		"no option":     {func(p *Plan) { p.Machines[0].Options[0].Price++ }, "not in the catalogue"},
		"open for more": {func(p *Plan) { p.Machines[0].Requirements = nil }, "as small"},
		"limit":         {func(p *Plan) { p.Machines = append(p.Machines, p.Machines[0]) }, "exceeds the limit"},
		"left for nobody": {func(p *Plan) {
			p.Unplaced = append(p.Unplaced, Unplaced{name("c"), p.Unplaced[0].Reasons})
			p.Placements = nil
		}, "a node has room"},
	} {
		plan := Solve(s, Options{})
		for i := range plan.Machines {
			plan.Machines[i].Options = slices.Clone(plan.Machines[i].Options)
		}
		c.spoil(&plan)
		faults := strings.Join(Check(s, &plan), "\n")
		if c.want == "" && faults != "" || !strings.Contains(faults, c.want) {
			t.Errorf("%s: want %q in\n%s\n%s", what, c.want, faults, plan.Text())
		}
	}
}

// sortPods is comparePods, only quicker.
func TestSortPods(t *testing.T) {
	d := newDice(5)
	var pods []*world.Pod
	for i := range 300 {
		p := &world.Pod{ObjectName: world.ObjectName{Name: fmt.Sprint(i)}, UID: one(d, "", "a", "abcdefgh", "abcdefgh-1", "abcdefgh-2", "b\x00", "b")}
		p.Priority = one[int32](d, 0, -5, 1<<30)
		p.Requests = quantity.Resources{MilliCPU: d.Int64N(2), MemoryBytes: d.Int64N(2)}
		p.Created = one(d, time.Time{}, time.Unix(5, 1), time.Unix(5, 2), time.Unix(-5, 0))
		pods = append(pods, p)
	}
	want := slices.Clone(pods)
	slices.SortFunc(want, comparePods)
	mix(d, pods)
	if sortPods(pods); !slices.Equal(pods, want) {
		t.Error("not in the order of comparePods")
	}
}
