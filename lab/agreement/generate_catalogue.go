package agreement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

// family is a family of invented instance types that are shaped like real ones.
type family struct {
	name, category, generation, arch string
	gibPerCPU                        int64
	microUSDPerCPU                   int64
	gpu                              string
	nvmeGB                           int64
}

var families = []family{
	{"m5", "m", "5", "amd64", 4, 48_000, "", 0},
	{"c6a", "c", "6", "amd64", 2, 38_000, "", 0},
	{"r5", "r", "5", "amd64", 8, 63_000, "", 0},
	{"t3", "t", "3", "amd64", 4, 42_000, "", 0},
	{"m6g", "m", "6", "arm64", 4, 39_000, "", 0},
	{"g4dn", "g", "4", "amd64", 4, 130_000, "t4", 125},
}

var sizes = []struct {
	name string
	cpu  int64
	pods int64
}{{"large", 2, 29}, {"xlarge", 4, 58}, {"2xlarge", 8, 58}, {"4xlarge", 16, 234}}

// catalogue takes some types of some families, sold in some zones.
func catalogue(d *draft) {
	for _, f := range some(d, families, 4) {
		for i := range sizes {
			if d.chance(0.6) || i == 1 {
				d.Types = append(d.Types, d.instanceType(f, i))
			}
		}
	}
	slices.SortFunc(d.Types, func(a, b world.InstanceType) int { return strings.Compare(a.Name, b.Name) })
}

func (d *draft) instanceType(f family, size int) world.InstanceType {
	s := sizes[size]
	memory := s.cpu * f.gibPerCPU << 30
	t := world.InstanceType{
		Name: f.name + "." + s.name,
		Labels: map[string]string{
			label.InstanceType: f.name + "." + s.name, label.Arch: f.arch, label.OS: "linux", label.Region: d.Region,
			aws + "instance-category": f.category, aws + "instance-family": f.name, aws + "instance-generation": f.generation, aws + "instance-size": s.name,
			aws + "instance-cpu": fmt.Sprint(s.cpu), aws + "instance-memory": fmt.Sprint(memory >> 20),
		},
		Capacity: quantity.Resources{MilliCPU: s.cpu * 1000, MemoryBytes: memory - memory/40, EphemeralBytes: 20 << 30, Pods: s.pods},
	}
	if d.chance(0.15) {
		t.Capacity.Pods = int64(d.between(3, 8))
	}
	if f.nvmeGB > 0 {
		t.Labels[aws+"instance-local-nvme"] = fmt.Sprint(f.nvmeGB * s.cpu / 4)
	}
	if f.gpu != "" {
		t.Labels[aws+"instance-gpu-name"] = f.gpu
		t.Capacity = t.Capacity.With("nvidia.com/gpu", max(1, s.cpu/4))
	}
	if d.chance(0.1) {
		t.Capacity = t.Capacity.With("hugepages-2Mi", 64<<20)
	}
	t.Allocatable = t.Capacity
	t.Allocatable.MilliCPU -= 60 + 10*s.cpu
	t.Allocatable.MemoryBytes -= 255<<20 + 11*s.pods<<20 + 100<<20
	t.Allocatable.EphemeralBytes -= 3 << 30
	price := quantity.Price(s.cpu * f.microUSDPerCPU)
	for _, zone := range some(d, []string{"us-west-2a", "us-west-2b", "us-west-2c"}, 3) {
		for _, market := range []string{label.OnDemand, label.Spot} {
			o := world.Offering{Zone: zone, CapacityType: market, Price: price, Available: d.chance(0.85)}
			if market == label.Spot {
				o.Price = price * quantity.Price(d.between(25, 60)) / 100
			}
			if d.chance(0.03) {
				o.Price = quantity.PriceUnknown
			}
			t.Offerings = append(t.Offerings, o)
		}
	}
	slices.SortFunc(t.Offerings, func(a, b world.Offering) int {
		return cmp.Or(strings.Compare(a.Zone, b.Zone), strings.Compare(a.CapacityType, b.CapacityType))
	})
	return t
}
