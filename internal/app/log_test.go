package app

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func TestConsoleLine(t *testing.T) {
	var out bytes.Buffer
	look := &style{}
	l := newLog(&out, look).WithName("planner").WithValues("pool", "test")
	l.Info("bought", "n", 2, "wait", time.Second)
	l.V(4).Info("hidden")
	l.Error(errors.New("no"), "failed")
	look.level.Set(slog.LevelDebug)
	l.V(4).Info("shown")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	want := []string{
		"\tINFO\tcontroller.planner\tbought\t{\"pool\": \"test\", \"n\": 2, \"wait\": \"1s\"}",
		"\tERROR\tcontroller.planner\tfailed\t{\"pool\": \"test\", \"error\": \"no\"}",
		"\tDEBUG\tcontroller.planner\tshown\t{\"pool\": \"test\"}",
	}
	if len(lines) != len(want) {
		t.Fatalf("lines %q", lines)
	}
	for i, l := range lines {
		if !strings.HasSuffix(l, want[i]) {
			t.Errorf("line %q, want its end to be %q", l, want[i])
		}
	}
}

func TestStuckPassIsUnhealthy(t *testing.T) {
	now := time.Unix(0, 0)
	busy := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: longest}, []string{"name"})
	reg := prometheus.NewRegistry()
	reg.MustRegister(busy)
	w := newWatchdog(func() time.Time { return now }, reg)
	end := w.begin("planner")
	now = now.Add(stuckAfter)
	if err := w.Check(nil); err != nil {
		t.Error(err)
	}
	now = now.Add(time.Second)
	if err := w.Check(nil); err == nil || !strings.Contains(err.Error(), "planner") {
		t.Errorf("healthy though a pass is stuck: %v", err)
	}
	if end(); w.Check(nil) != nil {
		t.Error("unhealthy after the pass has ended")
	}
	busy.WithLabelValues("drain").Set(stuckAfter.Seconds() + 1)
	if err := w.Check(nil); err == nil || !strings.Contains(err.Error(), "drain") {
		t.Errorf("healthy though a controller is stuck: %v", err)
	}
}
