// Command table makes the benchmark problems, solves them, has the answers
// checked and bounded by the module bench/schedbench, and prints a table next to
// the figures of the reference. It is run at the root of the repository.
package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// workload is one line of the table. The figures of the reference are those of
// bench/schedbench/README.md; 0 where there is none.
type workload struct {
	name    string
	gen     []string
	cpu     float64 // goal: CPU seconds
	ratio   float64 // goal: price over bound
	refCPU  float64
	refRate float64
}

var workloads = []workload{
	{"homogeneous 50,000", []string{"-workload", "homogeneous", "-n", "50000"}, 0.15, 1.02, 65.8, 1.24},
	{"mixed-sizes 500", []string{"-workload", "mixed-sizes", "-n", "500"}, 0, 0, 2.3, 3.65},
	{"mixed-sizes 2,000", []string{"-workload", "mixed-sizes", "-n", "2000"}, 0.1, 1.09, 7.1, 4.07},
	{"mixed-sizes 10,000", []string{"-workload", "mixed-sizes", "-n", "10000"}, 0.25, 1.06, 44.3, 3.37},
	{"mixed-sizes 50,000", []string{"-workload", "mixed-sizes", "-n", "50000"}, 1.0, 1.05, 300, 0},
	{"diverse 5,000, 400 fake types", []string{"-workload", "diverse", "-n", "5000", "-catalog", ""}, 0.5, 1.15, 13.9, 1.66},
	{"existing: 500 nodes 70 % full, 10,000 pending", []string{"-workload", "existing", "-n", "10000", "-nodes", "500"}, 0.4, 1.25, 43.1, 4.31},
}

// The policies under which problems are solved: price alone, and as shipped.
var policies = []struct {
	name  string
	flags []string
}{
	{"price alone", nil},
	{"shipped: $0.002 a machine, 1 % tolerance", []string{"-machine-cost", "2000", "-tie", "10000"}},
}

type answer struct {
	CPUSeconds    float64 `json:"cpuSeconds"`
	Allocs        uint64  `json:"allocs"`
	AllocBytes    uint64  `json:"allocBytes"`
	BaseRSSBytes  int64   `json:"baseRSSBytes"`
	PeakRSSBytes  int64   `json:"peakRSSBytes"`
	Unschedulable int     `json:"unschedulable"`
	NodeCount     int     `json:"newNodeCount"`
	PricePerHour  float64 `json:"pricePerHour"`
}

func main() {
	dir := flag.String("dir", filepath.Join(os.TempDir(), "karpenter-bench"), "where problems and answers are kept")
	runs := flag.Int("runs", 5, "how often each problem is solved; CPU seconds are the least")
	only := flag.String("only", "", "only workloads whose name contains this")
	flag.Parse()
	if err := run(*dir, *only, *runs); err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

func run(dir, only string, runs int) error {
	bin := filepath.Join(dir, "bin") + string(filepath.Separator)
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	if _, err := command(nil, "go", "-C", "bench/schedbench", "build", "-o", bin, "./cmd/..."); err != nil {
		return err
	}
	if _, err := command(nil, "go", "build", "-o", bin, "./bench/cmd/solve"); err != nil {
		return err
	}
	for _, p := range policies {
		fmt.Printf("%s\n\n| workload | CPU s (goal; reference) | allocated MiB (objects) | peak MiB | $/h | ÷ bound (goal; reference) | nodes | left out |\n|---|--:|--:|--:|--:|--:|--:|--:|\n", p.name)
		for _, w := range workloads {
			if !strings.Contains(w.name, only) {
				continue
			}
			if err := line(bin, dir, w, p.flags, runs); err != nil {
				return err
			}
		}
		fmt.Println()
	}
	return nil
}

// line solves one problem and prints what came of it.
func line(bin, dir string, w workload, flags []string, runs int) error {
	base := filepath.Join(dir, strings.Join(w.gen[1:4:4], "-"))
	in, out, bound := base+".json", base+".out.json", base+".bound.json"
	if _, err := os.Stat(bound); err != nil {
		gen := append([]string{"-catalog", "bench/schedbench/data/ec2-catalog.json"}, w.gen...)
		if _, err := command(nil, bin+"gen", append(gen, "-o", in)...); err != nil {
			return err
		}
		raw, err := command(nil, bin+"bound", "-greedy=false", "-i", in)
		if err != nil {
			return err
		}
		if err := os.WriteFile(bound, raw, 0o644); err != nil {
			return err
		}
	}
	var least struct {
		PricePerHour float64 `json:"pricePerHour"`
	}
	if err := readJSON(bound, &least); err != nil {
		return err
	}
	var answers []answer
	for range runs {
		if _, err := command([]string{"GOMAXPROCS=1"}, bin+"solve", append([]string{"-i", in, "-o", out}, flags...)...); err != nil {
			return err
		}
		var a answer
		if err := readJSON(out, &a); err != nil {
			return err
		}
		answers = append(answers, a)
	}
	legal := ""
	if faults, err := command(nil, bin+"check", "-i", in, "-r", out); err != nil {
		legal = " NOT LEGAL: " + strings.TrimSpace(string(faults)) + err.Error()
	}
	a := slices.MinFunc(answers, func(a, b answer) int { return cmp.Compare(a.CPUSeconds, b.CPUSeconds) })
	fmt.Printf("| %s | %.2f (%s; %s) | %d (%d k) | %d | %.2f | %.3f (%s; %s) | %d | %d%s |\n", w.name,
		a.CPUSeconds, figure(w.cpu), figure(w.refCPU), a.AllocBytes>>20, a.Allocs/1000, (a.PeakRSSBytes-a.BaseRSSBytes)>>20,
		a.PricePerHour, a.PricePerHour/least.PricePerHour, figure(w.ratio), figure(w.refRate), a.NodeCount, a.Unschedulable, legal)
	return nil
}

func figure(f float64) string {
	if f == 0 {
		return "–"
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

func readJSON(path string, v any) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, v)
}

func command(env []string, name string, args ...string) ([]byte, error) {
	c := exec.Command(name, args...)
	c.Env = append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	if err != nil {
		return out, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return out, nil
}
