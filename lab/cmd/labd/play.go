package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"karpenter/lab"
	"karpenter/lab/demo"
)

// play plays the demo in the lab that runs, or in one that it starts and, in
// the end, stops.
func play(ctx context.Context, root, state string, edition demo.Edition, keep bool) (err error) {
	screen := demo.NewScreen(os.Stdout)
	d := &demo.Demo{Root: root, State: state, Screen: screen, Edition: edition}
	if s, readErr := lab.ReadState(state); readErr == nil && s.Ready && s.Running(state) {
		screen.Say("Using the lab that is running.")
		keep = true
	} else {
		screen.Say("Starting a Kubernetes control plane, a simulated EC2 and the controller ...")
		began := time.Now()
		if err := startSupervisor(ctx, root, state, nil); err != nil {
			return err
		}
		screen.Say("The lab is running (%.1f s).", time.Since(began).Seconds())
	}
	if !keep {
		defer func() {
			// Also after Ctrl-C, when ctx has ended.
			stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
			defer cancel()
			err = errors.Join(err, lab.Down(stop, root, state))
			fmt.Println("The lab is stopped.")
		}()
	}
	if err := d.Play(ctx); err != nil {
		return err
	}
	if keep {
		d.TryNext()
	}
	return nil
}
