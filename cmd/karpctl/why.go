package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"karpenter/internal/journal"
)

func whyCommand() *cobra.Command {
	var (
		from         source
		format, kind string
		since        time.Duration
		most         int
		want         journal.Filter
	)
	cmd := &cobra.Command{
		Use:   "why",
		Short: "Show what was decided, when, from what, and what came of it",
		Long: `Why shows the journal of the controller: where pods were sent, which machines were
bought and what else there was to choose from, which machines were removed and why
not others, and what came of it. It is kept in the cluster, in ConfigMaps, so it
outlives nodes and the controller; the oldest entries go when there are too many.

With --node or --pod come the entries that name it, and those that belong to the
same commands. An entry of kind provision or disrupt can be replayed as long as
the controller has its inputs: karpctl dump --seq N.

Exit code 0: shown, or there is none; 1: the journal could not be read; 2: wrong
command line.`,
		Example: `  # why is this node gone?
  karpctl why --node ip-10-0-1-17.us-west-2.compute.internal

  # what happened to a pod in the last hour
  karpctl why --pod default/web-0 --since 1h

  # all machines that were bought, for a program
  karpctl why --kind bought -o json`,
		Args: none,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := knownFormat(format); err != nil {
				return err
			}
			if want.Kind = journal.Kind(kind); kind != "" && !slices.Contains(journal.Kinds(), want.Kind) {
				return errUsage{fmt.Errorf("--kind %s: no such kind; choose one of %v", kind, journal.Kinds())}
			}
			if since > 0 {
				want.Since = time.Now().Add(-since)
			}
			done := progress(cmd.ErrOrStderr(), "reading the journal")
			defer done()
			c, err := from.cluster()
			if err != nil {
				return err
			}
			all, notes, err := c.Journal(cmd.Context())
			if err != nil {
				return err
			}
			for _, n := range notes {
				fmt.Fprintln(cmd.ErrOrStderr(), "note:", n)
			}
			return showJournal(cmd.OutOrStdout(), cmd.ErrOrStderr(), format, journal.Select(all, want), most)
		},
	}
	from.clusterFlags(cmd)
	outputFlag(cmd, &format, "table")
	cmd.Flags().StringVar(&want.Node, "node", "", "entries about this node or NodeClaim")
	cmd.Flags().StringVar(&want.Pod, "pod", "", "entries about this pod, as namespace/name or name")
	cmd.Flags().StringVar(&kind, "kind", "", fmt.Sprintf("entries of this kind, one of %v", journal.Kinds()))
	cmd.Flags().DurationVar(&since, "since", 0, "entries of this last time, e.g. 2h")
	cmd.Flags().IntVar(&most, "last", 100, "how many entries at most, the newest; 0: all")
	_ = cmd.RegisterFlagCompletionFunc("kind", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		var out []string
		for _, k := range journal.Kinds() {
			out = append(out, string(k))
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

// showJournal prints entries: the table has the story, JSON and YAML all there is.
func showJournal(out, notes io.Writer, format string, entries []journal.Entry, most int) error {
	if most > 0 && len(entries) > most {
		fmt.Fprintf(notes, "note: %d older entries are not shown; --last 0 shows all\n", len(entries)-most)
		entries = entries[len(entries)-most:]
	}
	if entries == nil {
		entries = []journal.Entry{}
	}
	return write(out, format, entries, func(w io.Writer) error {
		if len(entries) == 0 {
			_, err := fmt.Fprintln(w, "no entry")
			return err
		}
		for _, e := range entries {
			fmt.Fprintf(w, "%s  #%-5d %-11s %s\n", e.Time.UTC().Format("2006-01-02 15:04:05"), e.Seq, e.Kind, e.Summary)
			if e.Inputs != (journal.Inputs{}) && e.Kind != journal.Tally {
				fmt.Fprintf(w, "    from: %d pods without a place, %d machines for %s\n", e.Inputs.Pending, e.Inputs.Machines, e.Inputs.PerHour)
			}
			for _, a := range e.Alternatives {
				fmt.Fprintf(w, "    else: %s\n", a)
			}
		}
		return nil
	})
}
