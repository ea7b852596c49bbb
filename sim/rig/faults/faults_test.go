package faults

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"karpenter/sim/rig"
)

// sample is how much of something is tried: less with the race detector, which
// makes everything many times slower, and looks for another kind of fault.
func sample(usual, raced int) int {
	if raceDetector {
		return raced
	}
	return usual
}

// A sample of what `make faults` does.
func TestHistories(t *testing.T) {
	n := uint64(25)
	if testing.Short() {
		n = uint64(sample(5, 2))
	}
	for seed := range n {
		if r := Run(seed, "", false); len(r.Broken) > 0 {
			t.Errorf("seed %d: %q (%s)", seed, r.Broken, r.Story)
		}
	}
}

func TestTheSameSeedGivesTheSameHistory(t *testing.T) {
	for _, seed := range []uint64{2, 9}[:sample(2, 1)] {
		a, b := Run(seed, "", true), Run(seed, "", true)
		for i := range max(len(a.Timeline), len(b.Timeline)) {
			if i >= len(a.Timeline) || i >= len(b.Timeline) || a.Timeline[i] != b.Timeline[i] {
				t.Fatalf("seed %d: the histories part at line %d: %q", seed, i, a.Timeline[min(i, len(a.Timeline)-1)])
			}
		}
	}
}

// What is planted is found: the rules can be broken.
func TestPlantedFaultsAreFound(t *testing.T) {
	for _, plant := range rig.Plants()[:sample(len(rig.Plants()), 1)] {
		found := false
		for seed := uint64(1000); seed < 1200 && !found; seed++ {
			found = len(Run(seed, plant, false).Broken) > 0
		}
		if !found {
			t.Errorf("%s: 200 histories broke no rule", plant)
		}
	}
}

// Every call of the main scenarios is a point at which the process may die.
func TestCrashPoints(t *testing.T) {
	for _, s := range Scenarios() {
		broken, calls := Crash(s, 0, false)
		if len(broken) > 0 || calls == 0 {
			t.Fatalf("%s, without a crash: %q after %d calls", s, broken, calls)
		}
		step := 11 // `make faults` takes all of them
		if testing.Short() {
			step = sample(50, 300)
		}
		for n := 1; n <= calls; n += step {
			for _, after := range []bool{false, true} {
				if broken, _ := Crash(s, n, after); len(broken) > 0 {
					t.Errorf("%s, call %d of %d, after %v: %q", s, n, calls, after, broken)
				}
			}
		}
		t.Logf("%s: %d calls", s, calls)
	}
}

// Histories of every kind are drawn: each kind of pool, and everything that
// people and the cloud do.
func TestHistoriesAreOfEveryKind(t *testing.T) {
	kinds := map[string]int{}
	for seed := range uint64(100) {
		s := draw(rand.New(rand.NewPCG(seed, 0x7368617065)))
		for what, is := range map[string]bool{"nodepool": s.NodePool, "provisioner": !s.NodePool, "spot with queue": s.Spot && s.Queue, "expiry": s.NodePool && s.Expire > 0,
			"deadline": s.NodePool && s.Grace > 0, "budgets": s.NodePool && len(s.Budgets) > 1, "drift of provisioners": !s.NodePool && s.Drift} {
			if is {
				kinds[what]++
			}
		}
	}
	for what, n := range kinds {
		if n < 10 {
			t.Errorf("%s: %d of 100", what, n)
		}
	}
	if len(kinds) != 7 {
		t.Errorf("got %v", kinds)
	}
}

// A pod that nobody gives a place is found while the history runs.
func TestPodsThatWaitTooLongAreFound(t *testing.T) {
	w := newWorld(1, "", shape{})
	w.chaos = newChaos(w)
	w.deploy("app", 1, 500, false, false)           // and no controller runs
	w.At(start.Add(soon+30*time.Second), func() {}) // something happens
	w.Run(start.Add(soon + time.Minute))
	if len(w.rules.Broken) != 1 || !strings.Contains(w.rules.Broken[0], "pod app-0 has been waiting") {
		t.Errorf("got %q", w.rules.Broken)
	}
}
