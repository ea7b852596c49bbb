// Command table makes the benchmark problems, solves them, has the answers
// checked and bounded by the module bench/schedbench, and prints tables next to
// the figures of the reference. It is run at the root of the repository.
package main

import (
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
	gen     []string // flags of schedbench's gen
	own     []string // flags of our gen, which makes another problem of that; then nothing else checks or bounds it
	cpu     float64  // goal: CPU seconds
	ratio   float64  // goal: price over bound
	refCPU  float64
	refRate float64
}

var workloads = []workload{
	{"homogeneous 50,000", []string{"-workload", "homogeneous", "-n", "50000"}, nil, 0.15, 1.02, 65.8, 1.24},
	{"mixed-sizes 500", []string{"-workload", "mixed-sizes", "-n", "500"}, nil, 0, 0, 2.3, 3.65},
	{"mixed-sizes 2,000", []string{"-workload", "mixed-sizes", "-n", "2000"}, nil, 0.1, 1.09, 7.1, 4.07},
	{"mixed-sizes 10,000", []string{"-workload", "mixed-sizes", "-n", "10000"}, nil, 0.25, 1.06, 44.3, 3.37},
	{"mixed-sizes 50,000", []string{"-workload", "mixed-sizes", "-n", "50000"}, nil, 1.0, 1.05, 300, 0},
	{"diverse 5,000, 400 fake types", []string{"-workload", "diverse", "-n", "5000", "-catalog", ""}, nil, 0.5, 1.15, 13.9, 1.66},
	{"existing: 500 nodes 70 % full, 10,000 pending", []string{"-workload", "existing", "-n", "10000", "-nodes", "500"}, nil, 0.4, 1.25, 43.1, 4.31},
	{"20 pools, 2,000 nodes, 5,000 pending, a third impossible", []string{"-workload", "existing", "-n", "5000", "-nodes", "2000"},
		[]string{"-pools", "20", "-impossible", "3"}, 0.5, 0, 0, 0},
}

// policies are those under which problems are solved: price alone, and as shipped.
var policies = []struct {
	name  string
	flags []string
}{
	{"Price alone", nil},
	{"As shipped: $0.002 a machine, 1 % tolerance", []string{"-machine-cost", "2000", "-tie", "10000"}},
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
	Classes       int     `json:"classes"`
	Evaluations   int64   `json:"evaluations"`

	ratio float64 // price over bound; 0 if there is none
	legal string  // empty if it is
}

func (a *answer) peak() int64 { return (a.PeakRSSBytes - a.BaseRSSBytes) >> 20 }

// bench is where problems and answers are kept, and how they are solved.
type bench struct {
	dir, bin string
	runs     int
}

