package faults

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"

	"karpenter/internal/census"
	"karpenter/sim/ec2"
)

// scrape sums the series of each metric (counts, for histograms), by name and the
// values of its labels.
func scrape(t *testing.T, families []*dto.MetricFamily, err error) map[string]float64 {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			v := m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			out[f.GetName()] += v
			var values []string
			for _, l := range m.Label {
				values = append(values, l.GetValue())
			}
			if len(values) > 0 {
				out[f.GetName()+" "+strings.Join(values, " ")] += v
			}
		}
	}
	return out
}

func expect(t *testing.T, got, want map[string]float64) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if g := got[name]; g < want[name]-1e-9 || g > want[name]+1e-9 {
			t.Errorf("%s is %v, want %v", name, g, want[name])
		}
	}
}

// TestMetricsTellWhatHappened: six pods get machines and lose them again; the
// numbers follow, and no series of an object outlives it.
func TestMetricsTellWhatHappened(t *testing.T) {
	w := newWorld(7, "", shape{})
	w.chaos = newChaos(w) // that never begins
	p := w.Start()
	w.Run(start.Add(10 * time.Second))
	w.deploy("app", 6, 900, false, false)
	w.Run(start.Add(10 * time.Minute))

	running, dollars := 0.0, 0.0
	for _, i := range w.Cloud.Instances() {
		if i.State == ec2.Running {
			running++
			dollars += map[string]float64{"m5.large": .096, "m5.xlarge": .192, "m5.2xlarge": .384, "m5.4xlarge": .768}[i.Type]
		}
	}
	families, err := p.Registry.Gather()
	up := scrape(t, families, err)
	expect(t, up, map[string]float64{
		"karpenter_nodeclaims_created_total main provisioned": running,
		"karpenter_nodes_created_total main":                  running,
		"karpenter_nodes_price_per_hour":                      dollars,
		"karpenter_cluster_state_nodes main ready":            running,
		"karpenter_cluster_state_synced":                      1,
		"karpenter_nodepools_limit main cpu":                  limitCPU,
		"karpenter_nodepools_usage main nodes":                running,
		"karpenter_pods_bound_duration_seconds":               6 + running, // and the daemon's
		"karpenter_pods_startup_duration_seconds":             6 + running,
		"karpenter_scheduler_queue_depth":                     0,
		"karpenter_pods_state":                                6 + running,
	})
	if running == 0 || up["karpenter_cluster_utilization_ratio cpu"] <= 0.1 || up["karpenter_cluster_utilization_ratio cpu"] > 1 {
		t.Errorf("%v machines run; the CPU in use is %v", running, up["karpenter_cluster_utilization_ratio cpu"])
	}
	older, err := census.Older{Gatherer: p.Registry}.Gather()
	expect(t, scrape(t, older, err), map[string]float64{
		"karpenter_nodes_created provisioning":                running,
		"karpenter_provisioner_limit main cpu":                limitCPU,
		"karpenter_provisioner_usage_pct main cpu":            float64(int(up["karpenter_nodepools_usage main cpu"] / limitCPU * 100)),
		"karpenter_nodepools_cost_total main":                 dollars,
		"karpenter_pods_startup_time_seconds":                 6 + running,
		"karpenter_nodeclaims_created_total main provisioned": running, // the others are still there
	})
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}

	w.scale("app", 0)
	w.Run(start.Add(30 * time.Minute))
	families, err = p.Registry.Gather()
	down := scrape(t, families, err)
	expect(t, down, map[string]float64{
		"karpenter_nodeclaims_disrupted_total":                running,
		"karpenter_nodeclaims_terminated_total main":          running,
		"karpenter_nodes_terminated_total main":               running,
		"karpenter_nodes_lifetime_duration_seconds main":      running,
		"karpenter_nodes_termination_duration_seconds main":   running,
		"karpenter_voluntary_disruption_decisions_total":      running,
		"karpenter_nodes_price_per_hour":                      0,
		"karpenter_nodepools_usage main cpu":                  0,
		"karpenter_nodepools_nodes_consuming_budgets main":    0,
		"karpenter_cluster_state_nodes":                       0,
		"karpenter_cloudprovider_duration_seconds Create aws": up["karpenter_cloudprovider_duration_seconds Create aws"],
	})
	for _, f := range families {
		if name := f.GetName(); strings.HasPrefix(name, "karpenter_nodes_total_") || name == "karpenter_nodes_allocatable" || name == "karpenter_pods_state" || name == "karpenter_nodes_price_per_hour" {
			t.Errorf("%s still has %d series, and there is neither pod nor node", name, len(f.Metric))
		}
	}

	w.must(w.kube.Delete(ctx, w.provisioner()))
	w.Run(start.Add(40 * time.Minute))
	families, err = p.Registry.Gather()
	for name := range scrape(t, families, err) {
		if strings.HasPrefix(name, "karpenter_nodepools_") {
			t.Errorf("%s is there, and the pool is gone", name)
		}
	}
}

// TestAReplicaThatFollowsCountsNothing: what there is is said by who decides.
func TestAReplicaThatFollowsCountsNothing(t *testing.T) {
	w := newWorld(7, "", shape{})
	w.chaos = newChaos(w)
	p := w.Start()
	families, err := p.Registry.Gather()
	got := scrape(t, families, err)
	if v, ok := got["karpenter_cluster_state_synced"]; !ok || v != 0 {
		t.Errorf("synced is %v, %v; want 0", v, ok)
	}
	for name := range got {
		if strings.HasPrefix(name, "karpenter_nodepools_") || strings.HasPrefix(name, "karpenter_nodes_price") {
			t.Errorf("%s is told", name)
		}
	}
}
