// Package lab runs a whole cluster on one machine: a real Kubernetes control
// plane, a simulated EC2 whose machines join it, and our controller.
//
// One process, the supervisor, holds the simulated EC2 and the boot agent and
// starts everything else. All of it listens on loopback only, on free ports,
// and keeps its files in one folder. Whatever happens to the supervisor, the
// next start finds what it left, ends it, and begins afresh.
package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"karpenter/lab/boot"
	"karpenter/lab/build"
	"karpenter/lab/cluster"
	"karpenter/lab/process"
	"karpenter/lab/runner"
	"karpenter/sim/ec2"
)

// ClusterName is the name that the controller and the simulated network know
// the cluster by.
const ClusterName = "birenchong-k8s-cluster"

// Options configure a lab.
type Options struct {
	// Root is the folder of the repository, State that of the lab's files;
	// both absolute.
	Root  string
	State string
	// NoController leaves the controller out, to run it by hand or to install
	// the chart, whose pods then run as processes.
	NoController bool
	// SystemNodes is how many nodes there are from the start, each in another
	// zone; at least one.
	SystemNodes int
	// Moto starts moto_server too, and one address for all of AWS: CloudFormation,
	// IAM, EKS and STS are moto's, everything else is the simulated EC2's.
	Moto bool
	// Cloud configures the simulated EC2, Delays the machines.
	Cloud  ec2.Options
	Delays boot.Delays
	// Env is added to the controller's environment.
	Env []string
	// Log gets a line for each thing that happens.
	Log io.Writer
}

// Lab is a running lab.
type Lab struct {
	Cluster    cluster.Cluster
	Cloud      *ec2.Cloud
	Agent      *boot.Agent
	Config     *rest.Config
	Client     kubernetes.Interface
	Controller *Controller // nil without one
	// Pods are those of installed charts.
	Pods *runner.Runner

	opt    Options
	log    *slog.Logger
	store  *store
	cancel context.CancelFunc
	work   errgroup.Group
}

// Start ends what an earlier lab left in the same folder and starts a new one.
// It returns when the controller is ready. The lab lives until [Lab.Stop].
func Start(ctx context.Context, opt Options) (*Lab, error) {
	store, err := openStore(opt.State)
	if err != nil {
		return nil, err
	}
	l := &Lab{opt: opt, store: store, log: slog.New(slog.NewTextHandler(opt.Log, nil))}
	if err := l.start(ctx); err != nil {
		return nil, errors.Join(err, l.Stop())
	}
	return l, nil
}

func (l *Lab) start(ctx context.Context) error {
	programs, err := build.ControlPlane(filepath.Join(l.opt.Root, "lab"))
	if err != nil {
		return err
	}
	if err := build.Ensure(ctx, programs, build.NewProgress(os.Stderr)); err != nil {
		return err
	}
	version, err := build.KubernetesVersion(filepath.Join(l.opt.Root, "lab"))
	if err != nil {
		return err
	}
	port, _, err := freePorts()
	if err != nil {
		return err
	}
	l.Cluster = cluster.Cluster{State: l.opt.State, Programs: programs[0].Out, Version: version, KubeletPort: port,
		Audited: "system:serviceaccount:" + systemNamespace + ":" + accountName}
	if err := cleanUp(ctx, l.store, l.Cluster); err != nil {
		return err
	}
	if err := l.store.update(func(s *State) {
		*s = State{Supervisor: process.Recorded("lab", os.Getpid()), Started: time.Now(),
			Kubeconfig: l.Cluster.Kubeconfig(), Programs: l.Cluster.Programs}
	}); err != nil {
		return err
	}

	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l.cancel = cancel
	if err := l.startParts(ctx, life); err != nil {
		return err
	}
	done := l.stopwatch()
	if err := l.prepareCluster(ctx); err != nil {
		return err
	}
	done("cluster is prepared")
	l.startMachines(life)
	if err := l.startPods(life); err != nil {
		return err
	}
	if l.Controller != nil {
		if err := l.Controller.start(ctx, life); err != nil {
			return err
		}
		done("controller is ready")
	}
	return l.store.update(func(s *State) { s.Ready = true })
}

