package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// sweeps are the problems of consolidation, with the goal in CPU seconds.
var sweeps = []struct {
	name     string
	workload string
	nodes    int
	cpu      float64
}{
	{"nothing can go: 1,000 nodes, 10,000 pods", "full", 1000, 1},
	{"nothing can go: 5,000 nodes, 50,000 pods", "full", 5000, 8},
	{"30 % full: 2,000 nodes, to the end", "underutilised", 2000, 10},
}

// consolidation prints what it costs to consolidate until nothing is left to do.
func (b *bench) consolidation() error {
	fmt.Print("**Consolidation**\n\n| problem | CPU s (goal) | peak MiB | what-ifs | commands | $/h before | after |\n|---|--:|--:|--:|--:|--:|--:|\n")
	for _, s := range sweeps {
		in := filepath.Join(b.dir, fmt.Sprintf("%s-nodes-%d.json", s.workload, s.nodes))
		out := filepath.Join(b.dir, "consolidate.out.json")
		if _, err := os.Stat(in); err != nil {
			args := []string{"-catalog", "bench/schedbench/data/ec2-catalog.json", "-workload", s.workload, "-nodes", strconv.Itoa(s.nodes), "-o", in}
			if _, err := command(nil, b.bin+"gen", args...); err != nil {
				return err
			}
		}
		if _, err := command([]string{"GOMAXPROCS=1"}, b.bin+"our-consolidate", "-i", in, "-o", out); err != nil {
			return err
		}
		var a struct {
			CPUSeconds         float64 `json:"cpuSeconds"`
			PeakRSSBytes       int64   `json:"peakRSSBytes"`
			WhatIfs            int     `json:"whatIfs"`
			PricePerHourBefore float64 `json:"pricePerHourBefore"`
			PricePerHourAfter  float64 `json:"pricePerHourAfter"`
			Commands           []any   `json:"commands"`
		}
		if err := readJSON(out, &a); err != nil {
			return err
		}
		fmt.Printf("| %s | %.2f (%s) | %d | %d | %d | %.2f | %.2f |\n", s.name, a.CPUSeconds, figure(s.cpu), a.PeakRSSBytes>>20, a.WhatIfs, len(a.Commands),
			a.PricePerHourBefore, a.PricePerHourAfter)
	}
	fmt.Println()
	return nil
}
