package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"karpenter/lab"
	"karpenter/lab/build"
	"karpenter/lab/charttest"
	"karpenter/lab/workshop"
)

// chart tries the charts with the helm commands.
func chart(ctx context.Context, root, state string) error {
	return with(ctx, lab.Options{Root: root, State: state, NoController: true}, func(l *lab.Lab, helms []string) error {
		return charttest.Run(ctx, charttest.Options{Root: root, State: state, Lab: l, Helms: helms, Out: os.Stdout})
	})
}

// playWorkshop plays the page.
func playWorkshop(ctx context.Context, root, state string) error {
	return with(ctx, lab.Options{Root: root, State: state, NoController: true, SystemNodes: 3, Moto: true}, func(l *lab.Lab, helms []string) error {
		s, err := lab.ReadState(state)
		if err != nil {
			return err
		}
		return workshop.Play(ctx, workshop.Options{Root: root, State: state, Lab: l, Env: s.Env(), Helm: helms[0], OlderHelm: helms[1], Out: os.Stdout})
	})
}

// with does something in a lab of its own, with the folders of the helm commands,
// and stops the lab.
func with(ctx context.Context, opt lab.Options, do func(l *lab.Lab, helms []string) error) (err error) {
	helms, err := build.Helm(filepath.Join(opt.Root, "charts"))
	if err != nil {
		return err
	}
	var folders []string
	for _, p := range helms {
		folders = append(folders, p.Out)
	}
	if err := os.MkdirAll(filepath.Join(opt.State, "logs"), 0o755); err != nil {
		return err
	}
	path := filepath.Join(opt.State, "logs", "lab.log")
	log, err := os.Create(path)
	if err != nil {
		return err
	}
	defer log.Close()
	opt.Log = log
	began := time.Now()
	l, err := lab.Start(ctx, opt)
	if err != nil {
		return fmt.Errorf("%w; more in %s", err, path)
	}
	defer func() { err = errors.Join(err, l.Stop()) }()
	fmt.Printf("The lab is running (%.1f s); its files are in %s.\n", time.Since(began).Seconds(), opt.State)
	return do(l, folders)
}
