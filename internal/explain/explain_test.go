package explain_test

import (
	"strings"
	"testing"
	"time"

	"karpenter/internal/core/world"
	"karpenter/internal/dump"
	"karpenter/internal/explain"
	"karpenter/internal/scenario"
)

var now = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// soldOut is a moment at which the cloud has none left of all that the pool may
// buy: of each type and zone that it refused, and of the others for a reason that
// is not known here.
func soldOut(t *testing.T) *dump.Dump {
	m, err := scenario.Read([]string{"../../examples/workshop"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.Snapshot(scenario.Place{Region: "us-west-2"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range s.Catalogs {
		for i := range c.Types {
			for j := range c.Types[i].Offerings {
				c.Types[i].Offerings[j].Available = false
			}
		}
	}
	pod := world.Pod{ObjectName: world.ObjectName{Namespace: "default", Name: "web"}}
	pod.Requests.MilliCPU = 1000
	s.Pending = []world.Pod{pod}
	var closed []dump.Closed
	for _, zone := range []string{"us-west-2a", "us-west-2b"} {
		closed = append(closed, dump.Closed{Type: "m6a.xlarge", Zone: zone, CapacityType: "on-demand", Until: now.Add(2 * time.Minute)})
	}
	return dump.New("test", now, dump.Limits{}, s, nil, closed)
}

func TestClosedOfferings(t *testing.T) {
	d := soldOut(t)
	pool, err := explain.Pool(d, "Provisioner", "test")
	if err != nil {
		t.Fatal(err)
	}
	pod, err := explain.Pod(d, d.Snapshot.Pending[0].ObjectName)
	if err != nil {
		t.Fatal(err)
	}
	if pool.State != explain.SoldOut || pod.State != explain.Stuck {
		t.Errorf("pool %s, pod %s", pool.State, pod.State)
	}
	until := "m6a.xlarge on-demand in us-west-2b, until 2030-01-01 12:02:00 UTC (in 2m0s)"
	for _, text := range []string{pool.Text(), pod.Text()} {
		if !strings.Contains(text, until) {
			t.Errorf("no %q in\n%s", until, text)
		}
	}
	if want := "2 offerings, until a time that is not known here"; !strings.Contains(pool.Text(), want) {
		t.Errorf("no %q in\n%s", want, pool.Text())
	}
}
