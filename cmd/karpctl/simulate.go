package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"karpenter/internal/scenario"
	"karpenter/internal/scenario/cases"
	"karpenter/sim/rig/chart"
	"karpenter/sim/rig/play"
	"karpenter/sim/rig/record"
)

// simulation is what to do with a scenario.
type simulation struct {
	with   []string // objects to be exchanged
	plot   string
	format string
	stdin  io.Reader
	out    io.Writer
	errOut io.Writer
}

// given reports whether a flag asks for a scenario.
func (s *simulation) given() bool { return len(s.with) > 0 || s.plot != "" }

// scenarioIn returns the documents of a path if they are a scenario.
func scenarioIn(path string, stdin io.Reader) ([]scenario.Document, bool) {
	if _, err := os.Stat(filepath.Join(path, "expect.md")); err == nil {
		return nil, false
	}
	docs, err := scenario.Documents([]string{path}, stdin)
	return docs, err == nil && cases.IsScenario(docs)
}

// run runs a scenario, and once more with what is to be exchanged.
func (s *simulation) run(docs []scenario.Document) error {
	if ext := filepath.Ext(s.plot); s.plot != "" && ext != ".svg" && ext != ".html" {
		return errUsage{fmt.Errorf("--plot %s: is drawn as .svg or as .html", s.plot)}
	}
	before, err := cases.ReadScenario(docs)
	if err != nil {
		return err
	}
	names, scenarios := []string{before.Metadata.Name}, []*cases.Scenario{before}
	if len(s.with) > 0 {
		others, err := cases.ReadObjects(s.with, s.stdin)
		if err != nil {
			return err
		}
		after, changes := before.With(others)
		names, scenarios = []string{"before", "after"}, append(scenarios, after)
		for _, c := range changes {
			fmt.Fprintln(s.errOut, c)
		}
	}
	var runs []chart.Run
	for i, one := range scenarios {
		report, err := play.Simulate(one, s.progress(names[i], one.Length.Duration))
		if err != nil {
			return fmt.Errorf("%s: %w", names[i], err)
		}
		runs = append(runs, chart.Run{Name: names[i], Report: report})
	}
	return errors.Join(s.print(runs), s.draw(before.Metadata.Name, runs))
}

// progress tells people how far a run is, every few seconds.
func (s *simulation) progress(name string, length time.Duration) func(time.Duration) {
	if _, file := s.errOut.(*os.File); !file {
		return nil
	}
	last := time.Now()
	return func(at time.Duration) {
		if time.Since(last) >= again {
			last = time.Now()
			fmt.Fprintf(s.errOut, "%s … %.0f of %.0f hours\n", name, at.Hours(), length.Hours())
		}
	}
}

// tables are what people read.
func tables(runs []chart.Run) []chart.Table {
	out := []chart.Table{chart.Totals(runs...)}
	for _, r := range runs {
		out = append(out, chart.Hourly(r))
	}
	return out
}

func (s *simulation) print(runs []chart.Run) error {
	answer := map[string]any{}
	for _, r := range runs {
		answer[r.Name] = map[string]any{"total": r.Total, "hours": r.Hours, "pods": r.Waited(), "owners": r.Owners(), "disruptions": append([]record.Disruption{}, r.Disruptions...)}
	}
	return write(s.out, s.format, answer, func(w io.Writer) error {
		list := tables(runs)
		for i := range list { // totals last: they are what stays on the screen
			t := list[(i+1)%len(list)]
			fmt.Fprintln(w, t.Caption)
			if err := columns(w, t.Head, t.Rows); err != nil {
				return err
			}
			if i+1 < len(list) {
				fmt.Fprintln(w)
			}
		}
		return nil
	})
}

func (s *simulation) draw(title string, runs []chart.Run) error {
	text := ""
	switch strings.ToLower(filepath.Ext(s.plot)) {
	case ".svg":
		text = chart.SVG(title, runs...)
	case ".html":
		text = chart.Page(title, tables(runs), runs...)
	default:
		return nil
	}
	if err := os.WriteFile(s.plot, []byte(text), 0o644); err != nil {
		return fmt.Errorf("--plot: %w", err)
	}
	return nil
}
