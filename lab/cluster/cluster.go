// Package cluster starts and ends a real Kubernetes control plane on loopback:
// etcd, kube-apiserver, kube-controller-manager and kube-scheduler as
// processes, and kwok, which plays the kubelets. kwokctl does the work; this
// package gives it what it needs and knows which processes it left.
package cluster

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"karpenter/lab/process"
)

//go:embed stages.yaml
var stages []byte

// options of kwokctl. Without bindAddress everything would listen on all
// interfaces. Monitor and lease times are those of a normal cluster, where
// kwokctl's defaults are four times as long.
const options = `apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokctlConfiguration
options:
  bindAddress: 127.0.0.1
  kubeVersion: %s
  disableQPSLimits: true
  kubeControllerManagerNodeMonitorPeriodMilliseconds: 5000
  kubeControllerManagerNodeMonitorGracePeriodMilliseconds: 50000
  nodeLeaseDurationSeconds: 40
  heartbeatFactor: 1
  kwokControllerPort: %d
  kubeAuditPolicy: %s
  enableCRDs: [Logs]
---
`

// auditPolicy writes down what the controller asks of the API server: who, what
// and whether it was allowed, not the objects.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
    users: [%q]
  - level: None
`

const name = "lab"

// startTimeout is generous: on a busy machine the API server alone may take
// half a minute.
const startTimeout = 3 * time.Minute

// Cluster is a control plane whose files are below State.
type Cluster struct {
	// State is the folder for all files; absolute.
	State string
	// Programs is the folder of the built control-plane programs; absolute.
	Programs string
	// Version of Kubernetes, such as v1.37.2.
	Version string
	// KubeletPort is where kwok serves what kubelets serve: logs.
	KubeletPort int
	// Audited is the user whose requests are written to [Cluster.AuditLog].
	Audited string
}

// Kubeconfig is the path of the administrator's kubeconfig.
func (c Cluster) Kubeconfig() string { return filepath.Join(c.State, "kubeconfig") }

// Kubectl runs the kubectl of the cluster's version against it and returns its
// output; the error holds what it said.
func (c Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(c.Programs, "kubectl"), append([]string{"--kubeconfig", c.Kubeconfig()}, args...)...)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(problems.String()))
	}
	return out.String(), nil
}

// ApplyCRDs applies the CRDs of a folder and returns when they are served.
func (c Cluster) ApplyCRDs(ctx context.Context, dir string) error {
	if _, err := c.Kubectl(ctx, "apply", "--server-side", "-f", dir); err != nil {
		return err
	}
	_, err := c.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=60s", "-f", dir)
	return err
}

func (c Cluster) workdir() string { return filepath.Join(c.State, "kwok") }

func (c Cluster) folder() string { return filepath.Join(c.workdir(), "clusters", name) }

// Logs is the folder of the components' logs while the cluster is there;
// OldLogs is where they are kept afterwards.
func (c Cluster) Logs() string { return filepath.Join(c.folder(), "logs") }

// AuditLog is the audit log while the cluster is there.
func (c Cluster) AuditLog() string { return filepath.Join(c.Logs(), "audit.log") }

// OldLogs holds the logs of the last cluster that was removed.
func (c Cluster) OldLogs() string { return filepath.Join(c.State, "logs", "last-cluster") }

// Start creates the cluster and returns when the API server serves. What an
// earlier cluster left must have been removed by [Cluster.Remove]. started is
// called with kwokctl's own process, so that it can be found after a crash.
func (c Cluster) Start(ctx context.Context, started func(process.Record)) error {
	if err := os.MkdirAll(c.workdir(), 0o755); err != nil {
		return err
	}
	policy := filepath.Join(c.State, "audit-policy.yaml")
	if err := os.WriteFile(policy, fmt.Appendf(nil, auditPolicy, c.Audited), 0o644); err != nil {
		return err
	}
	config := filepath.Join(c.State, "kwokctl.yaml")
	if err := os.WriteFile(config, append(fmt.Appendf(nil, options, c.Version, c.KubeletPort, policy), stages...), 0o644); err != nil {
		return err
	}
	args := []string{"--name", name, "--config", config, "create", "cluster",
		"--runtime", "binary", "--wait", startTimeout.String(), "--kubeconfig", c.Kubeconfig()}
	for flag, program := range map[string]string{
		"etcd": "etcd", "kube-apiserver": "kube-apiserver", "kube-scheduler": "kube-scheduler",
		"kube-controller-manager": "kube-controller-manager", "kwok-controller": "kwok",
	} {
		args = append(args, "--"+flag+"-binary", filepath.Join(c.Programs, program))
	}
	if err := c.kwokctl(ctx, started, args...); err != nil {
		return fmt.Errorf("starting the control plane: %w", err)
	}
	return nil
}

// Processes lists the processes that kwokctl has started.
func (c Cluster) Processes() []process.Record {
	records := process.FromPIDFiles(filepath.Join(c.folder(), "pids"))
	for i, r := range records {
		records[i] = process.Recorded(r.Name, r.PID)
	}
	return records
}

// Remove ends every process of the cluster and removes its files except the
// logs. It works on any state, also on none, and names what it could not end.
func (c Cluster) Remove(ctx context.Context) error {
	left := c.Processes()
	if _, err := os.Stat(filepath.Join(c.folder(), "kwok.yaml")); err == nil {
		// It stops the components in order; what it cannot do is done below.
		_ = c.kwokctl(ctx, nil, "--name", name, "stop", "cluster")
	}
	if stuck := process.End(left, c.State, 5*time.Second); len(stuck) > 0 {
		return fmt.Errorf("these processes do not end: %v", stuck)
	}
	if _, err := os.Stat(c.Logs()); err == nil {
		if err := errors.Join(os.RemoveAll(c.OldLogs()), os.Rename(c.Logs(), c.OldLogs())); err != nil {
			return err
		}
	}
	for _, path := range []string{c.workdir(), c.Kubeconfig(), c.Kubeconfig() + ".lock"} {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return nil
}

// kwokctl runs kwokctl and returns what it printed if it fails.
func (c Cluster) kwokctl(ctx context.Context, started func(process.Record), args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(c.Programs, "kwokctl"), args...)
	// kwokctl calls the first kubectl in PATH.
	cmd.Env = append(os.Environ(), "KWOK_WORKDIR="+c.workdir(),
		"PATH="+c.Programs+string(os.PathListSeparator)+os.Getenv("PATH"))
	// Ctrl-C is for us; we tell kwokctl.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return err
	}
	if started != nil {
		started(process.Recorded("kwokctl", cmd.Process.Pid))
	}
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("kwokctl: %w\n%s", err, out.String())
	}
	return nil
}
