package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"karpenter/lab/process"
)

const (
	controllerName  = "karpenter"
	systemNamespace = "karpenter"
	// restartDelay is how long after its death the controller is started again.
	restartDelay = time.Second
	readyTimeout = time.Minute
)

// Controller is our controller as a child process. It is started again
// whenever it ends, until the lab stops.
type Controller struct {
	lab     *Lab
	program string
	env     []string
	health  string

	mu      sync.Mutex
	process *os.Process // nil while it does not run
	starts  int
}

// start runs the controller for the life of the lab and returns when it is
// ready.
func (c *Controller) start(ctx, life context.Context) error {
	metrics, health, err := freePorts()
	if err != nil {
		return err
	}
	c.health = fmt.Sprintf("http://127.0.0.1:%d/readyz", health)
	if err := c.lab.store.update(func(s *State) {
		s.MetricsURL = fmt.Sprintf("http://127.0.0.1:%d/metrics", metrics)
	}); err != nil {
		return err
	}
	if err := os.Remove(c.LogFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	kubeconfig, err := c.lab.prepareAccount(ctx)
	if err != nil {
		return err
	}
	c.env = append([]string{
		"HOME=" + os.Getenv("HOME"), "PATH=" + os.Getenv("PATH"),
		"BIND_ADDRESS=127.0.0.1", "METRICS_PORT=" + strconv.Itoa(metrics), "HEALTH_PROBE_PORT=" + strconv.Itoa(health),
		"SYSTEM_NAMESPACE=" + systemNamespace,
		// One process at a time: a lease would only delay the next after a kill.
		"LEADER_ELECT=false",
		"CLUSTER_NAME=" + ClusterName, "CLUSTER_ENDPOINT=" + c.lab.Config.Host,
		"DEFAULT_INSTANCE_PROFILE=KarpenterNodeInstanceProfile-" + ClusterName,
		"KUBECONFIG=" + kubeconfig,
	}, append(c.lab.store.state.cloudEnv(), c.lab.opt.Env...)...)
	c.lab.work.Go(func() error { c.supervise(life); return nil })
	return c.WaitReady(ctx)
}

// LogFile is where the controller's output goes.
func (c *Controller) LogFile() string {
	return filepath.Join(c.lab.opt.State, "logs", controllerName+".log")
}

// PID returns the process number of the controller, 0 while it does not run.
func (c *Controller) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == nil {
		return 0
	}
	return c.process.Pid
}

// Starts counts how often it was started.
func (c *Controller) Starts() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.starts
}

// Kill ends the controller at once, as a crash does. It is started again.
func (c *Controller) Kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process != nil {
		_ = c.process.Kill()
	}
}

// WaitReady returns when the controller says that it is ready.
func (c *Controller) WaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		if c.ready(ctx) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the controller was not ready after %s (started %d times); its log: %s", readyTimeout, c.Starts(), c.LogFile())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (c *Controller) ready(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.health, nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// supervise runs the controller again and again until life ends.
func (c *Controller) supervise(life context.Context) {
	for life.Err() == nil {
		if err := c.run(life); err != nil && life.Err() == nil {
			c.lab.log.Error("the controller ended; it is started again", "error", err, "log", c.LogFile())
		}
		select {
		case <-life.Done():
		case <-time.After(restartDelay):
		}
	}
}

// run starts the controller once and waits for its end.
func (c *Controller) run(life context.Context) error {
	out, err := os.OpenFile(c.LogFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command(c.program)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.Dir = c.env, out, out, c.lab.opt.State
	// A group of its own: Ctrl-C is for the supervisor.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}

	c.mu.Lock()
	if life.Err() != nil {
		c.mu.Unlock()
		return nil
	}
	if err := cmd.Start(); err != nil {
		c.mu.Unlock()
		return err
	}
	c.process = cmd.Process
	c.starts++
	c.mu.Unlock()
	_ = c.lab.store.update(func(s *State) { s.Controller = process.Recorded(controllerName, cmd.Process.Pid) })

	err = cmd.Wait()
	c.mu.Lock()
	c.process = nil
	c.mu.Unlock()
	return err
}

// stop asks the controller to end, and ends it if it takes too long. The life
// of the lab must have ended.
func (c *Controller) stop() {
	c.mu.Lock()
	running := c.process
	c.mu.Unlock()
	if running == nil {
		return
	}
	_ = running.Signal(syscall.SIGTERM)
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if c.PID() == 0 {
			return
		}
	}
	c.Kill()
}

// freePorts finds two free ports on loopback.
func freePorts() (a, b int, err error) {
	var ports [2]int
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 0, 0, err
		}
		defer l.Close()
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports[0], ports[1], nil
}
