package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"karpenter/internal/scenario/cases"
	"karpenter/sim/rig/play"
)

// errChecks says that a case was played and did not go as expected.
var errChecks = errors.New("some checks failed")

func runCommand() *cobra.Command {
	var format string
	var verbose bool
	sim := simulation{}
	cmd := &cobra.Command{
		Use:   "run CASE_DIR… | run SCENARIO",
		Short: "Play cases, or a workload over time, on a simulated cluster",
		Long: `Run plays cases: a cluster, a cloud and steps in input.yaml, and what must be true
afterwards in expect.md (test/cases/README.md describes the format). The whole
controller runs on a simulated API server and a simulated EC2, on virtual time,
so a case of hours takes a moment, and the same case always goes the same way.

A scenario is a file or folder of manifests of which one document, a Simulation,
says what the workload is over time (docs/simulate.md). What comes of it is
printed: cost, machines, pending seconds and disruptions hour by hour. With --with
the scenario runs once more with some of its objects exchanged, so that you see
what a change of a Provisioner or NodePool would have done before you make it.

Exit code 0: every check holds; 1: one does not, or a case could not be read or
played; 2: wrong command line.`,
		Example: `  karpctl run test/cases/case-34-*
  karpctl run -v test/cases/case-77-*     # with everything that happened

  # what would a day cost, and what would it cost with another NodePool?
  karpctl run examples/simulate --with changed.yaml --plot report.html`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errUsage{errors.New("name at least one directory with a case, or a scenario")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if format == "text" {
				format = "table"
			}
			if err := knownFormat(format); err != nil {
				return err
			}
			if docs, is := scenarioIn(args[0], cmd.InOrStdin()); is && len(args) == 1 {
				sim.format, sim.stdin, sim.out, sim.errOut = format, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
				return sim.run(docs)
			}
			if sim.given() {
				return errUsage{fmt.Errorf("--with and --plot are for one scenario, and %s is none: it has no document of kind Simulation (docs/simulate.md)", args[0])}
			}
			defer progress(cmd.ErrOrStderr(), "playing")()
			return playAll(cmd.OutOrStdout(), args, format, verbose)
		},
	}
	outputFlag(cmd, &format, "table")
	cmd.Flags().StringSliceVar(&sim.with, "with", nil, "file or folder with objects that take the place of those of the scenario; may be repeated")
	cmd.Flags().StringVar(&sim.plot, "plot", "", "draw it into this file, as .svg or .html")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "print what happened, with virtual times")
	return cmd
}

// playAll plays the cases one after the other. What cannot be played counts as
// one failed check.
func playAll(w io.Writer, dirs []string, format string, verbose bool) error {
	var reports []*play.Report
	passed, failed := 0, 0
	for _, dir := range dirs {
		report, err := playOne(dir, verbose)
		if err != nil {
			report = &play.Report{Case: dir, Results: []play.Result{{Result: cases.Result{Check: "can be played", Why: err.Error()}}}}
		}
		bad := report.Failed()
		passed, failed = passed+len(report.Results)-bad, failed+bad
		reports = append(reports, report)
		if format != "table" {
			continue
		}
		if err := show(w, report); err != nil {
			return err
		}
	}
	err := write(w, format, map[string]any{"cases": reports, "passed": passed, "failed": failed}, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%d passed, %d failed\n", passed, failed)
		return err
	})
	if err == nil && failed > 0 {
		return errChecks
	}
	return err
}

func playOne(dir string, verbose bool) (*play.Report, error) {
	c, err := cases.Read(dir)
	if err != nil {
		if inside, _ := filepath.Glob(filepath.Join(dir, "case-*", "input.yaml")); len(inside) > 0 {
			return nil, fmt.Errorf("holds cases and is none: name the cases: %s", filepath.Join(dir, "case-*"))
		}
		return nil, err
	}
	return play.Play(c, verbose)
}

// show prints a case: one line per check.
func show(w io.Writer, r *play.Report) error {
	for _, line := range r.Timeline {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	for _, one := range r.Results {
		verdict, why := "ok  ", ""
		if !one.OK {
			verdict, why = "FAIL", ": "+one.Why
		}
		at := ""
		if one.At != "" {
			at = " at " + one.At
		}
		if _, err := fmt.Fprintf(w, "%s %s%s: %s%s\n", verdict, r.Case, at, one.Check, why); err != nil {
			return err
		}
	}
	return nil
}
