package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"karpenter/lab/process"
)

// motoTimeout is long: Python takes its time on a busy machine.
const motoTimeout = 2 * time.Minute

var motoURL = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// startMoto starts moto_server, an emulator of AWS that knows CloudFormation,
// IAM, EKS and STS, on a free port, for the life of the lab, and returns its
// URL.
func (l *Lab) startMoto(ctx, life context.Context) (string, error) {
	program, err := exec.LookPath("moto_server")
	if err != nil {
		return "", errors.New("moto_server is not installed (pip install 'moto[server]')")
	}
	path := filepath.Join(l.opt.State, "logs", "moto.log")
	log, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer log.Close()
	// A certificate without its key is not used; it marks the process as ours.
	cmd := exec.Command(program, "-H", "127.0.0.1", "-p", "0", "-c", filepath.Join(l.opt.State, "unused"))
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, l.opt.State
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	l.store.add(process.Recorded("moto_server", cmd.Process.Pid))
	ended := make(chan error, 1)
	l.work.Go(func() error {
		stop := context.AfterFunc(life, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
		defer stop()
		ended <- cmd.Wait()
		return nil
	})
	ctx, cancel := context.WithTimeout(ctx, motoTimeout)
	defer cancel()
	for {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		if url := motoURL.Find(text); url != nil {
			return string(url), nil
		}
		select {
		case err := <-ended:
			return "", fmt.Errorf("moto_server ended: %w; it said: %s", err, text)
		case <-ctx.Done():
			return "", fmt.Errorf("moto_server does not say where it listens: %s", path)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
