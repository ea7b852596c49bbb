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
	// NoController leaves the controller out, to run it by hand.
	NoController bool
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
	l.Cluster = cluster.Cluster{State: l.opt.State, Programs: programs[0].Out, Version: version}
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
	parts.Go(func() error { return l.startCloud(life) })
	if !l.opt.NoController {
		parts.Go(func() error {
			defer done("controller is built")
			program := build.Controller(l.opt.Root, l.opt.State)
			if err := build.Refresh(ctx, program, nil); err != nil {
				return err
			}
			l.Controller = &Controller{lab: l, program: program.Path()}
			return nil
		})
	}
	return parts.Wait()
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
	if err := boot.AddSystemNode(ctx, l.Client, l.Cluster.Version); err != nil {
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
