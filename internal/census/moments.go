package census

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/internal/core/label"
)

// Moments counts what a watch shows to have happened between two states of a pod
// or node. It keeps nothing, so what happens while nobody watches is not counted.
type Moments struct {
	now     func() time.Time
	bound   prometheus.Histogram
	started prometheus.Histogram
	joined  *prometheus.CounterVec
}

// NewMoments makes the metrics and registers them.
func NewMoments(reg prometheus.Registerer, now func() time.Time) *Moments {
	seconds := []float64{.5, 1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 600, 1800, 3600}
	m := &Moments{now: now,
		bound: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "karpenter_pods_bound_duration_seconds",
			Help: "Time from the creation of a pod until it was bound to a node.", Buckets: seconds}),
		started: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "karpenter_pods_startup_duration_seconds",
			Help: "Time from the creation of a pod until it was ready for the first time.", Buckets: seconds}),
		joined: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "karpenter_nodes_created_total",
			Help: "Nodes of our machines that joined, by pool."}, []string{"nodepool"}),
	}
	reg.MustRegister(m.bound, m.started, m.joined)
	return m
}

// Notice looks at a change: before is nil for a new object, after for one that is
// gone.
func (m *Moments) Notice(before, after client.Object) {
	switch now := after.(type) {
	case *corev1.Pod:
		if was, ok := before.(*corev1.Pod); ok && was != nil && now != nil && was.UID == now.UID {
			m.pod(was, now)
		}
	case *corev1.Node:
		if was, ok := before.(*corev1.Node); ok && was != nil && now != nil && was.Labels[label.Registered] == "" && now.Labels[label.Registered] != "" {
			pool := now.Labels[label.NodePool]
			if pool == "" {
				pool = now.Labels[label.Provisioner]
			}
			m.joined.WithLabelValues(pool).Inc()
		}
	}
}

func (m *Moments) pod(was, now *corev1.Pod) {
	age := max(0, m.now().Sub(now.CreationTimestamp.Time).Seconds())
	if was.Spec.NodeName == "" && now.Spec.NodeName != "" {
		m.bound.Observe(age)
	}
	if was.Status.Phase == corev1.PodPending && ready(now) {
		m.started.Observe(age)
	}
}

func ready(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
