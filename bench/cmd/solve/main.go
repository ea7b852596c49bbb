// Command solve plans one benchmark problem and writes the answer with what it
// cost: CPU seconds from pods in memory to the finished plan, allocations and
// peak memory.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"time"

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
	if err := run(*in, *out, *profile, *check, world.Policy{MachineCost: price(*machineCost), TieToleranceMicros: *tie}); err != nil {
		fmt.Fprintln(os.Stderr, "solve:", err)
		os.Exit(1)
	}
}

func run(in, out, profile string, check bool, policy world.Policy) error {
	raw, err := os.ReadFile(in)
	if err != nil {
		return err
	}
	var problem input
	if err := json.Unmarshal(raw, &problem); err != nil {
		return fmt.Errorf("reading %s: %w", in, err)
	}
	raw = nil
	debug.FreeOSMemory()
	resetPeak()
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
	before := measure()
	start := time.Now()
	snap := snapshot(&problem, policy)
	converted := measure()
	plan := schedule.Solve(snap, schedule.Options{})
	wall := time.Since(start)
	after := measure()

	if check {
		if faults := schedule.Check(snap, &plan); len(faults) > 0 {
			return fmt.Errorf("the answer is not legal: %s", strings.Join(faults, "; "))
		}
	}
	answer := result(&problem, &plan)
	answer.Evaluations, answer.Classes = plan.Stats.Evaluations, plan.Stats.Classes
	answer.Seconds = wall.Seconds()
	answer.CPUSeconds = after.cpu - before.cpu
	answer.AllocBytes, answer.Allocs = after.bytes-before.bytes, after.count-before.count
	answer.BaseRSSBytes, answer.PeakRSSBytes = before.peak, after.peak
	fmt.Printf("%s: %.3f CPU s (%.3f convert), %d MiB allocated, peak +%d MiB, $%.2f/h, %d machines, %d on nodes, %d left out, %d classes, %d evaluations\n",
		problem.Name, answer.CPUSeconds, converted.cpu-before.cpu, answer.AllocBytes>>20, (answer.PeakRSSBytes-answer.BaseRSSBytes)>>20,
		answer.PricePerHour, answer.NodeCount, answer.OnExisting, answer.Unschedulable, plan.Stats.Classes, plan.Stats.Evaluations)
	if out == "" {
		return nil
	}
	raw, err = json.Marshal(answer)
	if err != nil {
		return err
	}
	return os.WriteFile(out, append(raw, '\n'), 0o644)
}

type usage struct {
	cpu          float64
	bytes, count uint64
	peak         int64
}

func measure() usage {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return usage{seconds(u.Utime) + seconds(u.Stime), m.TotalAlloc, m.Mallocs, peakRSS()}
}

// resetPeak makes the kernel measure peak memory from here, so that loading the
// problem is left out.
func resetPeak() { _ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

// peakRSS is the most memory held since resetPeak, in bytes; 0 where the kernel
// does not say.
func peakRSS() int64 {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(raw), "VmHWM:")
	line, _, _ := strings.Cut(after, "kB")
	n, _ := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	return n << 10
}
