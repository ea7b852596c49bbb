package lifecycle

import (
	"testing"
	"time"

	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
)

func TestDrift(t *testing.T) {
	base := func() DriftInput {
		labels := map[string]string{label.InstanceType: "m5.large", label.Zone: "a", label.CapacityType: label.OnDemand, "team": "a"}
		return DriftInput{
			Now: noon, Record: world.Record{Created: ago(2 * time.Hour), Labels: labels, Launched: yes(ago(2 * time.Hour))},
			Pool:  &world.Pool{Requirements: []label.Requirement{{Key: "team", Op: label.In, Values: []string{"a", "b"}}}},
			Types: []world.InstanceType{{Name: "m5.large", Offerings: []world.Offering{{Zone: "a", CapacityType: label.OnDemand}}}},
		}
	}
	gone := func(in *DriftInput) { in.Types[0].Name = "m6.large" }
	narrow := func(in *DriftInput) { in.Pool.Requirements[0].Values = []string{"b"} }
	all := func(in *DriftInput) {
		in.PoolChanged, in.ClassChanged, in.Provider = true, true, "AMIDrift"
		gone(in)
		narrow(in)
	}
	for name, c := range map[string]struct {
		change []func(*DriftInput)
		want   string
	}{
		"as it would be bought": {nil, ""},
		"everything differs":    {[]func(*DriftInput){all}, PoolDrifted},
		"all but the template":  {[]func(*DriftInput){all, func(in *DriftInput) { in.PoolChanged = false }}, RequirementsDrifted},
		"a label is asked for that it lacks": {[]func(*DriftInput){func(in *DriftInput) {
			in.Pool.Requirements = append(in.Pool.Requirements, label.Requirement{Key: "disk", Op: label.Exists})
		}}, RequirementsDrifted},
		"more is allowed":                     {[]func(*DriftInput){func(in *DriftInput) { in.Pool.Requirements = nil }}, ""},
		"the type is not sold any more":       {[]func(*DriftInput){gone}, InstanceTypeNotFound},
		"the type is not sold there any more": {[]func(*DriftInput){func(in *DriftInput) { in.Types[0].Offerings[0].Zone = "b" }}, InstanceTypeNotFound},
		"there is no catalogue":               {[]func(*DriftInput){func(in *DriftInput) { in.Types = nil }}, ""},
		"too new for its type to matter":      {[]func(*DriftInput){gone, func(in *DriftInput) { in.Record.Created = ago(59 * time.Minute) }}, ""},
		"the class has changed":               {[]func(*DriftInput){func(in *DriftInput) { in.ClassChanged, in.Provider = true, "AMIDrift" }}, ClassDrifted},
		"another image":                       {[]func(*DriftInput){func(in *DriftInput) { in.Provider = "AMIDrift" }}, "AMIDrift"},
		"v1alpha5: only the image":            {[]func(*DriftInput){all, func(in *DriftInput) { in.ImageOnly = true }}, "AMIDrift"},
		"v1alpha5: the same image":            {[]func(*DriftInput){all, func(in *DriftInput) { in.ImageOnly, in.Provider = true, "" }}, ""},
		"v1alpha5: a person says so":          {[]func(*DriftInput){func(in *DriftInput) { in.ImageOnly, in.Annotated = true, true }}, DriftAnnotated},
		"not launched":                        {[]func(*DriftInput){all, func(in *DriftInput) { in.Record.Launched = world.Condition{} }}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := base()
			for _, change := range c.change {
				change(&in)
			}
			got := Drift(in)
			if got.Type != Drifted || got.Reason != c.want || (got.Status == True) != (c.want != "") {
				t.Errorf("got %+v, want %q", got, c.want)
			}
		})
	}
}
