package awsapi

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestConnectionsAreUsedAgain: an answer that comes at once must not cost the
// connection.
func TestConnectionsAreUsedAgain(t *testing.T) {
	answer := `<DescribeSubnetsResponse><subnetSet>` + strings.Repeat("<item><subnetId>subnet-1</subnetId></item>", 2000) + `</subnetSet></DescribeSubnetsResponse>`
	var connections atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
	server.Config.ConnState = countNew(&connections)
	server.Start()
	defer server.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "simulated")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "simulated")
	api, err := New(t.Context(), Config{Region: "us-west-2", Endpoint: server.URL, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if got, err := api.Subnets(t.Context(), nil); err != nil || len(got) != 2000 {
			t.Fatalf("%d subnets, %v", len(got), err)
		}
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("50 calls took %d connections, want 1", n)
	}
}

func countNew(n *atomic.Int64) func(net.Conn, http.ConnState) {
	return func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			n.Add(1)
		}
	}
}