func main() {
	dir := flag.String("dir", filepath.Join(os.TempDir(), "karpenter-bench"), "where problems and answers are kept")
	runs := flag.Int("runs", 5, "how often each problem is solved; CPU seconds are the least")
	only := flag.String("only", "", "only workloads whose name contains this")
	seeds := flag.Int("seeds", 0, "solve so many problems of each workload, and print the worst and the median")
	curve := flag.Bool("curve", false, "print how time grows with pods, and with classes and types")
	flag.Parse()
	b := &bench{*dir, filepath.Join(*dir, "bin") + string(filepath.Separator), *runs}
	if err := b.run(*only, *seeds, *curve); err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

func (b *bench) run(only string, seeds int, curve bool) error {
	if err := os.MkdirAll(b.bin, 0o755); err != nil {
		return err
	}
	if _, err := command(nil, "go", "-C", "bench/schedbench", "build", "-o", b.bin, "./cmd/..."); err != nil {
		return err
	}
	for _, own := range []string{"solve", "gen", "consolidate"} {
		if _, err := command(nil, "go", "build", "-o", b.bin+"our-"+own, "./bench/cmd/"+own); err != nil {
			return err
		}
	}
	if curve {
		return b.curves()
	}
	for _, p := range policies {
		if seeds > 0 {
			fmt.Printf("**%s**, %d problems of each\n\n| workload | CPU s, median (goal) | worst | ÷ bound, median (goal) | worst |\n|---|--:|--:|--:|--:|\n", p.name, seeds)
		} else {
			fmt.Printf("**%s**\n\n| workload | CPU s (goal; reference) | allocated MiB (objects) | peak MiB | $/h | ÷ bound (goal; reference) | nodes | left out |\n|---|--:|--:|--:|--:|--:|--:|--:|\n", p.name)
		}
		for _, w := range workloads {
			if !strings.Contains(w.name, only) {
				continue
			}
			line := b.line
			if seeds > 0 {
				line = func(w workload, flags []string) error { return b.spread(w, flags, seeds) }
			}
			if err := line(w, p.flags); err != nil {
				return err
			}
		}
		fmt.Println()
	}
	if seeds > 0 || only != "" {
		return nil
	}
	return b.consolidation()
}

// line solves the problem of seed 42, as the reference did, and prints what came
// of it.
func (b *bench) line(w workload, flags []string) error {
	a, err := b.solve(w, 42, flags)
	if err != nil {
		return err
	}
	fmt.Printf("| %s | %.2f (%s; %s) | %d (%d k) | %d | %.2f | %s (%s; %s) | %d | %d%s |\n", w.name,
		a.CPUSeconds, figure(w.cpu), figure(w.refCPU), a.AllocBytes>>20, a.Allocs/1000, a.peak(),
		a.PricePerHour, fixed(a.ratio), figure(w.ratio), figure(w.refRate), a.NodeCount, a.Unschedulable, a.legal)
	return nil
}

// spread solves problems of several seeds.
func (b *bench) spread(w workload, flags []string, seeds int) error {
	var seconds, ratios []float64
	legal := ""
	for seed := range seeds {
		a, err := b.solve(w, seed+1, flags)
		if err != nil {
			return err
		}
		seconds, ratios, legal = append(seconds, a.CPUSeconds), append(ratios, a.ratio), legal+a.legal
	}
	slices.Sort(seconds)
	slices.Sort(ratios)
	fmt.Printf("| %s | %.2f (%s) | %.2f | %s (%s) | %s%s |\n", w.name, seconds[seeds/2], figure(w.cpu), seconds[seeds-1],
		fixed(ratios[seeds/2]), figure(w.ratio), fixed(ratios[seeds-1]), legal)
	return nil
}

// solve makes a problem, unless it is there already, and solves it as often as is
// wanted. CPU seconds are the least.
func (b *bench) solve(w workload, seed int, flags []string) (a answer, err error) {
	base := filepath.Join(b.dir, fmt.Sprintf("%s-s%d", strings.Join(append(w.gen[1:4:4], w.own...), "-"), seed))
	in, out, bound := base+".json", base+".out.json", base+".bound.json"
	if _, err := os.Stat(bound); err != nil {
		if err := b.make(w, seed, in, bound); err != nil {
			return a, err
		}
	}
	for i := range b.runs {
		if _, err := command([]string{"GOMAXPROCS=1"}, b.bin+"our-solve", append([]string{"-i", in, "-o", out}, flags...)...); err != nil {
			return a, err
		}
		var one answer
		if err := readJSON(out, &one); err != nil {
			return a, err
		}
		if i == 0 || one.CPUSeconds < a.CPUSeconds {
			a = one
		}
	}
	if w.own != nil {
		return a, nil
	}
	if faults, err := command(nil, b.bin+"check", "-i", in, "-r", out); err != nil {
		a.legal = " NOT LEGAL: " + strings.TrimSpace(string(faults)) + err.Error()
	}
	var least struct {
		PricePerHour float64 `json:"pricePerHour"`
	}
	if err := readJSON(bound, &least); err != nil {
		return a, err
	}
	a.ratio = a.PricePerHour / least.PricePerHour
	return a, nil
}

func (b *bench) make(w workload, seed int, in, bound string) error {
	gen := append([]string{"-catalog", "bench/schedbench/data/ec2-catalog.json", "-seed", strconv.Itoa(seed)}, w.gen...)
	if _, err := command(nil, b.bin+"gen", append(gen, "-o", in)...); err != nil {
		return err
	}
	result := []byte("{}\n")
	var err error
	if w.own != nil {
		_, err = command(nil, b.bin+"our-gen", append([]string{"-i", in, "-o", in}, w.own...)...)
	} else {
		result, err = command(nil, b.bin+"bound", "-greedy=false", "-i", in)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(bound, result, 0o644)
}

func figure(f float64) string {
	if f == 0 {
		return "–"
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

func fixed(ratio float64) string {
	if ratio == 0 {
		return "–"
	}
	return strconv.FormatFloat(ratio, 'f', 3, 64)
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
