package app

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// stuckAfter is how long one pass of a controller may take before the process
// counts as unhealthy.
const stuckAfter = 5 * time.Minute

// longest is the metric of controller-runtime that tells for how long, in
// seconds, each controller has been busy with one object.
const longest = "workqueue_longest_running_processor_seconds"

// watchdog knows the passes that have begun and not finished: those of the
// loops through begin, those of the controllers through their metric.
type watchdog struct {
	now     func() time.Time
	metrics prometheus.Gatherer

	mu     sync.Mutex
	next   int
	passes map[int]pass
}

type pass struct {
	name  string
	begun time.Time
}

func newWatchdog(now func() time.Time, metrics prometheus.Gatherer) *watchdog {
	return &watchdog{now: now, metrics: metrics, passes: map[int]pass{}}
}

// begin notes that a pass starts; call the result when it is over.
func (w *watchdog) begin(name string) (end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := w.next
	w.next++
	w.passes[id] = pass{name, w.now()}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.passes, id)
	}
}

// Check fails while a pass has been running for too long. A process that does
// nothing, such as a follower, is healthy.
func (w *watchdog) Check(*http.Request) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.passes {
		if d := w.now().Sub(p.begun); d > stuckAfter {
			return stuck(p.name, d)
		}
	}
	families, err := w.metrics.Gather()
	if err != nil {
		return nil // metrics that cannot be read say nothing about the passes
	}
	for _, f := range families {
		if f.GetName() != longest {
			continue
		}
		for _, m := range f.GetMetric() {
			if d := time.Duration(m.GetGauge().GetValue() * float64(time.Second)); d > stuckAfter {
				return stuck(controllerOf(m), d)
			}
		}
	}
	return nil
}

func stuck(name string, d time.Duration) error {
	return fmt.Errorf("a pass of %s has been running for %s", name, d.Round(time.Second))
}

func controllerOf(m *dto.Metric) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == "name" {
			return l.GetValue()
		}
	}
	return "a controller"
}
