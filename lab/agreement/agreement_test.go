package agreement

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	"karpenter/internal/core/schedule"
	"karpenter/internal/core/world"
)

// A sample of what `make agreement` runs.
func TestPlansAgreeWithScheduler(t *testing.T) {
	r, err := Run(Options{Cases: 300, Seed: 1, Stories: 30, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Found {
		t.Errorf("seed %d: %s", f.Seed, f.Disagreement.String())
	}
	if r.Left*4 > r.Pods*3 || r.Machines < r.Cases {
		t.Errorf("the clusters are too easy or too hard: %d of %d pods left, %d machines", r.Left, r.Pods, r.Machines)
	}
}

// Every cluster that once showed a disagreement.
func TestSavedClusters(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no saved clusters", err)
	}
	j := judge(t)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			s, err := Load(file)
			if err != nil {
				t.Fatal(err)
			}
			c, err := Check(j, &s.Cluster, Solve, s.Seed, s.Story)
			if err != nil {
				t.Fatal(err)
			}
			if c.Disagreement != nil {
				t.Errorf("%s\nat first: %s", c.Disagreement, s.About)
			}
		})
	}
}

// faults are planners that are wrong on purpose, and the property that must
// show it.
var faults = []struct {
	name, property string
	solve          Planner
}{
	{"overfills a node", "legal", func(s *world.Snapshot) schedule.Plan {
		p := Solve(s)
		if n := len(p.Machines); n > 1 && p.Machines[0].Pool == p.Machines[1].Pool {
			p.Machines[0].Pods = slices.Concat(p.Machines[0].Pods, p.Machines[1].Pods)
			p.Machines = slices.Delete(p.Machines, 1, 2)
		}
		return p
	}},
	{"drops a taint check", "legal", func(s *world.Snapshot) schedule.Plan {
		blind := *s
		blind.Pools = slices.Clone(s.Pools)
		for i := range blind.Pools {
			blind.Pools[i].Taints = nil
		}
		return Solve(&blind)
	}},
	{"forgets the room of daemon pods", "legal", func(s *world.Snapshot) schedule.Plan {
		blind := *s
		blind.Daemons = nil
		return Solve(&blind)
	}},
	{"forgets what is bound", "legal", func(s *world.Snapshot) schedule.Plan {
		blind := *s
		blind.Nodes = slices.Clone(s.Nodes)
		for i := range blind.Nodes {
			blind.Nodes[i].Pods = nil
		}
		return Solve(&blind)
	}},
	{"looks at the first term of an affinity only", "complete", func(s *world.Snapshot) schedule.Plan {
		blind := *s
		blind.Pending = slices.Clone(s.Pending)
		for i := range blind.Pending {
			blind.Pending[i].Terms = blind.Pending[i].Terms[:min(1, len(blind.Pending[i].Terms))]
		}
		return Solve(&blind)
	}},
	{"buys beyond the limits", "legal", func(s *world.Snapshot) schedule.Plan {
		blind := *s
		blind.Pools = slices.Clone(s.Pools)
		for i := range blind.Pools {
			blind.Pools[i].Limits = nil
		}
		return Solve(&blind)
	}},
	{"leaves a pod that has a place", "complete", func(s *world.Snapshot) schedule.Plan {
		p := Solve(s)
		if n := len(p.Machines); n > 0 {
			for _, pod := range p.Machines[n-1].Pods {
				p.Unplaced = append(p.Unplaced, schedule.Unplaced{Pod: pod})
				p.Order = slices.DeleteFunc(p.Order, func(o world.ObjectName) bool { return o == pod })
			}
			p.Machines = p.Machines[:n-1]
		}
		return p
	}},
	{"buys although there is room", "comes-true", func(s *world.Snapshot) schedule.Plan {
		blind := *s
		blind.Nodes = nil
		p := Solve(&blind)
		if len(p.Unplaced) > 0 {
			return Solve(s)
		}
		return p
	}},
}

func TestFaultsAreFound(t *testing.T) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			stories := 0
			if f.property == "comes-true" {
				stories = 200
			}
			r, err := Run(Options{Cases: 200, Seed: 1, Stories: stories, Workers: 2, Solve: f.solve, MaxFound: 1})
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Found) == 0 || r.Found[0].Property != f.property {
				t.Errorf("found %v in %d clusters, want a breach of %q", r.Found, r.Cases, f.property)
			}
		})
	}
}

func TestShrinkLeavesTheCore(t *testing.T) {
	fault := faults[0]
	r, err := Run(Options{Cases: 200, Seed: 1, Workers: 1, Solve: fault.solve, MaxFound: 1})
	if err != nil || len(r.Found) == 0 {
		t.Fatal("nothing to shrink", err)
	}
	j := judge(t)
	broken := Broken(j, fault.solve, r.Found[0])
	c := Shrink(Generate(r.Found[0].Seed), broken)
	if !broken(c) {
		t.Error("the smallest cluster does not show the disagreement")
	}
	if len(c.Pods) > 3 || len(c.Provisioners) > 1 || len(c.Types) > 2 {
		t.Errorf("%d pods, %d Provisioners and %d types are left", len(c.Pods), len(c.Provisioners), len(c.Types))
	}
}

func TestSeedDecidesEverything(t *testing.T) {
	j := judge(t)
	for seed := range uint64(20) {
		var first []byte
		for range 2 {
			c := Generate(seed)
			r, err := Check(j, c, Solve, seed, seed < 5)
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal([]any{c, r.Planned, r.Machines, len(r.Endings)})
			if err != nil {
				t.Fatal(err)
			}
			if first != nil && string(first) != string(text) {
				t.Fatalf("seed %d: two runs differ", seed)
			}
			first = text
		}
	}
}

func judge(t *testing.T) *Judge {
	t.Helper()
	j, err := NewJudge()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(j.Close)
	return j
}
