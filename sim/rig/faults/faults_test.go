package faults

import "testing"

// A sample of what `make faults` does.
func TestHistories(t *testing.T) {
	n := uint64(40)
	if testing.Short() {
		n = 5
	}
	for seed := range n {
		if r := Run(seed, "", false); len(r.Broken) > 0 {
			t.Errorf("seed %d: %q (%s)", seed, r.Broken, r.Story)
		}
	}
}
