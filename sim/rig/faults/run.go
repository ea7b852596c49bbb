package faults

import (
	"fmt"
	"math/rand/v2"
	"time"

	"karpenter/sim/rig"
)

// Lengths of a history.
const (
	troubled = 25 * time.Minute
	calm     = runsWithin + 15*time.Minute
	// It may be about to save money when that is over; it is looked at again then.
	looks = 4
	pause = 15 * time.Minute
)

// Result is what came of one history.
type Result struct {
	Seed     uint64
	Broken   []string
	Launches int
	// Story says how wrong things went; Timeline is everything that happened.
	Story    string
	Timeline []string
}

// Run makes the history of a seed.
func Run(seed uint64, plant rig.Plant, timeline bool) Result {
	w := newWorld(seed, plant, draw(rand.New(rand.NewPCG(seed, 0x7368617065))))
	w.Log.Keep = timeline
	w.chaos = newChaos(w)
	w.Intercept(w.chaos.call)
	w.Start()
	w.Run(start.Add(10 * time.Second))
	w.workload()
	w.chaos.begin(start.Add(troubled))
	for i := range looks {
		w.Run(start.Add(troubled + calm + time.Duration(i)*pause))
		moving := w.rules.rest()
		if len(moving) == 0 {
			break
		}
		if i == looks-1 {
			w.rules.Broken = append(w.rules.Broken, moving...)
		}
	}
	return Result{Seed: seed, Broken: w.rules.Broken, Launches: w.rules.started, Story: w.shape.String() + "; " + w.chaos.String(), Timeline: w.Log.Lines}
}

// workload draws what is wanted of the cluster over time.
func (w *world) workload() {
	for i := range 1 + w.rng.IntN(4) {
		name := fmt.Sprintf("app-%d", i)
		milli := []int64{200, 500, 900, 1800, 3500}[w.rng.IntN(5)]
		most := min(12, 30_000/milli)
		w.deploy(name, int32(w.rng.Int64N(most)), milli, w.rng.IntN(2) == 0, w.rng.IntN(8) == 0)
		for at := w.Now(); at.Before(start.Add(troubled)); at = at.Add(time.Duration(60+w.rng.IntN(600)) * time.Second) {
			n := int32(w.rng.Int64N(most))
			w.At(at, func() { w.scale(name, n) })
		}
	}
}
