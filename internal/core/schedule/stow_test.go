package schedule

import (
	"fmt"
	"testing"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

// Pods with rules find their places one after the other. Where there is not room
// for all they leave gaps, so plain pods come first; where there is, they come
// first, for they can use fewer places.
func TestWhoComesFirstOnNodes(t *testing.T) {
	const text = `
		zones a b
		type large cpu=16 memory=64Gi od=0.8 label:kubernetes.io/arch=amd64
		pool main
		pod plain x2 cpu=2 memory=1Gi
		pod ruled cpu=3 memory=1Gi label:app=r spread:topology.kubernetes.io/zone/1/app=r
	`
	for cpu, want := range map[int]string{4: "plain plain", 5: "plain plain", 7: "plain plain ruled"} {
		s, err := parseWorld(text + fmt.Sprintf("node n1 cpu=%d memory=64Gi label:topology.kubernetes.io/zone=a", cpu))
		if err != nil {
			t.Fatal(err)
		}
		plan := Solve(s, Options{})
		got := ""
		for _, p := range plan.Placements {
			got += " " + p.Pod.Name[:5]
		}
		if got != " "+want || len(plan.Unplaced) > 0 {
			t.Errorf("%d cpu: on the node are%s, want %s", cpu, got, want)
		}
	}
}

// Work grows no faster than classes × offers, at the same number of pods.
func TestWorkByClassesAndTypes(t *testing.T) {
	const pods, most = 3200, 20
	for _, classes := range []int{20, 80, 320} {
		for _, types := range []int{25, 100, 400} {
			plan := Solve(variedWorld(pods, classes, types), Options{})
			st := plan.Stats
			if st.Classes != classes || st.Offers != 6*types || len(plan.Unplaced) > 0 {
				t.Fatalf("compiled to %+v, %d pods left out", st, len(plan.Unplaced))
			}
			if per := st.Evaluations / int64(st.Classes*st.Offers); per > most {
				t.Errorf("%d classes, %d types: %d evaluations per class and offer, want at most %d", classes, types, per, most)
			}
		}
	}
}

// variedWorld has so many pods of so many different sizes, and so many types of
// different shapes, each offered in three zones and two markets.
func variedWorld(pods, classes, types int) *world.Snapshot {
	d := newDice(3)
	s := &world.Snapshot{Catalogs: map[world.CatalogKey]world.Catalog{}, Pools: []world.Pool{{Name: "main"}}}
	var c world.Catalog
	for i := range types {
		cpu, memory := int64(2)<<d.IntN(6), one[int64](d, 2, 4, 8)
		t := world.InstanceType{Name: fmt.Sprintf("t%03d", i), Labels: map[string]string{label.Arch: one(d, "amd64", "arm64")}}
		t.Capacity = quantity.Resources{MilliCPU: cpu*1000 - d.Int64N(200), MemoryBytes: (cpu*memory<<10 - d.Int64N(900)) << 20, Pods: 10 + 8*cpu}
		t.Allocatable = t.Capacity
		for _, zone := range []string{"a", "b", "c"} {
			for j, market := range []string{label.OnDemand, label.Spot} {
				price := quantity.Price(cpu*(30_000+3_000*memory+d.Int64N(9000))) / quantity.Price(1+2*j)
				t.Offerings = append(t.Offerings, world.Offering{Zone: zone, CapacityType: market, Price: price, Available: true})
			}
		}
		c.Types = append(c.Types, t)
	}
	s.Catalogs[""] = c
	for i := range pods {
		kind := int64(i % classes)
		p := world.Pod{ObjectName: world.ObjectName{Name: fmt.Sprintf("p%06d", i)}}
		p.Requests = quantity.Resources{MilliCPU: 100 + 1500*kind/int64(classes), MemoryBytes: (1+kind*7%9)<<28 + kind<<20, Pods: 1}
		if kind%5 == 0 {
			p.Selector = []label.Requirement{{Key: label.CapacityType, Op: label.In, Values: []string{label.OnDemand}}}
		}
		s.Pending = append(s.Pending, p)
	}
	return s
}
