// Command lab runs a whole cluster on this machine, and the demo on it.
//
//	lab up         start it in the background
//	lab down       end it
//	lab status     say what runs
//	lab demo       play the demo; --keep leaves the lab running, --api=v1 plays
//	               it with a NodePool
//	lab chart      try the charts with the helm commands
//	lab workshop   play docs/getting-started.md in a lab of its own
//	lab build      build its programs and stop there
//
// It builds what is missing, which takes minutes the first time, and hands
// over to the supervisor (labd). It imports the standard library only, so that
// it starts within seconds on a machine with empty caches.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"karpenter/lab/build"
)

const usage = "usage: lab up|down|status|demo|chart|workshop|build; lab up --help lists the flags of up"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		if ctx.Err() != nil {
			fmt.Fprintln(os.Stderr, "\nlab: interrupted")
			os.Exit(130)
		}
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	root, err := findRoot()
	if err != nil {
		return err
	}
	state := filepath.Join(root, ".lab")
	supervisor := build.Supervisor(root, state)
	programs := []build.Program{supervisor, build.Controller(root, state)}
	switch args[0] {
	case "up", "demo", "build", "chart", "workshop":
		plane, err := build.ControlPlane(filepath.Join(root, "lab"))
		if err != nil {
			return err
		}
		programs = append(plane, programs...)
		if args[0] == "chart" || args[0] == "workshop" {
			helms, err := build.Helm(filepath.Join(root, "charts"))
			if err != nil {
				return err
			}
			programs = append(programs, helms...)
		}
	case "down", "status":
		if _, err := os.Stat(filepath.Join(state, "state.json")); errors.Is(err, os.ErrNotExist) {
			fmt.Println("No lab is running.")
			return nil
		}
		programs = programs[:1]
	default:
		return errors.New(usage)
	}
	if err := build.Ensure(ctx, programs, build.NewProgress(os.Stderr)); err != nil {
		return err
	}
	// The sources may be newer than the supervisor; it rebuilds the controller
	// itself, while the control plane starts. A lab that runs can be looked at
	// and ended by the supervisor that started it, also when the sources are
	// broken.
	if args[0] != "down" && args[0] != "status" {
		if err := build.Refresh(ctx, supervisor, build.NewProgress(os.Stderr)); err != nil || args[0] == "build" {
			return err
		}
	}
	return syscall.Exec(supervisor.Path(), append([]string{supervisor.Path(), "--root", root}, args...), os.Environ())
}

// findRoot finds the repository from the present folder upwards.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "lab", "cmd", "labd")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("not inside the repository: no folder lab/cmd/labd here or above")
		}
		dir = parent
	}
}
