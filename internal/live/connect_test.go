package live

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// TestTheLeaderIsAsked: the pod that holds the lease is reached as a proxy of the
// API server, with path and query.
func TestTheLeaderIsAsked(t *testing.T) {
	holder := "karpenter-7d9-x2x5q_0d1c"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/apis/coordination.k8s.io/v1/namespaces/space/leases/lease":
			_, _ = w.Write([]byte(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"lease"},"spec":{"holderIdentity":"` + holder + `"}}`))
		case "/api/v1/namespaces/space/pods/http:karpenter-7d9-x2x5q:8080/proxy/world":
			_, _ = w.Write([]byte("seq " + r.URL.Query().Get("seq")))
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	cfg := &rest.Config{Host: server.URL}
	pods, err := corev1client.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	leases, err := coordinationv1client.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ask := throughServer(pods, leases, Access{Namespace: "space", Lease: "lease", Port: "8080"})
	got, err := ask(context.Background(), "world", url.Values{"seq": {"7"}})
	if err != nil || string(got) != "seq 7" {
		t.Errorf("%q, %v", got, err)
	}
	holder = ""
	if _, err := ask(context.Background(), "world", nil); err == nil || !strings.Contains(err.Error(), "nobody holds the lease space/lease") {
		t.Error(err)
	}
}

// TestTheAddressIsAsked: what the controller refuses is an error with its words.
func TestTheAddressIsAsked(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/world" {
			http.Error(w, "no entry", http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte("seq " + r.URL.Query().Get("seq")))
	}))
	defer server.Close()
	ask := direct(strings.TrimPrefix(server.URL, "http://"))
	if got, err := ask(context.Background(), "world", url.Values{"seq": {"7"}}); err != nil || string(got) != "seq 7" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := ask(context.Background(), "other", nil); err == nil || !strings.Contains(err.Error(), "404 Not Found: no entry") {
		t.Error(err)
	}
}
