package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"karpenter/internal/dump"
	"karpenter/internal/live"
)

func dumpCommand() *cobra.Command {
	var (
		from source
		kind string
		seq  string
		hash bool
	)
	cmd := &cobra.Command{
		Use:   "dump FILE",
		Short: "Write what a decision is made from, and the decision, into a file",
		Long: `Dump writes the moment from which the controller decides into a file: pools,
nodes, pods, what can be bought, settings and limits, and what is decided from it.
'karpctl replay' makes the decision again, on any machine. FILE - is stdout.

It holds no secret, no environment of containers, no user data and no annotation
that is not a switch. Names, labels and resources of pods and nodes are in it;
with --hash-names they are replaced by others, and labels that people define too.

The moment is now, of a cluster, of manifests (-f) or of another dump (--dump); or
with --seq that of an entry of the controller's journal (see 'karpctl why').

Exit code 0: written; 1: something could not be read or written; 2: wrong command
line.`,
		Example: `  # where pods would go now, without names, for a bug report
  karpctl dump --hash-names report.json.gz

  # which machines would go now
  karpctl dump --kind disrupt report.json.gz

  # the decision with number 512 of the journal
  karpctl dump --seq 512 report.json.gz`,
		Args: one("the file to write"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if seq != "" && from.offline() {
				return errUsage{errors.New("--seq: the journal is the controller's; leave -f and --dump out")}
			}
			w, err := decision(cmd, &from, dump.Kind(kind), seq)
			if err != nil {
				return err
			}
			d := w.Dump
			if hash {
				if d, err = d.HashNames(rand.Text()); err != nil {
					return err
				}
			}
			return save(args[0], d, cmd.OutOrStdout())
		},
	}
	from.flags(cmd)
	cmd.Flags().StringVar(&kind, "kind", "", "schedule (where pods go; the default) or disrupt (which machines go)")
	cmd.Flags().StringVar(&seq, "seq", "", "number of an entry of the controller's journal")
	cmd.Flags().BoolVar(&hash, "hash-names", false, "replace names by others that nobody can guess")
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions([]string{string(dump.Schedule), string(dump.Disrupt)}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// decision reads a moment together with a decision.
func decision(cmd *cobra.Command, from *source, kind dump.Kind, seq string) (*live.World, error) {
	if kind != "" && kind != dump.Schedule && kind != dump.Disrupt {
		return nil, errUsage{fmt.Errorf("--kind %s: no such decision; choose %s or %s", kind, dump.Schedule, dump.Disrupt)}
	}
	if seq != "" {
		defer progress(cmd.ErrOrStderr(), "asking the controller")()
		c, err := from.cluster()
		if err != nil {
			return nil, err
		}
		return c.Decision(cmd.Context(), seq)
	}
	w, err := from.read(cmd)
	if err != nil {
		return nil, err
	}
	if kind == "" && w.Decision != nil {
		return w, nil // of a dump
	}
	if kind == "" {
		kind = dump.Schedule
	}
	defer progress(cmd.ErrOrStderr(), "deciding")()
	return w, w.Record(kind, nil)
}

// save writes the file whole or not at all.
func save(file string, d *dump.Dump, out io.Writer) error {
	var packed bytes.Buffer
	if err := d.Write(&packed); err != nil {
		return err
	}
	if file == "-" {
		_, err := out.Write(packed.Bytes())
		return err
	}
	return os.WriteFile(file, packed.Bytes(), 0o600)
}

func replayCommand() *cobra.Command {
	var format, kind string
	cmd := &cobra.Command{
		Use:   "replay FILE",
		Short: "Make the decision of a dump again",
		Long: `Replay makes the decision of a dump again and prints it. It asks no cluster, no
cloud and no clock, so the same dump gives the same bytes on any machine of the same
architecture.

Exit code 0: it is the decision that the dump holds; 1: the dump could not be read,
or the command line is wrong; 2: it is another one, as after a change of the
program.`,
		Example: `  karpctl replay report.json.gz
  karpctl replay report.json.gz -o json | jq '.machines[].options[0]'

  # another decision at the same moment
  karpctl replay --kind disrupt report.json.gz`,
		Annotations: comparing,
		Args:        one("the dump"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := knownFormat(format); err != nil {
				return err
			}
			w, err := live.Dumped(args[0], cmd.InOrStdin())
			if err != nil {
				return err
			}
			defer progress(cmd.ErrOrStderr(), "deciding")()
			if kind != "" && (w.Decision == nil || string(w.Decision.Kind) != kind) {
				a, err := w.Decide(dump.Kind(kind))
				if err != nil {
					return errUsage{fmt.Errorf("--kind: %w", err)}
				}
				return write(cmd.OutOrStdout(), format, a, func(w io.Writer) error { return text(w, a.Text()) })
			}
			a, same, err := w.Replay()
			if err != nil {
				return err
			}
			if err := write(cmd.OutOrStdout(), format, a, func(w io.Writer) error { return text(w, a.Text()) }); err != nil {
				return err
			}
			if !same {
				fmt.Fprintln(cmd.ErrOrStderr(), "this is not the decision that the dump holds; was it made by another version?")
				return errDiffers
			}
			return nil
		},
	}
	outputFlag(cmd, &format, "table")
	cmd.Flags().StringVar(&kind, "kind", "", "schedule or disrupt (default: that of the dump)")
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions([]string{string(dump.Schedule), string(dump.Disrupt)}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}
