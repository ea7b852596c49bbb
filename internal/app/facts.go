package app

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"karpenter/internal/aws"
	"karpenter/internal/aws/launch"
	"karpenter/internal/kube/dialect"
	"karpenter/internal/settings"
)

const (
	// refreshFacts is how often ConfigMaps and the cluster's version are read.
	refreshFacts = 10 * time.Second
	// lowestMinor is the oldest Kubernetes that works, newestMinor the newest
	// that was tried (1.x).
	lowestMinor = 29
	newestMinor = 37
)

// facts are what is known about the cluster, and the settings that people may
// change while the process runs.
type facts struct {
	proc   settings.Process
	live   *settings.Live
	log    logr.Logger
	core   v1.CoreV1Interface
	server discovery.DiscoveryInterface
	// kinds are the kinds of pools that the API server knows.
	kinds []dialect.Dialect

	endpoint, ca string

	mu     sync.Mutex
	kube   string // major.minor
	dns    netip.Addr
	config configMaps
}

// discover reads everything once; what is wrong now keeps the process from
// starting.
func discover(ctx context.Context, cfg *rest.Config, proc settings.Process, live *settings.Live, how *style, log logr.Logger) (*facts, error) {
	core, err := v1.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	server, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	f := &facts{proc: proc, live: live, log: log, core: core, server: server, endpoint: cfg.Host}
	f.config = newConfigMaps(proc, live, how, log, f.configMap)
	if f.ca, err = bundle(cfg); err != nil {
		return nil, err
	}
	if err := f.readVersion(); err != nil {
		return nil, err
	}
	if f.kinds, err = served(server); err != nil {
		return nil, err
	}
	f.readDNS(ctx)
	if err := f.config.start(ctx); err != nil {
		return nil, err
	}
	return f, nil
}

// bundle is the certificate of the API server, PEM in base64.
func bundle(cfg *rest.Config) (string, error) {
	pem := cfg.CAData
	if len(pem) == 0 && cfg.CAFile != "" {
		var err error
		if pem, err = os.ReadFile(cfg.CAFile); err != nil {
			return "", fmt.Errorf("reading the certificate of the API server: %w", err)
		}
	}
	return base64.StdEncoding.EncodeToString(pem), nil
}

func (f *facts) version() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.kube
}

func (f *facts) readVersion() error {
	info, err := f.server.ServerVersion()
	if err != nil {
		return fmt.Errorf("asking the API server for its version: %w", err)
	}
	minor, err := strconv.Atoi(strings.TrimRight(info.Minor, "+"))
	if err != nil || info.Major != "1" {
		return fmt.Errorf("the API server has version %q, which is not understood", info.String())
	}
	if minor < lowestMinor {
		return fmt.Errorf("the API server has version 1.%d; the lowest that is supported is 1.%d", minor, lowestMinor)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := fmt.Sprintf("1.%d", minor); now != f.kube {
		if minor > newestMinor {
			f.log.Info("this version of Kubernetes was never tried", "version", now, "newestTried", fmt.Sprintf("1.%d", newestMinor))
		}
		f.kube = now
	}
	return nil
}

// readDNS finds the address of the cluster's DNS service; nodes do without it.
func (f *facts) readDNS(ctx context.Context) {
	s, err := f.core.Services("kube-system").Get(ctx, "kube-dns", metav1.GetOptions{})
	if err != nil {
		return
	}
	if a, err := netip.ParseAddr(s.Spec.ClusterIP); err == nil {
		f.mu.Lock()
		f.dns = a
		f.mu.Unlock()
	}
}

// configMap returns its data; nil if there is none.
func (f *facts) configMap(ctx context.Context, name string) (map[string]string, error) {
	m, err := f.core.ConfigMaps(f.proc.SystemNamespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ConfigMap %s/%s: %w", f.proc.SystemNamespace, name, err)
	}
	return m.Data, nil
}

// watch follows changes until the context ends.
func (f *facts) watch(ctx context.Context) error {
	for i := 1; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(refreshFacts):
		}
		f.config.refresh(ctx)
		if i%6 == 0 { // every minute
			if now, err := served(f.server); err == nil && !same(now, f.kinds) {
				return fmt.Errorf("the API server knows pools of kind %s now, and knew %s at the start: the process ends, to be started anew", words(now), words(f.kinds))
			}
		}
		if i%30 == 0 { // every five minutes
			f.readDNS(ctx)
			if err := f.readVersion(); err != nil {
				f.log.Error(err, "the version of Kubernetes is taken to be as before")
			}
		}
	}
}

// aws is what all launches have in common.
func (f *facts) aws(context.Context) (aws.Settings, error) {
	s := f.live.Get()
	f.mu.Lock()
	defer f.mu.Unlock()
	endpoint, ca := cmp.Or(s.ClusterEndpoint, f.endpoint), cmp.Or(s.ClusterCABundle, f.ca)
	return aws.Settings{
		Cluster: launch.Cluster{
			Name: s.ClusterName, Endpoint: endpoint, CABundle: ca, DNS: f.dns, Version: f.kube,
			DefaultInstanceProfile: s.DefaultInstanceProfile, Tags: s.Tags, ENILimitedPodDensity: s.EnableENILimitedPodDensity,
		},
		PodENI: s.EnablePodENI, VMMemoryOverheadPercent: s.VMMemoryOverheadPercent, IsolatedVPC: s.IsolatedVPC, ReservedENIs: s.ReservedENIs,
		ImagesLast: s.AMIRefresh, SubnetsLast: s.SubnetRefresh, EKSControlPlane: s.EKSControlPlane, DisableDryRun: s.DisableDryRun,
	}, nil
}

// ownNamespace is where the process runs in a cluster; kube-system outside of
// one.
func ownNamespace() string {
	if b, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace"); err == nil {
		return strings.TrimSpace(string(b))
	}
	return "kube-system"
}
