package drain

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics of machines that end. A nil *Metrics counts nothing.
type Metrics struct {
	claims, nodes         *prometheus.CounterVec
	claimsTook, nodesTook *prometheus.HistogramVec
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	seconds := []float64{1, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 4 * 3600, 24 * 3600}
	count := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"nodepool"})
	}
	took := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: seconds}, []string{"nodepool"})
	}
	m := &Metrics{
		claims:     count("karpenter_nodeclaims_terminated_total", "NodeClaims whose machine is gone, by pool."),
		nodes:      count("karpenter_nodes_terminated_total", "Nodes whose machine is gone, by pool."),
		claimsTook: took("karpenter_nodeclaims_termination_duration_seconds", "Time from the deletion of a NodeClaim until its machine was gone, by pool."),
		nodesTook:  took("karpenter_nodes_termination_duration_seconds", "Time from the deletion of a Node until its machine was gone, by pool."),
	}
	reg.MustRegister(m.claims, m.nodes, m.claimsTook, m.nodesTook)
	return m
}

func (m *Metrics) claimGone(pool string, took time.Duration) {
	if m != nil {
		m.claims.WithLabelValues(pool).Inc()
		m.claimsTook.WithLabelValues(pool).Observe(took.Seconds())
	}
}

func (m *Metrics) nodeGone(pool string, took time.Duration) {
	if m != nil {
		m.nodes.WithLabelValues(pool).Inc()
		m.nodesTook.WithLabelValues(pool).Observe(took.Seconds())
	}
}
