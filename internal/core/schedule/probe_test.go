package schedule

import (
	"fmt"
	"testing"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

// crowd is a cluster of nodes with four CPU each and pods of one CPU, and a
// pool that sells machines of two and eight CPU.
func crowd(nodes, podsOnEach int) *world.Snapshot {
	size := func(cpu int64) quantity.Resources {
		return quantity.Resources{MilliCPU: cpu * 1000, MemoryBytes: cpu << 32, Pods: 50}
	}
	s := &world.Snapshot{Pools: []world.Pool{{Name: "main", Catalog: "c"}}}
	for i := range nodes {
		n := world.Node{Name: fmt.Sprintf("n%05d", i), Claim: fmt.Sprintf("n%05d", i), Pool: "main", Initialized: true, Joined: true, Allocatable: size(4)}
		for j := range podsOnEach {
			n.Pods = append(n.Pods, world.Pod{ObjectName: world.ObjectName{Name: fmt.Sprintf("p%05d-%d", i, j)}, Node: n.Name,
				Requests: quantity.Resources{MilliCPU: 1000, MemoryBytes: 1 << 30, Pods: 1}})
		}
		s.Nodes = append(s.Nodes, n)
	}
	kind := func(name string, cpu int64) world.InstanceType {
		offer := func(market string, share quantity.Price) world.Offering {
			return world.Offering{Zone: "a", CapacityType: market, Price: quantity.Price(cpu) * share, Available: true}
		}
		return world.InstanceType{Name: name, Labels: map[string]string{label.InstanceType: name}, Capacity: size(cpu), Allocatable: size(cpu),
			Offerings: []world.Offering{offer(label.OnDemand, 50_000), offer(label.Spot, 20_000)}}
	}
	s.Catalogs = map[world.CatalogKey]world.Catalog{"c": {Types: []world.InstanceType{kind("large", 2), kind("2xlarge", 8)}}}
	return s
}

func TestProbe(t *testing.T) {
	p := NewProbe(crowd(3, 2), []string{"n00002", "n00001", "n00000"})
	expect := func(what string, homeless int, below quantity.Price, spot bool, price quantity.Price) {
		t.Helper()
		got, ok := p.Cheapest(below, spot)
		if p.Homeless() != homeless || ok != (price > 0) || ok && got != price {
			t.Errorf("%s: %d homeless, cheapest %v %v; want %d and %v", what, p.Homeless(), got, ok, homeless, price)
		}
	}
	start := p.Mark()
	p.Leave("n00000")
	expect("one goes, its pods fill the last", 0, 1, true, 0)
	if p.Leave("n00002") || p.Leave("n00000") || p.Leave("nobody") {
		t.Error("a machine to which pods have moved, one that is gone, or an unknown one may go")
	}
	one := p.Mark()
	p.Leave("n00001")
	expect("two go", 2, 200_000, true, 40_000)
	expect("two go, and spot is not wanted", 2, 200_000, false, 100_000)
	expect("nothing is as cheap", 2, 40_000, true, 0)
	if n := p.SpotTypes(200_000); n != 2 {
		t.Errorf("%d spot types", n)
	}
	p.Undo(one)
	expect("one is back", 0, 1, true, 0)
	p.Undo(start)
	if !p.Leave("n00002") || p.Homeless() != 0 {
		t.Error("after all is undone the last may go")
	}
}

// A machine that goes costs work for its own pods, not for the size of the
// cluster.
func TestProbeWorkFollowsThePodsThatMove(t *testing.T) {
	work := func(nodes int) int64 {
		p := NewProbe(crowd(nodes, 4), nil)
		before := p.Evaluations()
		for i := range 100 {
			mark := p.Mark()
			p.Leave(fmt.Sprintf("n%05d", i))
			p.Cheapest(1, true)
			p.Undo(mark)
		}
		return p.Evaluations() - before
	}
	if small, large := work(500), work(5000); large > small*10/5 && large > 100*100 {
		t.Errorf("100 machines took %d steps among 500, and %d among 5,000", small, large)
	}
}
