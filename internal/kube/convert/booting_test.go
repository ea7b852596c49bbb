package convert

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

func TestBooting(t *testing.T) {
	size := func(name, family string, cpu int64) world.InstanceType {
		return world.InstanceType{Name: name, Labels: map[string]string{label.InstanceType: name, label.Arch: "amd64", "family": family},
			Capacity: quantity.Resources{MilliCPU: cpu}, Allocatable: quantity.Resources{MilliCPU: cpu - 100}}
	}
	catalog := world.Catalog{Types: []world.InstanceType{size("m5.large", "m5", 2000), size("m6.large", "m6", 2000), size("m6.xlarge", "m6", 4000)}}
	r := world.Record{
		Name: "test-x", Pool: "test", Labels: map[string]string{"intent": "apps"},
		Requirements: []label.Requirement{
			{Key: label.InstanceType, Op: label.In, Values: []string{"m6.large", "m6.xlarge"}},
			{Key: label.Zone, Op: label.In, Values: []string{"a"}},
		},
	}
	got := Booting(r, catalog)
	want := map[string]string{"intent": "apps", label.Zone: "a", label.Arch: "amd64", "family": "m6"}
	if diff := cmp.Diff(want, got.Labels); diff != "" {
		t.Errorf("labels that every option has: %s", diff)
	}
	if got.Allocatable.MilliCPU != 1900 || got.Capacity.MilliCPU != 2000 || got.Joined || got.Name != "test-x" || got.Claim != "test-x" || got.Pool != "test" {
		t.Errorf("the least of the options: %+v", got)
	}
	r.Allocatable, r.Capacity = quantity.Resources{MilliCPU: 3900}, quantity.Resources{MilliCPU: 4000}
	if got := Booting(r, catalog); got.Allocatable.MilliCPU != 3900 {
		t.Errorf("launched, it counts as what it was promised: %+v", got)
	}
}
