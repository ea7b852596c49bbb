package census

import (
	"cmp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// older is a metric under the name that another version gives it.
type older struct {
	name, from string
	// labels are those that are kept, by their name here, with the name there.
	labels map[string]string
	// values translates values of the labels that are kept; others stay.
	values map[string]string
	factor float64 // 0: 1
}

var (
	byPool     = map[string]string{"nodepool": "provisioner", "resource_type": "resource_type"}
	whyCreated = map[string]string{"provisioned": "provisioning", "emptiness": "deprovisioning", "expiration": "deprovisioning", "drift": "deprovisioning", "consolidation": "deprovisioning"}
)

// olderNames are the names of v0.23, and those of v1 that the conventions of
// Prometheus do not allow.
var olderNames = []older{
	{name: "karpenter_nodes_created", from: "karpenter_nodeclaims_created_total", labels: map[string]string{"reason": "reason"}, values: whyCreated},
	{name: "karpenter_nodes_terminated", from: "karpenter_nodeclaims_disrupted_total", labels: map[string]string{"reason": "reason"}},
	{name: "karpenter_nodes_termination_time_seconds", from: "karpenter_nodes_termination_duration_seconds"},
	{name: "karpenter_pods_startup_time_seconds", from: "karpenter_pods_startup_duration_seconds"},
	{name: "karpenter_provisioner_limit", from: "karpenter_nodepools_limit", labels: byPool},
	{name: "karpenter_provisioner_usage", from: "karpenter_nodepools_usage", labels: byPool},
	{name: "karpenter_deprovisioning_actions_performed", from: "karpenter_voluntary_disruption_decisions_total", labels: map[string]string{"decision": "action"}},
	{name: "karpenter_deprovisioning_evaluation_duration_seconds", from: "karpenter_voluntary_disruption_decision_evaluation_duration_seconds"},
	{name: "karpenter_interruption_received_messages", from: "karpenter_interruption_received_messages_total", labels: map[string]string{"message_type": "message_type"}},
	{name: "karpenter_interruption_deleted_messages", from: "karpenter_interruption_deleted_messages_total"},
	{name: "karpenter_interruption_message_latency_time_seconds", from: "karpenter_interruption_message_queue_duration_seconds"},
	{name: "karpenter_allocation_controller_scheduling_duration_seconds", from: "karpenter_scheduler_scheduling_duration_seconds"},
	{name: "karpenter_scheduler_unschedulable_pods_count", from: "karpenter_scheduler_unschedulable_pods"},
	{name: "karpenter_cluster_state_node_count", from: "karpenter_cluster_state_nodes"},
	{name: "karpenter_cluster_utilization_percent", from: "karpenter_cluster_utilization_ratio", labels: map[string]string{"resource_type": "resource_type"}, factor: 100},
	{name: "karpenter_nodepools_cost_total", from: "karpenter_nodes_price_per_hour", labels: map[string]string{"nodepool": "nodepool"}},
}

// OlderNames returns the older names and the metrics that they stand for, in the
// order of the reference.
func OlderNames() (pairs [][2]string) {
	for _, o := range olderNames {
		pairs = append(pairs, [2]string{o.name, o.from})
	}
	return append(pairs, [2]string{usedShare, "karpenter_nodepools_usage / karpenter_nodepools_limit"})
}

// usedShare is v0.23's share of a limit in use, in whole percent.
const usedShare = "karpenter_provisioner_usage_pct"

// Older gathers what another gatherer does, and the same under its older names.
type Older struct{ prometheus.Gatherer }

// Gather returns all families, sorted by name.
func (g Older) Gather() ([]*dto.MetricFamily, error) {
	out, err := g.Gatherer.Gather()
	byName := make(map[string]*dto.MetricFamily, len(out))
	for _, f := range out {
		byName[f.GetName()] = f
	}
	for _, o := range olderNames {
		if f := byName[o.from]; f != nil {
			byName[o.name] = o.of(f)
			out = append(out, byName[o.name])
		}
	}
	if used, most := byName["karpenter_provisioner_usage"], byName["karpenter_provisioner_limit"]; used != nil && most != nil {
		out = append(out, shares(used, most))
	}
	slices.SortFunc(out, func(a, b *dto.MetricFamily) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return out, err
}

// of returns the family under the older name. Series that differ only in labels
// which are not kept are added up.
func (o *older) of(f *dto.MetricFamily) *dto.MetricFamily {
	out := &dto.MetricFamily{Name: &o.name, Help: new("The older name of " + o.from + "."), Type: f.Type}
	series := map[string]*dto.Metric{}
	for _, m := range f.Metric {
		var labels []*dto.LabelPair
		for _, l := range m.Label {
			if name, kept := o.labels[l.GetName()]; kept {
				labels = append(labels, &dto.LabelPair{Name: new(name), Value: new(cmp.Or(o.values[l.GetValue()], l.GetValue()))})
			}
		}
		slices.SortFunc(labels, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
		key := text(labels)
		if series[key] == nil {
			series[key] = &dto.Metric{Label: labels}
			out.Metric = append(out.Metric, series[key])
		}
		o.add(series[key], m)
	}
	slices.SortFunc(out.Metric, func(a, b *dto.Metric) int { return strings.Compare(text(a.Label), text(b.Label)) })
	return out
}

func (o *older) add(to, m *dto.Metric) {
	factor := cmp.Or(o.factor, 1)
	switch {
	case m.Counter != nil:
		to.Counter = &dto.Counter{Value: new(to.GetCounter().GetValue() + factor*m.Counter.GetValue())}
	case m.Gauge != nil:
		to.Gauge = &dto.Gauge{Value: new(to.GetGauge().GetValue() + factor*m.Gauge.GetValue())}
	case m.Histogram != nil:
		to.Histogram = sum(to.Histogram, m.Histogram)
	}
}

// sum adds two histograms of the same buckets; the first may be nil.
func sum(a, b *dto.Histogram) *dto.Histogram {
	out := &dto.Histogram{SampleCount: new(a.GetSampleCount() + b.GetSampleCount()), SampleSum: new(a.GetSampleSum() + b.GetSampleSum())}
	for i, bucket := range b.Bucket {
		count := bucket.GetCumulativeCount()
		if a != nil {
			count += a.Bucket[i].GetCumulativeCount()
		}
		out.Bucket = append(out.Bucket, &dto.Bucket{UpperBound: bucket.UpperBound, CumulativeCount: &count})
	}
	return out
}

// shares are the limits in use, in whole percent; a limit of 0 is used up.
func shares(used, most *dto.MetricFamily) *dto.MetricFamily {
	out := &dto.MetricFamily{Name: new(usedShare), Help: new("Share of a limit in use, in percent."), Type: dto.MetricType_GAUGE.Enum()}
	has := map[string]float64{}
	for _, m := range used.Metric {
		has[text(m.Label)] = m.GetGauge().GetValue()
	}
	for _, m := range most.Metric {
		percent := 100.0
		if limit := m.GetGauge().GetValue(); limit > 0 {
			percent = float64(int64(has[text(m.Label)] / limit * 100))
		}
		out.Metric = append(out.Metric, &dto.Metric{Label: m.Label, Gauge: &dto.Gauge{Value: &percent}})
	}
	return out
}

func text(labels []*dto.LabelPair) string {
	var b strings.Builder
	for _, l := range labels {
		b.WriteString(l.GetName() + "=" + l.GetValue() + ";")
	}
	return b.String()
}
