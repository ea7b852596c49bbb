// Package app is the only place where things are wired together: settings,
// clients, the cloud, the controllers and the servers of the process.
//
// It may import everything of ours.
//
// What the process must be allowed to do in the cluster stands in the chart
// (charts/karpenter/templates/rbac.yaml); the lab runs the process under exactly
// those rules. Of the two generations of pools and classes only those have to be
// there whose CRDs are installed.
package app

import (
	"context"
	"flag"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"karpenter/internal/kube/dialect"
	"karpenter/internal/settings"
)

// Version of the program; set by the linker.
var Version = "dev"

// shutdownWithin is how long what is under way may take to end after a signal; the
// lease is given back after that. What is cut off is found by whoever leads next.
const shutdownWithin = 1500 * time.Millisecond

// Run is the process: it reads flags and environment, connects to the cluster
// and the cloud, and works until the context ends. Help goes to out and returns
// flag.ErrHelp.
func Run(ctx context.Context, args []string, getenv func(string) (string, bool), out io.Writer) error {
	flags := flag.NewFlagSet("karpenter", flag.ContinueOnError)
	flags.SetOutput(out)
	proc, base, err := settings.Parse(flags, args, getenv)
	if err != nil {
		return err
	}
	how := newStyle(settings.Logging{Level: proc.LogLevel, Encoding: proc.LogEncoding})
	if proc.MemoryLimitBytes > 0 {
		debug.SetMemoryLimit(proc.MemoryLimitBytes / 10 * 9)
	}
	if proc.SystemNamespace == "" {
		proc.SystemNamespace = ownNamespace()
	}
	log := begin(out, how)
	cfg, err := config.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the cluster: %w (set KUBECONFIG, or run in a cluster)", err)
	}
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst, cfg.UserAgent = float32(proc.KubeQPS), proc.KubeBurst, "karpenter/"+Version

	live := settings.NewLive(base)
	facts, err := discover(ctx, cfg, proc, live, how, log.WithName("settings"))
	if err != nil {
		return err
	}
	log.Info("starting", "version", Version, "cluster", live.Get().ClusterName, "kubernetes", facts.version(), "namespace", proc.SystemNamespace, "pools", words(facts.kinds))
	return run(ctx, cfg, proc, live, facts, log)
}

// run builds the manager, hangs everything into it and starts it.
func run(ctx context.Context, cfg *rest.Config, proc settings.Process, live *settings.Live, facts *facts, log logr.Logger) error {
	// A controller that reads what it has just written must not find the state
	// before: it would launch again, or delete again. (The mirror reads the cache
	// directly and lays its own writes over it.)
	yes := true
	lease, renew, retry, graceful := leaseDuration, renewDeadline, retryPeriod, shutdownWithin
	namespace := proc.LeaderNamespace
	if namespace == "" {
		namespace = proc.SystemNamespace
	}
	lock, err := newLease(cfg, namespace, proc.LeaderName)
	if err != nil {
		return err
	}
	mgr, err := manager.New(cfg, manager.Options{
		Scheme:                              dialect.Scheme(),
		Logger:                              log,
		Cache:                               cacheOptions(),
		Client:                              client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: &yes}},
		Metrics:                             metricsserver.Options{BindAddress: "0"}, // served by us, see server.go
		HealthProbeBindAddress:              "0",
		LeaderElection:                      proc.LeaderElect,
		LeaderElectionID:                    proc.LeaderName,
		LeaderElectionNamespace:             namespace,
		LeaderElectionResourceLockInterface: lock,
		LeaderElectionReleaseOnCancel:       true,
		LeaseDuration:                       &lease,
		RenewDeadline:                       &renew,
		RetryPeriod:                         &retry,
		GracefulShutdownTimeout:             &graceful,
	})
	if err != nil {
		return fmt.Errorf("preparing the controllers: %w", err)
	}
	if err := wire(ctx, mgr, proc, live, facts, log); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}