// startParts does what takes long, all at once: the control plane, the
// simulated EC2 and the build of the controller.
func (l *Lab) startParts(ctx, life context.Context) error {
	parts, ctx := errgroup.WithContext(ctx)
	done := l.stopwatch()
	parts.Go(func() error {
		defer done("control plane serves")
		err := l.Cluster.Start(ctx, func(r process.Record) { l.store.add(r) })
		l.store.add(l.Cluster.Processes()...)
		return err
	})
	parts.Go(func() error { return l.startCloud(ctx, life) })
	parts.Go(func() error {
		defer done("controller is built")
		return build.Refresh(ctx, l.program(), nil)
	})
	if err := parts.Wait(); err != nil {
		return err
	}
	if !l.opt.NoController {
		l.Controller = &Controller{lab: l, program: l.program().Path()}
	}
	return nil
}

// program is our controller.
func (l *Lab) program() build.Program { return build.Controller(l.opt.Root, l.opt.State) }

// startPods lets pods of installed charts run as processes.
func (l *Lab) startPods(life context.Context) (err error) {
	folder := filepath.Join(l.opt.State, "pods")
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	l.Pods, err = runner.New(runner.Options{
		Config: l.Config, Program: l.program().Path(), Folder: folder,
		Cloud: l.store.state.cloudEnv(), Federated: l.opt.Moto,
		Started: func(r process.Record) { l.store.add(r) }, Log: l.log,
	})
	if err == nil {
		l.work.Go(func() error { l.Pods.Run(life); return nil })
	}
	return err
}

// stopwatch returns what logs that something is done and how long it took.
func (l *Lab) stopwatch() func(what string) {
	began := time.Now()
	return func(what string) { l.log.Info(what, "after", time.Since(began).Round(time.Millisecond)) }
}

// prepareCluster makes the clients and what must exist before the controller
// starts.
func (l *Lab) prepareCluster(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", l.Cluster.Kubeconfig())
	if err != nil {
		return err
	}
	config.QPS, config.Burst = -1, -1
	l.Config = config
	if l.Client, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if err := l.Cluster.ApplyCRDs(ctx, filepath.Join(l.opt.Root, "api", "crds")); err != nil {
		return err
	}
	if err := l.writeEnv(); err != nil {
		return err
	}
	zones := l.Cloud.Zones()
	zones = zones[:min(max(l.opt.SystemNodes, 1), len(zones))]
	if err := boot.AddSystemNodes(ctx, l.Client, l.Cluster.Version, l.Cluster.KubeletPort, zones...); err != nil {
		return err
	}
	_, err = l.Cluster.Kubectl(ctx, "create", "namespace", systemNamespace)
	return err
}

// writeEnv writes what points a shell at the lab.
func (l *Lab) writeEnv() error {
	text := ""
	for _, kv := range l.store.state.Env() {
		text += "export " + kv + "\n"
	}
	text += fmt.Sprintf("export PATH=%s:$PATH\n", l.Cluster.Programs)
	return os.WriteFile(envFile(l.opt.State), []byte(text), 0o644)
}

// Stop ends everything that the lab started and returns when it is gone.
func (l *Lab) Stop() error {
	if l.cancel != nil {
		l.cancel()
	}
	if l.Controller != nil {
		l.Controller.stop()
	}
	err := l.work.Wait()
	if l.Agent != nil {
		l.Agent.Wait()
	}
	// The end must be reached even if the start was given up.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if l.Cluster.Programs != "" {
		err = errors.Join(err, cleanUp(ctx, l.store, l.Cluster))
	}
	return errors.Join(err, l.store.close())
}
