package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"karpenter/lab/cluster"
	"karpenter/lab/process"
)

// State is what a lab writes down for others, and for the one after a crash.
type State struct {
	Supervisor process.Record `json:"supervisor"`
	Started    time.Time      `json:"started"`
	Ready      bool           `json:"ready"`
	Kubeconfig string         `json:"kubeconfig"`
	// Programs is the folder of the control plane's binaries, kubectl among
	// them.
	Programs string `json:"programs"`
	// CloudURL is the endpoint of the simulated AWS.
	CloudURL string `json:"cloudURL"`
	Region   string `json:"region"`
	// MetricsURL is that of the controller.
	MetricsURL string `json:"metricsURL,omitempty"`
	// Controller is its present process.
	Controller process.Record `json:"controller"`
	// Processes are all that were ever started.
	Processes []process.Record `json:"processes"`
}

// Env are the variables that point kubectl and the aws command line at the lab.
func (s State) Env() []string {
	return append([]string{"KUBECONFIG=" + s.Kubeconfig}, s.cloudEnv()...)
}

// cloudEnv are the variables that point to the simulated AWS.
func (s State) cloudEnv() []string {
	return []string{
		"AWS_ENDPOINT_URL=" + s.CloudURL,
		"AWS_REGION=" + s.Region,
		"AWS_DEFAULT_REGION=" + s.Region,
		"AWS_ACCESS_KEY_ID=lab",
		"AWS_SECRET_ACCESS_KEY=lab",
		"AWS_EC2_METADATA_DISABLED=true",
	}
}

// RunningError says that another supervisor has the folder.
type RunningError struct{ State string }

func (e *RunningError) Error() string {
	return fmt.Sprintf("a lab is already running in %s", e.State)
}

// store is the state in its file, and the lock that its supervisor holds. The
// operating system gives the lock back when the supervisor dies, however it
// dies.
type store struct {
	dir  string
	lock *os.File

	mu    sync.Mutex
	state State
}

func openStore(dir string) (*store, error) {
	if err := os.MkdirAll(filepath.Join(dir, "logs"), 0o755); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, &RunningError{State: dir}
		}
		return nil, fmt.Errorf("locking %s: %w", dir, err)
	}
	s := &store{dir: dir, lock: lock}
	if s.state, err = ReadState(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		// A file that cannot be read was cut off by a crash of the machine.
		s.state = State{}
	}
	return s, nil
}

func (s *store) close() error {
	err := os.Remove(stateFile(s.dir))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, s.lock.Close())
}

// envFile is to be sourced by a shell.
func envFile(dir string) string { return filepath.Join(dir, "env") }

func stateFile(dir string) string { return filepath.Join(dir, "state.json") }

// ReadState reads the state of the lab in a folder; fs.ErrNotExist if there is
// none. That it is there does not mean that the lab runs.
func ReadState(dir string) (State, error) {
	var s State
	text, err := os.ReadFile(stateFile(dir))
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(text, &s)
}

// Running reports whether the supervisor runs.
func (s State) Running(dir string) bool { return s.Supervisor.Alive(dir) }

// update changes the state and writes it; the file is always whole.
func (s *store) update(change func(*State)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.state)
	text, err := json.MarshalIndent(s.state, "", "  ")
	if err != nil {
		return err
	}
	tmp := stateFile(s.dir) + ".tmp"
	if err := os.WriteFile(tmp, text, 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, stateFile(s.dir))
}

// add records processes. They are found by other means too, so that a failure
// to write is not worth stopping for.
func (s *store) add(records ...process.Record) {
	_ = s.update(func(st *State) { st.Processes = append(st.Processes, records...) })
}

// cleanUp ends all processes of the lab whose state this is, and removes the
// cluster's files and the env that points at them.
func cleanUp(ctx context.Context, s *store, c cluster.Cluster) error {
	s.mu.Lock()
	records := append(s.state.Processes[:len(s.state.Processes):len(s.state.Processes)], s.state.Controller)
	s.mu.Unlock()
	// kwokctl first: it would start what is ended behind its back.
	first := []process.Record{}
	rest := []process.Record{}
	for _, r := range records {
		if r.Name == "kwokctl" || r.Name == controllerName {
			first = append(first, r)
		} else {
			rest = append(rest, r)
		}
	}
	if stuck := process.End(first, s.dir, 3*time.Second); len(stuck) > 0 {
		return fmt.Errorf("these processes do not end: %v", stuck)
	}
	if err := c.Remove(ctx); err != nil {
		return err
	}
	if err := os.RemoveAll(envFile(s.dir)); err != nil {
		return err
	}
	if stuck := process.End(rest, s.dir, 3*time.Second); len(stuck) > 0 {
		return fmt.Errorf("these processes do not end: %v", stuck)
	}
	return nil
}
