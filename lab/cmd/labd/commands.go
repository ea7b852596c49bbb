package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"karpenter/lab"
	"karpenter/lab/process"
)

// up starts a lab in the background and returns when it is ready.
func up(ctx context.Context, root, state string, args []string) error {
	if s, err := lab.ReadState(state); err == nil && s.Ready && s.Running(state) {
		fmt.Print("The lab is already running.\n" + s.Describe(state))
		return nil
	}
	began := time.Now()
	if err := startSupervisor(ctx, root, state, args); err != nil {
		return err
	}
	s, err := lab.ReadState(state)
	if err != nil {
		return err
	}
	fmt.Printf("The lab is running (started in %.1f s).\n%s", time.Since(began).Seconds(), s.Describe(state))
	return nil
}

// startSupervisor starts this program again as a supervisor of its own and
// waits until its lab is ready.
func startSupervisor(ctx context.Context, root, state string, args []string) error {
	if err := os.MkdirAll(filepath.Join(state, "logs"), 0o755); err != nil {
		return err
	}
	if s, err := lab.ReadState(state); err == nil && !s.Running(state) {
		fmt.Printf("The lab that ran since %s was killed; what it left is removed first.\n", s.Started.Format(time.TimeOnly))
	}
	path := filepath.Join(state, "logs", "lab.log")
	log, err := os.Create(path)
	if err != nil {
		return err
	}
	defer log.Close()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, append([]string{"--root", root, "up", "--foreground", "--state", state}, args...)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		s, err := lab.ReadState(state)
		if err == nil && s.Ready && s.Supervisor.PID == cmd.Process.Pid {
			return nil
		}
		select {
		case err := <-ended:
			text, _ := os.ReadFile(path)
			return fmt.Errorf("the lab did not start: %w; %s says:\n%s", err, path, tail(text, 3000))
		case <-ctx.Done():
			_ = cmd.Process.Signal(syscall.SIGTERM)
			<-ended
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func tail(text []byte, n int) string {
	if len(text) > n {
		text = text[len(text)-n:]
	}
	return string(text)
}

func status(state string) error {
	s, err := lab.ReadState(state)
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Println("No lab is running.")
		return nil
	}
	if err != nil {
		return err
	}
	if !s.Running(state) {
		fmt.Println("The lab's supervisor is gone (it was killed). `make lab-down` or the next start removes what it left.")
	} else {
		fmt.Printf("The lab is running since %s.\n%s", s.Started.Format(time.TimeOnly), s.Describe(state))
	}
	for _, r := range append([]process.Record{s.Supervisor, s.Controller}, s.Processes...) {
		if r.Alive(state) {
			now, _ := process.MemoryMiB(r.PID)
			fmt.Printf("  %-24s pid %-8d %5.0f MiB\n", r.Name, r.PID, now)
		}
	}
	return nil
}
