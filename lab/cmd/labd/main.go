// Command labd is the supervisor of the lab and the player of the demo. It is
// built and started by cmd/lab.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"karpenter/lab"
	"karpenter/lab/demo"
	"karpenter/sim/ec2"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return
		}
		if ctx.Err() != nil {
			fmt.Fprintln(os.Stderr, "lab: interrupted")
			os.Exit(130)
		}
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	root := flag.String("root", "", "folder of the repository")
	flag.Parse()
	args := flag.Args()
	if *root == "" || len(args) == 0 {
		return errors.New("labd is started by lab/cmd/lab")
	}
	flags := flag.NewFlagSet("lab "+args[0], flag.ContinueOnError)
	state := flags.String("state", filepath.Join(*root, ".lab"), "`folder` of the lab's files")
	switch args[0] {
	case "up":
		noController := flags.Bool("no-controller", false, "leave the controller out, to run it by hand with the settings in .lab/env")
		region := flags.String("region", "us-west-2", "region of the simulated EC2")
		foreground := flags.Bool("foreground", false, "stay; Ctrl-C ends the lab")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		opt := lab.Options{Root: *root, State: *state, NoController: *noController, Cloud: ec2.Options{Region: *region}, Log: os.Stderr}
		if *foreground {
			return serve(ctx, opt)
		}
		return up(ctx, *root, *state, args[1:])
	case "down":
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return lab.Down(ctx, *root, *state)
	case "status":
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return status(*state)
	case "demo":
		keep := flags.Bool("keep", false, "leave the lab running")
		api := flags.String("api", "v1alpha5", "version of the API that is played: v1alpha5 or v1")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		edition, err := demo.EditionOf(*api)
		if err != nil {
			return err
		}
		return play(ctx, *root, *state, edition, *keep)
	case "chart", "workshop":
		*state = filepath.Join(*root, ".lab", args[0])
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		if args[0] == "chart" {
			return chart(ctx, *root, *state)
		}
		return playWorkshop(ctx, *root, *state)
	}
	return fmt.Errorf("unknown command %q", args[0])
}

// serve runs the lab until the context ends.
func serve(ctx context.Context, opt lab.Options) error {
	l, err := lab.Start(ctx, opt)
	if err != nil {
		return err
	}
	s, err := lab.ReadState(opt.State)
	if err != nil {
		return errors.Join(err, l.Stop())
	}
	fmt.Print(s.Describe(opt.State))
	<-ctx.Done()
	return l.Stop()
}
