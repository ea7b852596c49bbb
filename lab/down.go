package lab

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"karpenter/lab/build"
	"karpenter/lab/cluster"
	"karpenter/lab/process"
)

// stopTimeout is how long a supervisor may take to end its lab.
const stopTimeout = 30 * time.Second

// Down ends the lab in a folder: it asks the supervisor, and if that is gone or
// does not obey, does the supervisor's work.
func Down(ctx context.Context, root, dir string) error {
	if s, err := ReadState(dir); err == nil && s.Running(dir) {
		if stuck := process.End([]process.Record{s.Supervisor}, dir, stopTimeout); len(stuck) > 0 {
			return fmt.Errorf("the lab's supervisor (pid %d) does not end", s.Supervisor.PID)
		}
	}
	store, err := openStore(dir)
	if err != nil {
		return err
	}
	programs, err := build.ControlPlane(filepath.Join(root, "lab"))
	if err == nil {
		err = cleanUp(ctx, store, cluster.Cluster{State: dir, Programs: programs[0].Out})
	}
	return errors.Join(err, store.close())
}

// Describe says, for people, how to talk to the lab.
func (s State) Describe(dir string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  kubeconfig  %s\n", s.Kubeconfig)
	fmt.Fprintf(&b, "  AWS         AWS_ENDPOINT_URL=%s AWS_REGION=%s\n", s.CloudURL, s.Region)
	if s.MetricsURL != "" {
		fmt.Fprintf(&b, "  metrics     %s\n", s.MetricsURL)
	}
	fmt.Fprintf(&b, "  logs        %s\n", filepath.Join(dir, "logs"))
	fmt.Fprintf(&b, "  all of it   source %s\n", envFile(dir))
	return b.String()
}
