package planner

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics of the planner. A nil *Metrics counts nothing.
type Metrics struct {
	created   *prometheus.CounterVec
	disrupted *prometheus.CounterVec
	decisions *prometheus.CounterVec
	dropped   *prometheus.CounterVec
	givenUp   *prometheus.CounterVec
	solve     prometheus.Histogram
	batch     prometheus.Histogram
	evaluate  prometheus.Histogram
	pending   prometheus.Gauge
	unplaced  prometheus.Gauge
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	durations := []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	m := &Metrics{
		created: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "karpenter_nodeclaims_created_total",
			Help: "NodeClaims made, by reason and pool."}, []string{"reason", "nodepool"}),
		disrupted: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "karpenter_nodeclaims_disrupted_total",
			Help: "NodeClaims removed by a decision of the planner, by reason and pool."}, []string{"reason", "nodepool"}),
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "karpenter_voluntary_disruption_decisions_total",
			Help: "Decisions to remove machines, by what was decided and why."}, []string{"decision", "reason"}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "karpenter_voluntary_disruption_failed_validations_total",
			Help: "Machines that were chosen and not taken, as something had changed before anything was done, by reason and cause."}, []string{"reason", "cause"}),
		givenUp: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "karpenter_voluntary_disruption_queue_failures_total",
			Help: "Machines for which replacements were bought and which were not taken, by reason and cause."}, []string{"reason", "cause"}),
		solve: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "karpenter_scheduler_scheduling_duration_seconds",
			Help: "Time that a plan for all pending pods took.", Buckets: durations}),
		batch: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "karpenter_scheduler_batch_size_pods",
			Help: "Pending pods per plan.", Buckets: prometheus.ExponentialBuckets(1, 4, 9)}),
		evaluate: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "karpenter_voluntary_disruption_decision_evaluation_duration_seconds",
			Help: "Time that a look for machines to remove took.", Buckets: durations}),
		pending: prometheus.NewGauge(prometheus.GaugeOpts{Name: "karpenter_scheduler_queue_depth",
			Help: "Pods that waited for a place when the last plan was made."}),
		unplaced: prometheus.NewGauge(prometheus.GaugeOpts{Name: "karpenter_scheduler_unschedulable_pods",
			Help: "Pods for which the last plan found no place."}),
	}
	reg.MustRegister(m.created, m.disrupted, m.decisions, m.dropped, m.givenUp, m.solve, m.batch, m.evaluate, m.pending, m.unplaced)
	return m
}

// Pending notes how many pods wait.
func (m *Metrics) Pending(n int) {
	if m != nil {
		m.pending.Set(float64(n))
		if n == 0 {
			m.unplaced.Set(0)
		}
	}
}

// Solved notes a plan.
func (m *Metrics) Solved(pods int, took time.Duration, unplaced int) {
	if m != nil {
		m.batch.Observe(float64(pods))
		m.solve.Observe(took.Seconds())
		m.unplaced.Set(float64(unplaced))
	}
}

// Evaluated notes a look for machines to remove.
func (m *Metrics) Evaluated(took time.Duration) {
	if m != nil {
		m.evaluate.Observe(took.Seconds())
	}
}

// Created counts a NodeClaim.
func (m *Metrics) Created(reason, pool string) {
	if m != nil {
		m.created.WithLabelValues(reason, pool).Inc()
	}
}

// Decided counts a decision.
func (m *Metrics) Decided(decision, reason string) {
	if m != nil {
		m.decisions.WithLabelValues(decision, reason).Inc()
	}
}

// Dropped counts a machine that was chosen and not taken.
func (m *Metrics) Dropped(reason, cause string) {
	if m != nil {
		m.dropped.WithLabelValues(reason, cause).Inc()
	}
}

// GivenUp counts a machine whose replacements were bought in vain.
func (m *Metrics) GivenUp(reason, cause string) {
	if m != nil {
		m.givenUp.WithLabelValues(reason, cause).Inc()
	}
}

// Disrupted counts a machine that goes.
func (m *Metrics) Disrupted(reason, pool string) {
	if m != nil {
		m.disrupted.WithLabelValues(reason, pool).Inc()
	}
}
