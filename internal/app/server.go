package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"karpenter/internal/assembly"
	"karpenter/internal/census"
	"karpenter/internal/settings"
)

// serve adds the servers of the process: metrics (with the journal, dumps and,
// if asked for, profiles) and health. They run on every replica.
func serve(mgr manager.Manager, proc settings.Process, dog *watchdog, all *assembly.Assembly, log logr.Logger) error {
	m := http.NewServeMux()
	var gather prometheus.Gatherer = metrics.Registry
	if proc.OldNames {
		gather = census.Older{Gatherer: gather}
	}
	// What can be counted is published, whatever else fails.
	m.Handle("/metrics", promhttp.HandlerFor(gather, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	m.Handle("/journal", all.Journal)
	m.HandleFunc("/world", all.ServeWorld)
	if proc.Profiling {
		m.HandleFunc("/debug/pprof/", pprof.Index)
		m.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		m.HandleFunc("/debug/pprof/profile", pprof.Profile)
		m.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		m.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	h := http.NewServeMux()
	h.Handle("/healthz", http.StripPrefix("/healthz", &healthz.Handler{Checks: map[string]healthz.Checker{"ping": healthz.Ping, "passes": dog.Check}}))
	h.Handle("/readyz", http.StripPrefix("/readyz", &healthz.Handler{Checks: map[string]healthz.Checker{"ping": healthz.Ping}}))
	for _, s := range []server{{"metrics", proc.BindAddress, proc.MetricsPort, m, log}, {"health", proc.BindAddress, proc.HealthPort, h, log}} {
		if err := mgr.Add(s); err != nil {
			return err
		}
	}
	return nil
}

// server serves until its context ends.
type server struct {
	name    string
	address string
	port    int // 0 = any free one; the log says which
	handler http.Handler
	log     logr.Logger
}

// NeedLeaderElection is false: followers are watched too.
func (server) NeedLeaderElection() bool { return false }

// Start listens and serves.
func (s server) Start(ctx context.Context) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(s.address, strconv.Itoa(s.port)))
	if err != nil {
		return fmt.Errorf("%s server: %w", s.name, err)
	}
	s.log.Info("serving", "what", s.name, "address", l.Addr().String())
	srv := &http.Server{Handler: s.handler, ReadHeaderTimeout: 10 * time.Second}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		late, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = srv.Shutdown(late)
	}()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	<-stopped
	return nil
}
