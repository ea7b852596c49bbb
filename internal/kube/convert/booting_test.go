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
			Capacity: quantity.Resources{MilliCPU: cpu}, Allocatable: quantity.Resources{MilliCPU: cpu - 100},
			AttachLimits: []quantity.Amount{{Name: "ebs", Value: cpu / 100}},
			Offerings:    []world.Offering{{Zone: "a", CapacityType: "spot"}, {Zone: "b", CapacityType: "on-demand"}, {Zone: "c", CapacityType: "on-demand"}}}
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
	want := map[string]string{"intent": "apps", label.Zone: "a", label.CapacityType: "spot", label.Arch: "amd64", "family": "m6"}
	if diff := cmp.Diff(want, got.Labels); diff != "" {
		t.Errorf("labels that every option has: %s", diff)
	}
	if got.Allocatable.MilliCPU != 1900 || got.Capacity.MilliCPU != 2000 || got.Joined || got.Name != "test-x" || got.Claim != "test-x" || got.Pool != "test" {
		t.Errorf("the least of the options: %+v", got)
	}
	choices := []world.Choice{{Key: label.InstanceType, Values: []string{"m6.large", "m6.xlarge"}}}
	if diff := cmp.Diff(choices, got.Choices); diff != "" {
		t.Errorf("labels that are open: %s", diff)
	}
	if diff := cmp.Diff([]quantity.Amount{{Name: "ebs", Value: 20}}, got.AttachLimits); diff != "" {
		t.Errorf("the least volumes: %s", diff)
	}
	r.Allocatable, r.Capacity = quantity.Resources{MilliCPU: 3900}, quantity.Resources{MilliCPU: 4000}
	if got := Booting(r, catalog); got.Allocatable.MilliCPU != 3900 {
		t.Errorf("launched, it counts as what it was promised: %+v", got)
	}
}

func TestBootingLeavesOpenWhatIsOpen(t *testing.T) {
	catalog := world.Catalog{Types: []world.InstanceType{
		{Name: "plain", Labels: map[string]string{label.InstanceType: "plain"}, Offerings: []world.Offering{{Zone: "a", CapacityType: "spot"}}},
		{Name: "gpu", Labels: map[string]string{label.InstanceType: "gpu", "gpu": "t4"}, Offerings: []world.Offering{{Zone: "a", CapacityType: "spot"}, {Zone: "b", CapacityType: "spot"}}},
	}}
	r := world.Record{Name: "x", Requirements: []label.Requirement{{Key: "team", Op: label.In, Values: []string{"r", "b"}}, {Key: label.CapacityType, Op: label.Exists}}}
	got := Booting(r, catalog)
	want := []world.Choice{
		{Key: "gpu", Values: []string{"t4"}, Absent: true},
		{Key: label.InstanceType, Values: []string{"gpu", "plain"}},
		{Key: "team", Values: []string{"b", "r"}},
		{Key: label.Zone, Values: []string{"a", "b"}},
	}
	if diff := cmp.Diff(want, got.Choices); diff != "" {
		t.Error(diff)
	}
	r.Labels = map[string]string{label.InstanceType: "plain", label.Zone: "a"}
	if got := Booting(r, catalog); len(got.Choices) != 1 || got.Choices[0].Key != "team" {
		t.Errorf("launched, its type and place are decided: %+v", got.Choices)
	}
}

func TestPromisedLimits(t *testing.T) {
	told := []quantity.Amount{{Name: "b", Value: 5}}
	options := []*world.InstanceType{{AttachLimits: []quantity.Amount{{Name: "a", Value: 9}, {Name: "b", Value: 1}}}, {AttachLimits: []quantity.Amount{{Name: "a", Value: 7}}}}
	if diff := cmp.Diff([]quantity.Amount{{Name: "a", Value: 7}, {Name: "b", Value: 5}}, PromisedLimits(told, options)); diff != "" {
		t.Error(diff)
	}
}
