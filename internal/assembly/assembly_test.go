package assembly

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"karpenter/internal/aws"
	"karpenter/internal/controller/planner"
	"karpenter/internal/kube/dialect"
)

// somewhere is a cloud that nobody calls.
type somewhere struct{ aws.API }

func (somewhere) Region() string { return "us-west-2" }

// TestOnlyServedKindsAreWatched: in a cluster with the CRDs of one generation
// nobody asks for objects of the other.
func TestOnlyServedKindsAreWatched(t *testing.T) {
	older, newer := []string{"Provisioner", "AWSNodeTemplate"}, []string{"NodePool", "EC2NodeClass"}
	for _, c := range []struct {
		kinds    []dialect.Dialect
		has, not []string
	}{
		{nil, append(older, newer...), nil},
		{[]dialect.Dialect{dialect.Provisioner}, older, newer},
		{[]dialect.Dialect{dialect.NodePool}, newer, older},
	} {
		a := New(Parts{AWS: somewhere{}, Kinds: c.kinds, Metrics: prometheus.NewRegistry(), Now: time.Now, Log: logr.Discard()})
		watched := map[string]bool{}
		note := func(o any) { watched[fmt.Sprintf("%T", o)[strings.LastIndex(fmt.Sprintf("%T", o), ".")+1:]] = true }
		for _, r := range a.Reconcilers {
			for _, s := range r.Sources {
				note(s.Kind)
			}
		}
		for _, o := range planner.Watched(c.kinds...) {
			note(o)
		}
		for _, kind := range c.has {
			if !watched[kind] {
				t.Errorf("%d kinds: %s is not watched", len(c.kinds), kind)
			}
		}
		for _, kind := range c.not {
			if watched[kind] {
				t.Errorf("%d kinds: %s is watched, though the API server does not know it", len(c.kinds), kind)
			}
		}
	}
}
