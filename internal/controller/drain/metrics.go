package drain

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Metrics of machines that end. A nil *Metrics counts nothing.
type Metrics struct {
	claims, nodes         *prometheus.CounterVec
	claimsTook, nodesTook *prometheus.HistogramVec
	lifetime              *prometheus.HistogramVec
	evictions             *prometheus.CounterVec
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
		lifetime: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "karpenter_nodes_lifetime_duration_seconds",
			Help: "Time from the creation of a Node until it was gone, by pool.", Buckets: prometheus.ExponentialBuckets(60, 3, 12)}, []string{"nodepool"}),
		evictions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "karpenter_pods_eviction_requests_total",
			Help: "Evictions of pods that were asked for, by the code of the answer: 200, or that of the refusal."}, []string{"code"}),
	}
	reg.MustRegister(m.claims, m.nodes, m.claimsTook, m.nodesTook, m.lifetime, m.evictions)
	return m
}

func (m *Metrics) claimGone(pool string, took time.Duration) {
	if m != nil {
		m.claims.WithLabelValues(pool).Inc()
		m.claimsTook.WithLabelValues(pool).Observe(took.Seconds())
	}
}

// evicted counts an eviction by its answer.
func (m *Metrics) evicted(err error) {
	if m == nil {
		return
	}
	code := http.StatusOK
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &status):
		code = int(status.Status().Code)
	case err != nil:
		code = http.StatusServiceUnavailable // there was no answer
	}
	m.evictions.WithLabelValues(strconv.Itoa(code)).Inc()
}

func (m *Metrics) nodeGone(pool string, lived, took time.Duration) {
	if m != nil {
		m.lifetime.WithLabelValues(pool).Observe(lived.Seconds())
		m.nodes.WithLabelValues(pool).Inc()
		m.nodesTook.WithLabelValues(pool).Observe(took.Seconds())
	}
}
