package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/lab/process"
)

// restartDelay is how long after its end a process is started again.
const restartDelay = time.Second

// life is one pod, from its binding to its end.
type life struct {
	runner *Runner
	pod    *corev1.Pod
	ip     string
	// stop gets the grace period once the pod is to end.
	stop chan time.Duration
	log  *slog.Logger

	mu      sync.Mutex
	process *os.Process // nil while it does not run
	metrics string      // port
	ready   bool
	starts  int
}

// end asks the pod to end; only the first call counts.
func (l *life) end(grace time.Duration) {
	select {
	case l.stop <- grace:
	default:
	}
}

func (l *life) running() Process {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.process == nil {
		return Process{}
	}
	return Process{PID: l.process.Pid, MetricsURL: "http://" + loopback + ":" + l.metrics + "/metrics"}
}

// run runs the pod's process, again and again, until the pod is deleted or the
// context ends.
func (l *life) run(ctx context.Context) {
	for {
		ended, err := l.once(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case ended:
			l.bury(ctx)
			return
		}
		reason := "the process ended"
		if err != nil {
			reason = err.Error()
		}
		l.log.Error("a pod's process ended; it is started again", "reason", reason)
		l.report(ctx, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: reason}}, corev1.PodRunning)
		select {
		case <-ctx.Done():
			return
		case <-l.stop:
			l.bury(ctx)
			return
		case <-time.After(restartDelay):
		}
	}
}

// once runs the process until it ends by itself (with the error that says how),
// or until the pod is to end.
func (l *life) once(ctx context.Context) (ended bool, err error) {
	folder := filepath.Join(l.runner.opt.Folder, l.pod.Namespace+"_"+l.pod.Name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return false, err
	}
	env, ports, err := l.runner.environment(ctx, l.pod, folder)
	if err != nil {
		return false, err
	}
	logs, err := openLog(filepath.Join(folder, "log"))
	if err != nil {
		return false, err
	}
	defer logs.Close()
	if err := l.runner.serveLogs(ctx, l.pod, logs.path); err != nil {
		return false, err
	}
	c := container(l.pod)
	cmd := exec.Command(l.runner.opt.Program, c.Args...)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.Dir = env, logs, logs, folder
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	l.runner.opt.Started(process.Recorded(l.pod.Name, cmd.Process.Pid))
	l.set(func() {
		l.process, l.metrics, l.ready, l.starts = cmd.Process, ports["http-metrics"], false, l.starts+1
	})
	l.log.Info("a pod's process runs", "pid", cmd.Process.Pid, "start", l.starts)
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
	l.report(ctx, running, corev1.PodRunning)

	probing, quit := context.WithCancel(ctx)
	var probes sync.WaitGroup
	probes.Go(func() {
		l.probe(probing, c.ReadinessProbe, ports, func(ok bool) {
			l.set(func() { l.ready = ok })
			l.report(ctx, running, corev1.PodRunning)
		})
	})
	probes.Go(func() {
		l.probe(probing, c.LivenessProbe, ports, func(ok bool) {
			if !ok {
				l.log.Error("a pod's process is not alive; it is killed")
				_ = cmd.Process.Kill()
			}
		})
	})
	finished := make(chan error, 1)
	go func() { finished <- cmd.Wait() }()
	ended, err = l.wait(ctx, cmd.Process, finished)
	quit()
	probes.Wait()
	l.set(func() { l.process, l.ready = nil, false })
	return ended, err
}

// wait waits for the end of the process. If the pod is to end, or the context
// ends, it asks the process to, and kills it when its grace is over.
func (l *life) wait(ctx context.Context, p *os.Process, finished <-chan error) (ended bool, err error) {
	grace := 5 * time.Second
	select {
	case err := <-finished:
		return false, err
	case grace = <-l.stop:
		ended = true
	case <-ctx.Done():
	}
	if grace > 0 {
		_ = p.Signal(syscall.SIGTERM)
		select {
		case err := <-finished:
			return ended, err
		case <-time.After(grace):
		}
	}
	_ = p.Kill()
	return ended, <-finished
}

func (l *life) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// bury removes the pod, whose process is gone.
func (l *life) bury(ctx context.Context) {
	err := l.runner.client.CoreV1().Pods(l.pod.Namespace).Delete(ctx, l.pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64), Preconditions: &metav1.Preconditions{UID: &l.pod.UID},
	})
	if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
		l.log.Error("removing a pod failed", "error", err)
	}
	if err := l.runner.forgetLogs(ctx, l.pod); err != nil && !apierrors.IsNotFound(err) && !errors.Is(err, context.Canceled) {
		l.log.Error("removing a pod's logs failed", "error", fmt.Sprint(err))
	}
}
