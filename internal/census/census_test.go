package census

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

// big is a cluster of n nodes with ten pods each, of one pool, and a catalogue of
// 700 types in three zones.
func big(n int) *world.Snapshot {
	s := &world.Snapshot{Pools: []world.Pool{{Name: "main", Kind: "NodePool", Catalog: "c"}}, Catalogs: map[world.CatalogKey]world.Catalog{}}
	var c world.Catalog
	for i := range 700 {
		t := world.InstanceType{Name: fmt.Sprintf("m%d.large", i), Capacity: quantity.Of(quantity.Amount{Name: quantity.CPU, Value: 2000})}
		for _, z := range []string{"a", "b", "c"} {
			for _, market := range []string{"on-demand", "spot"} {
				t.Offerings = append(t.Offerings, world.Offering{Zone: z, CapacityType: market, Price: 1000, Available: true})
			}
		}
		c.Types = append(c.Types, t)
	}
	s.Catalogs["c"] = c
	for i := range n {
		node := world.Node{Name: fmt.Sprintf("node-%d", i), Claim: "c", Pool: "main", PoolKind: "NodePool", ProviderID: "aws:///a/i", Initialized: true,
			Labels:      map[string]string{label.InstanceType: fmt.Sprintf("m%d.large", i%700), label.Zone: "b", label.CapacityType: "spot"},
			Allocatable: quantity.Of(quantity.Amount{Name: quantity.CPU, Value: 2000}), Capacity: quantity.Of(quantity.Amount{Name: quantity.CPU, Value: 2000})}
		for k := range 10 {
			node.Pods = append(node.Pods, world.Pod{ObjectName: world.ObjectName{Namespace: "default", Name: fmt.Sprintf("pod-%d-%d", i, k)}, Node: node.Name,
				Requests: quantity.Of(quantity.Amount{Name: quantity.CPU, Value: 100})})
		}
		s.Nodes = append(s.Nodes, node)
	}
	return s
}

// TestPricesAreThoseOfTheCatalogue of the node's pool; what has no price is told
// apart.
func TestPricesAreThoseOfTheCatalogue(t *testing.T) {
	s := big(3)
	s.Nodes[1].Labels[label.Zone] = "elsewhere"
	s.Nodes[2].Pool, s.Nodes[2].PoolKind, s.Nodes[2].Claim = "", "", "" // not ours
	reg := prometheus.NewRegistry()
	reg.MustRegister(&Census{Last: func() *world.Snapshot { return s }})
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			got[f.GetName()] += m.GetGauge().GetValue()
		}
	}
	if got["karpenter_nodes_price_per_hour"] != .001 || got["karpenter_nodes_without_price"] != 1 || got["karpenter_cluster_state_nodes"] != 3 || got["karpenter_cluster_utilization_ratio"] != .5 {
		t.Errorf("%v", got)
	}
}

// TestAPodIsCountedOnce that waits and for which room is kept on a node.
func TestAPodIsCountedOnce(t *testing.T) {
	s := big(1)
	s.Pending = []world.Pod{s.Nodes[0].Pods[0]}
	reg := prometheus.NewRegistry()
	reg.MustRegister(&Census{Last: func() *world.Snapshot { return s }, PerObject: true})
	if _, err := reg.Gather(); err != nil {
		t.Error(err)
	}
}

func BenchmarkScrape(b *testing.B) {
	for _, per := range []bool{false, true} {
		b.Run(fmt.Sprintf("nodes=5000/perObject=%v", per), func(b *testing.B) {
			s := big(5000)
			reg := prometheus.NewRegistry()
			reg.MustRegister(&Census{Last: func() *world.Snapshot { return s }, PerObject: per})
			b.ReportAllocs()
			for b.Loop() {
				if _, err := reg.Gather(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
