package play

import (
	"path/filepath"
	"slices"
	"testing"

	"karpenter/internal/scenario/cases"
)

// failing are the cases that do not pass yet, and why. One that passes must be
// taken off the list.
var failing = map[string]string{
	"case-76-instance-gone-and-address-reused": "the node that joins runs no pod, and by the defaults of v1 an empty node goes at once",
}

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
			why, known := failing[c.Name]
			switch {
			case known && (err != nil || report.Failed() > 0):
				t.Skip("known: " + why)
			case known:
				t.Errorf("passes: take it off the list of failing cases (%s)", why)
			case err != nil:
				t.Fatal(err)
			}
			for _, r := range report.Results {
				if !r.OK {
					t.Errorf("%s %s: %s", r.At, r.Check, r.Why)
				}
			}
		})
	}
	for name := range failing {
		if !slices.ContainsFunc(dirs, func(d string) bool { return filepath.Base(d) == name }) {
			t.Errorf("%s: is on the list of failing cases, and there is no such case", name)
		}
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
