package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/internal/kube/dialect"
)

// Access says which cluster, and where its controller is.
type Access struct {
	// Kubeconfig and Context as for kubectl; empty: what kubectl would use.
	Kubeconfig, Context string
	// Namespace of the controller.
	Namespace string
	// Lease that the leading controller holds, and Port of its metrics.
	Lease, Port string
	// Controller is the address of its metrics port (http://127.0.0.1:8080); empty:
	// it is reached through the API server.
	Controller string
	Region     string
}

// Connect finds the cluster.
func Connect(a Access, now time.Time) (Cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = a.Kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: a.Context}).ClientConfig()
	if err != nil {
		return Cluster{}, fmt.Errorf("finding the cluster: %w; set KUBECONFIG, or name a file with --kubeconfig", err)
	}
	return connect(cfg, a, now)
}

func connect(cfg *rest.Config, a Access, now time.Time) (Cluster, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst, cfg.UserAgent = 50, 100, "karpctl"
	reader, err := client.New(cfg, client.Options{Scheme: dialect.Scheme()})
	if err != nil {
		return Cluster{}, fmt.Errorf("connecting to the cluster: %w; is it reachable? 'kubectl version' tells", err)
	}
	pods, err := corev1client.NewForConfig(cfg)
	if err != nil {
		return Cluster{}, fmt.Errorf("connecting to the cluster: %w", err)
	}
	leases, err := coordinationv1client.NewForConfig(cfg)
	if err != nil {
		return Cluster{}, fmt.Errorf("connecting to the cluster: %w", err)
	}
	c := Cluster{Reader: reader, Namespace: a.Namespace, Region: a.Region, Now: now, Controller: throughServer(pods, leases, a)}
	if a.Controller != "" {
		c.Controller = direct(a.Controller)
	}
	for _, d := range dialect.All() {
		gk := schema.GroupKind{Group: "karpenter.sh", Kind: d.Kind}
		switch _, err := reader.RESTMapper().RESTMapping(gk); {
		case err == nil:
			c.Kinds = append(c.Kinds, d)
		case !meta.IsNoMatchError(err):
			return Cluster{}, fmt.Errorf("asking the cluster for its kinds: %w; is it reachable? 'kubectl version' tells", err)
		}
	}
	if len(c.Kinds) == 0 {
		return Cluster{}, errors.New("the cluster knows neither Provisioner nor NodePool; is this the right context? Otherwise install the CRDs")
	}
	return c, nil
}

// throughServer reaches the pod that holds the lease, as a proxy of the API server.
func throughServer(pods corev1client.PodsGetter, leases coordinationv1client.LeasesGetter, a Access) func(context.Context, string, url.Values) ([]byte, error) {
	return func(ctx context.Context, path string, query url.Values) ([]byte, error) {
		lease, err := leases.Leases(a.Namespace).Get(ctx, a.Lease, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		holder := ""
		if id := lease.Spec.HolderIdentity; id != nil {
			holder, _, _ = strings.Cut(*id, "_") // the name of the pod, and a UID
		}
		if holder == "" {
			return nil, fmt.Errorf("nobody holds the lease %s/%s", a.Namespace, a.Lease)
		}
		params := map[string]string{}
		for k := range query {
			params[k] = query.Get(k)
		}
		return pods.Pods(a.Namespace).ProxyGet("http", holder, a.Port, path, params).DoRaw(ctx)
	}
}

// direct asks an address.
func direct(address string) func(context.Context, string, url.Values) ([]byte, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	return func(ctx context.Context, path string, query url.Values) ([]byte, error) {
		to := strings.TrimSuffix(address, "/") + "/" + path + "?" + query.Encode()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, to, nil)
		if err != nil {
			return nil, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		if err == nil && resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s: %s", address, resp.Status, firstLine(string(data)))
		}
		return data, err
	}
}
