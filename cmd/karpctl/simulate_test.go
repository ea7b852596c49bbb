package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"karpenter/internal/scenario"
	"karpenter/internal/scenario/cases"
	"karpenter/sim/rig/play"
)

// What programs read and what is drawn come from the same run, and a second run
// gives the same bytes.
func TestSimulateForPrograms(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/simulate-before-after.txtar")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range archive.Files {
		if err := os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	once := func(plot string) (answer, drawing string) {
		var out, errOut bytes.Buffer
		args := []string{"run", filepath.Join(dir, "scene.yaml"), "--with", filepath.Join(dir, "changed.yaml"), "-o", "json", "--plot", filepath.Join(dir, plot)}
		if code := run(context.Background(), args, nil, &out, &errOut); code != exitOK {
			t.Fatalf("exit code %d: %s", code, errOut.String())
		}
		text, err := os.ReadFile(filepath.Join(dir, plot))
		if err != nil {
			t.Fatal(err)
		}
		return out.String(), string(text)
	}
	first, page := once("a.html")
	again, samePage := once("b.html")
	if first != again || page != samePage {
		t.Error("the second run differs from the first")
	}
	var answer map[string]struct {
		Total struct {
			USD      float64 `json:"usd"`
			OnDemand float64 `json:"onDemandMachineHours"`
			Spot     float64 `json:"spotMachineHours"`
		} `json:"total"`
		Hours []any `json:"hours"`
		Pods  struct {
			Pods int `json:"pods"`
		} `json:"pods"`
	}
	if err := json.Unmarshal([]byte(first), &answer); err != nil {
		t.Fatal(err)
	}
	before, after := answer["before"], answer["after"]
	if len(before.Hours) != 3 || before.Pods.Pods != 9 || before.Total.Spot != 0 || after.Total.OnDemand != 0 || after.Total.USD >= before.Total.USD {
		t.Errorf("before %+v, after %+v; want three hours and nine pods, on demand before and cheaper spot after", before, after)
	}
	for _, part := range []string{"<!DOCTYPE html>", "<svg ", "<caption>Totals</caption>", "<td>0.90</td><td>0.36</td>"} {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %s", part)
		}
	}
}

// The example of the documentation runs, with what it is compared to.
func TestExampleOfASimulation(t *testing.T) {
	docs, err := scenario.Documents([]string{examples + "simulate"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := cases.ReadScenario(docs)
	if err != nil {
		t.Fatal(err)
	}
	others, err := cases.ReadObjects([]string{examples + "simulate-spot"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Shrink(1, 90*time.Minute); err != nil {
		t.Fatal(err)
	}
	after, changes := s.With(others)
	if len(changes) != 1 || !strings.HasSuffix(changes[0], "is exchanged") {
		t.Errorf("%q: want the NodePool to be exchanged", changes)
	}
	r, err := play.Simulate(after, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Total.Spot == 0 || r.Total.OnDemand != 0 {
		t.Errorf("spot for %s, on demand for %s: want spot, which is cheaper", r.Total.Spot, r.Total.OnDemand)
	}
}
