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

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // something could not be read or done
	exitUsage  = 2 // the command line is wrong
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// errUsage marks a command line that cannot be understood.
type errUsage struct{ error }

func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	root := &cobra.Command{
		Use:           "karpctl",
		Short:         "Ask the node autoscaler what it would do, and why",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return errUsage{fmt.Errorf("%w; see '%s --help'", err, cmd.CommandPath())}
	})
	root.AddCommand(planCommand())
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintln(errOut, "karpctl:", err)
	var usage errUsage
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailed
}
