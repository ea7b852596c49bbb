package schedule

import (
	"fmt"
	"testing"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

// manyPools has 20 pools with labels of their own, 2,000 nodes that are nearly
// full, and 5,000 pods of 1,000 sizes, a third of them impossible.
func manyPools() *world.Snapshot {
	s := largeWorld(0)
	d := newDice(2)
	s.Pools = nil
	for i := range 20 {
		p := world.Pool{Name: fmt.Sprintf("pool-%02d", i), Weight: int32(i % 5), Labels: map[string]string{"team": fmt.Sprint(i)}}
		p.Requirements = []label.Requirement{{Key: label.Arch, Op: label.In, Values: []string{one(d, "amd64", "arm64")}}}
		if i%4 == 0 {
			p.Taints = []world.Taint{{Key: "own", Value: fmt.Sprint(i), Effect: world.NoSchedule}}
		}
		s.Pools = append(s.Pools, p)
	}
	for i := range 2000 {
		n := world.Node{Name: fmt.Sprintf("n%04d", i), Joined: true, Initialized: true, Labels: map[string]string{"team": fmt.Sprint(i % 20), label.Arch: "amd64"}}
		n.Allocatable = quantity.Resources{MilliCPU: 1000 + d.Int64N(4000), MemoryBytes: 16 << 30, Pods: 30}
		s.Nodes = append(s.Nodes, n)
	}
	for i := range 5000 {
		p := world.Pod{ObjectName: world.ObjectName{Name: fmt.Sprintf("p%05d", i)}}
		kind := int64(i % 1000)
		p.Requests = quantity.Resources{MilliCPU: 100 + 3*kind, MemoryBytes: (1 + kind%7) << 29, Pods: 1}
		p.Selector = []label.Requirement{{Key: "team", Op: label.In, Values: []string{fmt.Sprint(kind % 25)}}}
		switch i % 9 {
		case 0:
			p.Selector[0].Values[0] = "nobody"
		case 1:
			p.Requests.MilliCPU = 100_000
		case 2:
			p.Selector = append(p.Selector, label.Requirement{Key: label.Arch, Op: label.In, Values: []string{"riscv"}})
		}
		s.Pending = append(s.Pending, p)
	}
	return s
}

func BenchmarkManyPools(b *testing.B) {
	s := manyPools()
	for b.Loop() {
		Solve(s, Options{})
	}
}

func BenchmarkManyPods(b *testing.B) {
	for _, pods := range []int{1_000, 10_000, 100_000} {
		s := largeWorld(pods)
		b.Run(fmt.Sprint(pods), func(b *testing.B) {
			for b.Loop() {
				Solve(s, Options{})
			}
		})
	}
}
