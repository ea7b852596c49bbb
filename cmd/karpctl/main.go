// Karpctl asks the functions of the controller offline: what would be bought
// for these pods, and why not.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // something could not be read or done
	exitUsage  = 2 // the command line is wrong
	// exitDiffers is for commands that compare, whose other errors are exitFailed:
	// whoever acts on it must not take an error for it.
	exitDiffers = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := runAs(ctx, program(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// errUsage marks a command line that cannot be understood.
type errUsage struct{ error }

func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	return runAs(ctx, "karpctl", args, in, out, errOut)
}

// runAs runs under the name by which the program was called.
func runAs(ctx context.Context, name string, args []string, in io.Reader, out, errOut io.Writer) int {
	var root *cobra.Command
	unknown := func(command string) error {
		err := fmt.Errorf("%s: no such command; see '%s --help'", command, name)
		if near := root.SuggestionsFor(command); len(near) > 0 {
			err = fmt.Errorf("%s: no such command; did you mean %s? See '%s --help'", command, strings.Join(near, " or "), name)
		}
		return errUsage{err}
	}
	root = &cobra.Command{
		Use:   "karpctl",
		Short: "Ask the node autoscaler what it would do, and why",
		Long: `Karpctl asks the functions of the controller: what would be bought for these
pods, why that one waits, what would become of a change before it is made.

Nothing that it does changes a cluster. As kubectl-karpenter in the PATH it is a
plugin of kubectl: kubectl karpenter plan …`,
		Annotations:                map[string]string{cobra.CommandDisplayNameAnnotation: name},
		SilenceErrors:              true,
		SilenceUsage:               true,
		SuggestionsMinimumDistance: 2,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknown(args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if cmd == root && !strings.HasPrefix(args[0], "-") {
			return unknown(args[0]) // rather than a word about its flags
		}
		return errUsage{fmt.Errorf("%w; see '%s --help'", err, cmd.CommandPath())}
	})
	root.AddCommand(planCommand(), runCommand(), convertCommand(), explainCommand(), whyCommand(), dumpCommand(), replayCommand())
	cmd, err := root.ExecuteContextC(ctx)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errDiffers): // the answer was printed
		return exitDiffers
	}
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintln(errOut, "karpctl:", strings.TrimSuffix(line, "\n"))
	}
	var usage errUsage
	if errors.As(err, &usage) && cmd.Annotations[compares] == "" && !slices.Contains(args, "--live") {
		return exitUsage
	}
	return exitFailed
}
