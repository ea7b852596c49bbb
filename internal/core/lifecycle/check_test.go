package lifecycle

import (
	"slices"
	"testing"
	"time"

	"karpenter/internal/core/quantity"
)

// TestMachinesThatAreNotAsTheyShouldBeAreToldOf, and nothing is done about them.
func TestMachinesThatAreNotAsTheyShouldBeAreToldOf(t *testing.T) {
	has := func(milli, gpus int64) func(*Input) {
		return func(in *Input) {
			in.Record.Allocatable = quantity.Of(quantity.Amount{Name: quantity.CPU, Value: 4000}, quantity.Amount{Name: "nvidia.com/gpu", Value: 1})
			in.Nodes[0].Allocatable = quantity.Of(quantity.Amount{Name: quantity.CPU, Value: milli}, quantity.Amount{Name: "nvidia.com/gpu", Value: gpus})
		}
	}
	unready := func(age time.Duration) func(*Input) {
		return func(in *Input) {
			delete(in.Nodes[0].Labels, "karpenter.sh/initialized")
			in.Nodes[0].Ready, in.Record.Created = false, ago(age)
		}
	}
	for name, c := range map[string]struct {
		in   Input
		want []string
	}{
		"as promised":           {running(has(4000, 1)), nil},
		"a little less":         {running(has(3600, 1)), nil},
		"less than nine tenths": {running(has(2000, 1)), []string{"the node offers 50% of the cpu that its instance type promises"}},
		"nothing of it":         {running(has(4000, 0)), []string{"resource nvidia.com/gpu is promised by the instance type, and the node does not offer any"}},
		"booting":               {running(unready(59 * time.Minute)), nil},
		"booting for an hour":   {running(unready(time.Hour)), []string{"not usable an hour after it was bought: condition Ready of Node \"node-1\" is not True"}},
	} {
		var got []string
		s := Next(c.in)
		for _, e := range s.Events {
			if e.Reason == "FailedInflightCheck" && e.Warning {
				got = append(got, e.Message)
			}
		}
		if !slices.Equal(got, c.want) || s.Delete != "" {
			t.Errorf("%s: %q, want %q; deleted: %q", name, got, c.want, s.Delete)
		}
	}
}
