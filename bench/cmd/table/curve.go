package main

import (
	"fmt"
	"strconv"
)

// curves shows how time grows: with pods at the same 200 deployments, and with
// classes and instance types at the same pods.
func (b *bench) curves() error {
	fmt.Print("| pods of 200 deployments | CPU s | peak MiB | evaluations, M | machines | $/h |\n|--:|--:|--:|--:|--:|--:|\n")
	for _, pods := range []int{1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000} {
		w := workload{gen: []string{"-workload", "mixed-sizes", "-n", strconv.Itoa(pods)}}
		w.own = []string{"-types", "0"} // as it is, without a bound
		a, err := b.solve(w, 42, nil)
		if err != nil {
			return err
		}
		fmt.Printf("| %d | %.2f | %d | %.1f | %d | %.2f |\n", pods, a.CPUSeconds, a.peak(), float64(a.Evaluations)/1e6, a.NodeCount, a.PricePerHour)
	}
	fmt.Print("\n| classes | types | CPU s | µs per class and type | evaluations, M | $/h |\n|--:|--:|--:|--:|--:|--:|\n")
	for _, classes := range []int{50, 200, 800, 3_200} {
		for _, types := range []int{80, 320, 1_280} {
			w := workload{gen: []string{"-workload", "mixed-sizes", "-n", "10000"}}
			w.own = []string{"-classes", strconv.Itoa(classes), "-types", strconv.Itoa(types)}
			a, err := b.solve(w, 42, nil)
			if err != nil {
				return err
			}
			fmt.Printf("| %d | %d | %.2f | %.2f | %.1f | %.2f |\n", a.Classes, types, a.CPUSeconds,
				a.CPUSeconds*1e6/float64(a.Classes*types), float64(a.Evaluations)/1e6, a.PricePerHour)
		}
	}
	return nil
}
