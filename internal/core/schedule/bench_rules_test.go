package schedule

import (
	"fmt"
	"testing"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

// BenchmarkStuck: many pods of many sizes that rules keep from any place.
func BenchmarkStuck(b *testing.B) {
	s := crowded(1500, 1000)
	for b.Loop() {
		Solve(s, Options{})
	}
}

// crowded is a world of nodes and pods, of which a third keep apart over zones
// and so, but for three, stay pending; a third must be one a host, and a third
// are spread over zones.
func crowded(pods, nodes int) *world.Snapshot {
	c := world.Catalog{}
	for i := range 100 {
		t := world.InstanceType{Name: fmt.Sprintf("t%03d", i), Labels: map[string]string{label.Arch: "amd64"}}
		t.Capacity = quantity.Resources{MilliCPU: int64(i+1) * 1000, MemoryBytes: int64(i+1) << 32, Pods: 100}
		t.Allocatable = t.Capacity
		for _, zone := range []string{"a", "b", "c"} {
			t.Offerings = append(t.Offerings, world.Offering{Zone: zone, CapacityType: label.OnDemand, Price: quantity.Price(50_000 * (i + 1)), Available: true})
		}
		c.Types = append(c.Types, t)
	}
	s := &world.Snapshot{Catalogs: map[world.CatalogKey]world.Catalog{"": c}, Policy: world.DefaultPolicy()}
	s.Pools = []world.Pool{{Name: "main", Labels: map[string]string{label.Provisioner: "main"}}}
	for i := range nodes {
		name := fmt.Sprintf("n%04d", i)
		s.Nodes = append(s.Nodes, world.Node{
			Name: name, Joined: true, Initialized: true, Labels: map[string]string{label.Hostname: name, label.Zone: []string{"a", "b", "c"}[i%3]},
			Allocatable: quantity.Resources{MilliCPU: 100, MemoryBytes: 1 << 30, Pods: 10},
		})
	}
	for i := range pods {
		app := []string{"stuck", "one", "spread"}[i%3]
		p := world.Pod{ObjectName: world.ObjectName{Namespace: "ns", Name: fmt.Sprintf("p%05d", i)}, Labels: map[string]string{"app": app}}
		p.Requests = quantity.Resources{MilliCPU: 200 + int64(i), MemoryBytes: 1 << 28, Pods: 1}
		only := world.LabelSelector{Requirements: []label.Requirement{{Key: "app", Op: label.In, Values: []string{app}}}}
		switch app {
		case "stuck":
			p.AntiAffinity = []world.PodTerm{{Key: label.Zone, Namespaces: []string{"ns"}, Selector: only}}
		case "one":
			p.AntiAffinity = []world.PodTerm{{Key: label.Hostname, Namespaces: []string{"ns"}, Selector: only}}
		default:
			p.Spread = []world.Spread{{Key: label.Zone, MaxSkew: 1, Selector: only}}
		}
		s.Pending = append(s.Pending, p)
	}
	return s
}

// Most pods that keep apart over zones find no place; that must not cost more
// than looking at each once.
func TestStuckPods(t *testing.T) {
	s := crowded(300, 30)
	plan := Solve(s, Options{})
	if faults := Check(s, &plan); len(faults) > 0 {
		t.Error(faults)
	}
	if len(plan.Unplaced) != 97 {
		t.Errorf("%d pods are pending, want all but three of the 100 that keep apart over zones", len(plan.Unplaced))
	}
}
