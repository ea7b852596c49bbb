package faults

import (
	"testing"
	"time"
)

// The day as a whole is measured by sim/rig/cmd/day.
func TestAnHourOfADay(t *testing.T) {
	for _, consolidate := range []bool{false, true} {
		r := Day{Nodes: 20, For: 100 * time.Minute, Seed: 1, Consolidate: consolidate}.Play()
		if len(r.Broken) > 0 || r.Running < 18 || r.Nodes != r.Running || r.Launches < 20 {
			t.Errorf("consolidate %v: %d pods run on %d nodes, %d machines were started: %q", consolidate, r.Running, r.Nodes, r.Launches, r.Broken)
		}
	}
}
