package play

import (
	"path/filepath"
	"testing"

	"karpenter/internal/scenario/cases"
)

func TestCases(t *testing.T) {
	dirs, err := filepath.Glob("../../../test/cases/case-*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			c, err := cases.Read(dir)
			if err != nil {
				t.Fatal(err)
			}
			report, err := Play(c, false)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range report.Results {
				if !r.OK {
					t.Errorf("%s %s: %s", r.At, r.Check, r.Why)
				}
			}
		})
	}
}

// The same case gives the same history.
func TestACaseGoesTheSameWayEachTime(t *testing.T) {
	c, err := cases.Read("../../../test/cases/case-10-self-affinity-one-zone")
	if err != nil {
		t.Fatal(err)
	}
	first, err := Play(c, true)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		again, err := Play(c, true)
		if err != nil {
			t.Fatal(err)
		}
		for i := range first.Timeline {
			if i >= len(again.Timeline) || first.Timeline[i] != again.Timeline[i] {
				t.Fatalf("line %d differs: %q", i, first.Timeline[i])
			}
		}
	}
}
