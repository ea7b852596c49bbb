// Faults makes random histories with faults and prints how many broke a rule.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"

	"karpenter/bench/usage"
	"karpenter/sim/rig"
	"karpenter/sim/rig/faults"
)

// mostShown is how many broken rules of a history are shown.
const mostShown = 5

func main() {
	n := flag.Uint64("n", 200, "number of histories")
	seed := flag.Uint64("seed", 1, "seed of the first one; the others follow")
	plant := flag.String("plant", "", fmt.Sprintf("make the product wrong in a known way: %v", rig.Plants()))
	verbose := flag.Bool("v", false, "print everything that happened (with -n 1)")
	sweep := flag.Bool("sweep", false, "let the process die at every call of the main scenarios instead")
	flag.Parse()
	debug.SetGCPercent(400) // memory is not short here
	if *sweep {
		os.Exit(crashPoints())
	}
	violations := 0
	for r := range histories(*seed, *n, rig.Plant(*plant), *verbose) {
		for _, line := range r.Timeline {
			fmt.Println(line)
		}
		if len(r.Broken) == 0 {
			continue
		}
		violations++
		fmt.Fprintf(os.Stderr, "seed %d (%s):\n", r.Seed, r.Story)
		for _, b := range r.Broken[:min(len(r.Broken), mostShown)] {
			fmt.Fprintln(os.Stderr, "  ", b)
		}
		if more := len(r.Broken) - mostShown; more > 0 {
			fmt.Fprintln(os.Stderr, "   and", more, "more")
		}
	}
	out, err := json.Marshal(map[string]any{"histories": *n, "violations": violations})
	if err != nil {
		panic(err) // two numbers
	}
	fmt.Println(string(out))
	fmt.Fprintf(os.Stderr, "%.1f CPU minutes\n", usage.Measure().CPU/60)
	if violations > 0 {
		fmt.Fprintln(os.Stderr, "play one again with: go run ./sim/rig/cmd/faults -n 1 -v -seed N")
		os.Exit(1)
	}
}

// crashPoints plays the scenarios once per call and side of it, and prints how
// many broke a rule.
func crashPoints() (code int) {
	points, violations := 0, 0
	for _, s := range faults.Scenarios() {
		_, calls := faults.Crash(s, 0, false)
		for n := 1; n <= calls; n++ {
			for _, after := range []bool{false, true} {
				points++
				if broken, _ := faults.Crash(s, n, after); len(broken) > 0 {
					violations++
					fmt.Fprintf(os.Stderr, "%s, call %d, after %v: %q\n", s, n, after, broken)
				}
			}
		}
	}
	fmt.Printf("{\"crashPoints\":%d,\"violations\":%d}\n", points, violations)
	fmt.Fprintf(os.Stderr, "%.1f CPU minutes\n", usage.Measure().CPU/60)
	return min(violations, 1)
}

// histories makes them side by side and returns them as they end. Each is a
// world of its own, so which ends first changes nothing in them.
func histories(first, n uint64, plant rig.Plant, timeline bool) <-chan faults.Result {
	seeds, out := make(chan uint64), make(chan faults.Result)
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for s := range seeds {
				out <- faults.Run(s, plant, timeline)
			}
		})
	}
	go func() {
		for s := range n {
			seeds <- first + s
		}
		close(seeds)
		all.Wait()
		close(out)
	}()
	return out
}
