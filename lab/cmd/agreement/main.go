// Command agreement plans random clusters and lets the real kube-scheduler
// judge the plans. It prints one line of JSON; what it finds is shrunk and saved
// as a test, and makes it exit with status 1.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"

	"karpenter/lab/agreement"
)

func main() {
	n := flag.Int("n", 2000, "number of clusters")
	seed := flag.Uint64("seed", 1, "seed of the first cluster; the others follow")
	stories := flag.Int("stories", -1, "how many clusters are also handed to the freely running scheduler (default all)")
	workers := flag.Int("workers", runtime.NumCPU(), "clusters judged at once")
	save := flag.String("save", "", "folder for the smallest clusters that show a disagreement (default: not saved)")
	flag.Parse()
	found, err := run(*n, *seed, *stories, *workers, *save)
	if err != nil {
		fmt.Fprintln(os.Stderr, "agreement:", err)
		os.Exit(2)
	}
	if found > 0 {
		os.Exit(1)
	}
}

func run(n int, seed uint64, stories, workers int, save string) (found int, err error) {
	if stories < 0 {
		stories = n
	}
	start := time.Now()
	r, err := agreement.Run(agreement.Options{
		Cases: n, Seed: seed, Stories: stories, Workers: workers, MaxFound: 20,
		Progress: func(done int, r *agreement.Report) {
			fmt.Fprintf(os.Stderr, "%d of %d clusters, %d disagreements, %s\n", done, n, r.Disagreements, time.Since(start).Round(time.Second))
		},
	})
	if err != nil {
		return 0, err
	}
	line, err := json.Marshal(r)
	if err != nil {
		return 0, err
	}
	fmt.Println(string(line))
	for _, f := range r.Found {
		fmt.Fprintf(os.Stderr, "seed %d: %s\n", f.Seed, f.Disagreement.String())
	}
	if save == "" {
		return r.Disagreements, nil
	}
	return r.Disagreements, keep(r.Found, save)
}

// keep shrinks and saves one cluster for each kind of disagreement.
func keep(found []agreement.Found, folder string) error {
	j, err := agreement.NewJudge()
	if err != nil {
		return err
	}
	defer j.Close()
	kept := map[string]bool{}
	for _, f := range found {
		if kept[f.Property+f.Rule] {
			continue
		}
		kept[f.Property+f.Rule] = true
		fmt.Fprintf(os.Stderr, "shrinking the cluster of seed %d\n", f.Seed)
		smallest := agreement.Shrink(agreement.Generate(f.Seed), agreement.Broken(j, agreement.Solve, f))
		name, err := agreement.Save(folder, f, smallest)
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stderr, "saved", name)
	}
	return nil
}
