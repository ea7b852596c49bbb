package notice

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"karpenter/internal/cloud"
)

// Metrics of notices. A nil *Metrics counts nothing.
type Metrics struct {
	messages *prometheus.CounterVec
	deleted  prometheus.Counter
	latency  prometheus.Histogram
	up       prometheus.Gauge
	unwell   *prometheus.CounterVec
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		messages: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "karpenter_interruption_received_messages_total",
			Help: "Messages received from the interruption queue, by kind."}, []string{"message_type"}),
		deleted: prometheus.NewCounter(prometheus.CounterOpts{Name: "karpenter_interruption_deleted_messages_total",
			Help: "Messages taken off the interruption queue."}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "karpenter_interruption_message_queue_duration_seconds",
			Help: "Time from what a message tells of until it was received.", Buckets: []float64{1, 2, 5, 10, 20, 30, 60, 90, 120, 300, 600, 3600}}),
		up: prometheus.NewGauge(prometheus.GaugeOpts{Name: "karpenter_interruption_queue_available",
			Help: "1 while messages can be received from the interruption queue; 0 if they cannot, or none is set."}),
		unwell: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "karpenter_interruption_instance_status_unhealthy_total",
			Help: "Machines found out of order by the cloud's status checks, or with something planned for them, by kind."}, []string{"category"}),
	}
	reg.MustRegister(m.messages, m.deleted, m.latency, m.up, m.unwell)
	return m
}

func (m *Metrics) received(d cloud.Delivery, now time.Time) {
	if m == nil {
		return
	}
	m.messages.WithLabelValues(string(d.Kind)).Inc()
	if !d.At.IsZero() {
		m.latency.Observe(max(0, now.Sub(d.At).Seconds()))
	}
}

func (m *Metrics) acknowledged(n int) {
	if m != nil {
		m.deleted.Add(float64(n))
	}
}

func (m *Metrics) unhealthy(kind cloud.NoticeKind) {
	if m != nil {
		m.unwell.WithLabelValues(string(kind)).Inc()
	}
}

func (m *Metrics) works(yes bool) {
	if m == nil {
		return
	}
	m.up.Set(0)
	if yes {
		m.up.Set(1)
	}
}
