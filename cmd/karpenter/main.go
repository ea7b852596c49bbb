// Command karpenter buys machines for pods that find no place, and removes
// those that are no longer wanted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"karpenter/internal/app"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := app.Run(ctx, os.Args[1:], os.LookupEnv, os.Stdout); {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "karpenter:", err)
		os.Exit(1)
	}
}
