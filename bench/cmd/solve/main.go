// Command solve plans one benchmark problem and writes the answer with what it
// cost: CPU seconds from pods in memory to the finished plan, allocations and
// peak memory.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"time"

	"karpenter/bench/problem"
	"karpenter/bench/usage"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/schedule"
	"karpenter/internal/core/world"
)

func main() {
	in := flag.String("i", "", "problem file")
	out := flag.String("o", "", "result file (default: none)")
	profile := flag.String("cpuprofile", "", "write a CPU profile")
	machineCost := flag.Int64("machine-cost", 0, "micro-dollars an hour added to every machine when plans are compared")
	tie := flag.Int64("tie", 0, "tie tolerance in millionths")
	check := flag.Bool("check", false, "hold the answer against the problem with the product's own checker")
	flag.Parse()
	if err := run(*in, *out, *profile, *check, world.Policy{MachineCost: quantity.Price(*machineCost), TieToleranceMicros: *tie}); err != nil {
		fmt.Fprintln(os.Stderr, "solve:", err)
		os.Exit(1)
	}
}

func run(in, out, profile string, check bool, policy world.Policy) error {
	p, err := problem.Read(in)
	if err != nil {
		return err
	}
	debug.FreeOSMemory()
	usage.ResetPeak()
	if profile != "" {
		f, err := os.Create(profile)
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	before := usage.Measure()
	start := time.Now()
	snap := problem.Snapshot(p, policy)
	converted := usage.Measure()
	plan := schedule.Solve(snap, schedule.Options{})
	wall := time.Since(start)
	after := usage.Measure()

	if check {
		if faults := schedule.Check(snap, &plan); len(faults) > 0 {
			return fmt.Errorf("the answer is not legal: %s", strings.Join(faults, "; "))
		}
	}
	answer := result(p, &plan)
	answer.Evaluations, answer.Classes = plan.Stats.Evaluations, plan.Stats.Classes
	answer.Seconds = wall.Seconds()
	answer.CPUSeconds = after.CPU - before.CPU
	answer.AllocBytes, answer.Allocs = after.Bytes-before.Bytes, after.Count-before.Count
	answer.BaseRSSBytes, answer.PeakRSSBytes = before.Peak, after.Peak
	fmt.Printf("%s: %.3f CPU s (%.3f convert), %d MiB allocated, peak +%d MiB, $%.2f/h, %d machines, %d on nodes, %d left out, %d classes, %d evaluations\n",
		p.Name, answer.CPUSeconds, converted.CPU-before.CPU, answer.AllocBytes>>20, (answer.PeakRSSBytes-answer.BaseRSSBytes)>>20,
		answer.PricePerHour, answer.NodeCount, answer.OnExisting, answer.Unschedulable, plan.Stats.Classes, plan.Stats.Evaluations)
	if out == "" {
		return nil
	}
	raw, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	return os.WriteFile(out, append(raw, '\n'), 0o644)
}
