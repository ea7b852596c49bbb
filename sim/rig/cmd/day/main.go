// Day plays a day of a cluster on virtual time and prints what it cost.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"time"

	"karpenter/bench/usage"
	"karpenter/sim/rig/faults"
)

func main() {
	d := faults.Day{}
	flag.IntVar(&d.Nodes, "nodes", 500, "size of the cluster, in machines")
	flag.DurationVar(&d.For, "for", 24*time.Hour, "how long it is played")
	flag.Uint64Var(&d.Seed, "seed", 1, "how its workload changes")
	flag.BoolVar(&d.Consolidate, "consolidate", false, "machines may be replaced to save money; otherwise only empty ones go")
	profile := flag.String("cpuprofile", "", "write a CPU profile to this file")
	flag.Parse()
	if *profile != "" {
		f, err := os.Create(*profile)
		if err == nil {
			err = pprof.StartCPUProfile(f)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "day:", err)
			os.Exit(1)
		}
		defer pprof.StopCPUProfile()
	}
	debug.SetGCPercent(400) // memory is not short here
	before, begun := usage.Measure(), time.Now()
	r := d.Play()
	cost := usage.Measure()
	fmt.Printf("%d nodes, consolidation %v, seed %d: %s of virtual time\n", d.Nodes, d.Consolidate, d.Seed, d.For)
	fmt.Printf("%d pods made, %d machines started; at the end %d pods run on %d nodes\n", r.Pods, r.Launches, r.Running, r.Nodes)
	fmt.Printf("%.1f CPU seconds, %.1f s, %d MiB at most, %d MiB allocated\n",
		cost.CPU-before.CPU, time.Since(begun).Seconds(), cost.Peak>>20, (cost.Bytes-before.Bytes)>>20)
	for _, name := range slices.Sorted(maps.Keys(r.Passes)) {
		fmt.Printf("%10d passes of %s\n", r.Passes[name], name)
	}
	for _, b := range r.Broken {
		fmt.Println("broken:", b)
	}
	if len(r.Broken) > 0 {
		pprof.StopCPUProfile()
		os.Exit(1)
	}
}
