package week

import (
	"strings"
	"testing"
	"time"

	"karpenter/sim/rig/record"
)

// A day of some fifteen machines keeps the rules of the week.
func TestADayKeepsTheRules(t *testing.T) {
	if testing.Short() || raceDetector {
		t.Skip("plays a day twice")
	}
	for _, v := range []Variant{Provisioner, NodePool} {
		s, err := Scenario(v, 0.2, 24*time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		r, broken, err := Run(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range broken {
			t.Errorf("%s: %s", v, b)
		}
		if n := r.Total.Disrupted["consolidation"]; n == 0 {
			t.Errorf("%s: the load falls by two thirds, and no pod was moved to save money", v)
		}
		if n := r.Total.Disruptions() - r.Total.Disrupted["consolidation"] - r.Total.Disrupted["emptiness"]; n > 0 {
			t.Errorf("%s: pods were disturbed for other reasons: %v", v, r.Total.Disrupted)
		}
		if w := r.Waited(); w.Median > 0 || w.Most > 300 {
			t.Errorf("%s: most pods find room, and none waits for longer than a few launches: %+v", v, w)
		}
	}
}

// What breaks a rule is named.
func TestBrokenRulesAreNamed(t *testing.T) {
	start := time.Date(2030, 1, 7, 0, 0, 0, 0, time.UTC)
	again := 10 * time.Minute
	r := &record.Report{End: start.Add(time.Hour), Disruptions: []record.Disruption{
		{At: start, Pod: "default/a", Node: "n", Reason: "consolidation"},
		{At: start, Pod: "default/b", Node: "n", Reason: "consolidation", Before: &again},
		{At: start, Pod: "default/c", Node: "n", Reason: record.Interruption, Before: &again},
	}}
	broken := Broken(r)
	if len(broken) != 1 || !strings.Contains(broken[0], "default/b") {
		t.Errorf("%q, want the second move of b only: a was moved once, the machine of c was taken back", broken)
	}
}
