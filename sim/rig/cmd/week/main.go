// Week plays a week of a cluster with a daily load, once with a Provisioner and
// once with a NodePool, and prints what it costs, whom it disturbs, and which
// rules were broken.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"karpenter/sim/rig/chart"
	"karpenter/sim/rig/week"
)

func main() {
	length := flag.Duration("length", 7*24*time.Hour, "how long")
	pods := flag.Float64("pods", 1, "share of the pods; with 1 there are up to a hundred machines")
	only := flag.String("only", "", "provisioner or nodepool; empty: both")
	hours := flag.Bool("hours", false, "print every hour")
	plot := flag.String("plot", "", "draw it into this .svg or .html")
	flag.Parse()
	code, err := run(*length, *pods, week.Variant(*only), *hours, *plot)
	if err != nil {
		fmt.Fprintln(os.Stderr, "week:", err)
		code = 1
	}
	os.Exit(code)
}

func run(length time.Duration, pods float64, only week.Variant, hours bool, plot string) (code int, err error) {
	variants := []week.Variant{week.Provisioner, week.NodePool}
	if only != "" {
		variants = []week.Variant{only}
	}
	var runs []chart.Run
	for _, v := range variants {
		s, err := week.Scenario(v, pods, length)
		if err != nil {
			return 1, err
		}
		begun := time.Now()
		report, broken, err := week.Run(s, func(at time.Duration) {
			if at%(6*time.Hour) == 0 {
				fmt.Fprintf(os.Stderr, "%s … %.0f of %.0f hours, %s\n", v, at.Hours(), length.Hours(), time.Since(begun).Round(time.Second))
			}
		})
		if err != nil {
			return 1, err
		}
		one := chart.Run{Name: string(v), Report: report}
		runs = append(runs, one)
		if hours {
			print(chart.Hourly(one))
		}
		for _, b := range broken {
			fmt.Printf("%s: %s\n", v, b)
			code = 1
		}
		fmt.Printf("%s: %d rules broken; the dearest hour costs %.3f times an empty cluster\n", v, len(broken), dearest(one))
	}
	print(chart.Totals(runs...))
	text := ""
	switch filepath.Ext(plot) {
	case "":
		return code, nil
	case ".svg":
		text = chart.SVG("A week", runs...)
	default:
		text = chart.Page("A week", []chart.Table{chart.Totals(runs...)}, runs...)
	}
	return code, os.WriteFile(plot, []byte(text), 0o644)
}

func dearest(r chart.Run) (most float64) {
	for i := range r.Hours {
		ratio, _ := r.Hours[i].Ratio(min(time.Hour, r.End.Sub(r.Hours[i].Start)))
		most = max(most, ratio)
	}
	return most
}

func print(t chart.Table) {
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	for _, row := range slices.Concat([][]string{t.Head}, t.Rows) {
		fmt.Fprintln(w, strings.TrimRight(strings.Join(row, "\t"), "\t"))
	}
	_ = w.Flush()
}
