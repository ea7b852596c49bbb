package reference

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"go.yaml.in/yaml/v3"
)

// TestDocsAreFresh: what is written in docs/ is what the code says.
func TestDocsAreFresh(t *testing.T) {
	pages, err := Pages()
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) < 7 {
		t.Fatalf("%d pages", len(pages))
	}
	for path, want := range pages {
		got, err := os.ReadFile(filepath.Join("../../docs", path))
		if err != nil || string(got) != want {
			t.Errorf("docs/%s is stale: run make gen (%v)", path, err)
		}
	}
}

// TestMetricsAreNamedByTheConventions of Prometheus, those included that no test
// makes appear.
func TestMetricsAreNamedByTheConventions(t *testing.T) {
	all, err := Metrics()
	if err != nil {
		t.Fatal(err)
	}
	var families []*dto.MetricFamily
	for _, m := range all {
		f := &dto.MetricFamily{Name: &m.Name, Help: &m.Help}
		one := &dto.Metric{}
		for _, l := range m.Labels {
			one.Label = append(one.Label, &dto.LabelPair{Name: &l, Value: new("x")})
		}
		switch m.Type {
		case "counter":
			f.Type, one.Counter = dto.MetricType_COUNTER.Enum(), &dto.Counter{Value: new(1.0)}
		case "gauge":
			f.Type, one.Gauge = dto.MetricType_GAUGE.Enum(), &dto.Gauge{Value: new(1.0)}
		case "histogram":
			f.Type, one.Histogram = dto.MetricType_HISTOGRAM.Enum(), &dto.Histogram{SampleCount: new(uint64(1)), SampleSum: new(1.0)}
		}
		f.Metric = append(f.Metric, one)
		families = append(families, f)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

var metricName = regexp.MustCompile(`\b(karpenter_[a-z0-9_]+|workqueue_[a-z0-9_]+|controller_runtime_[a-z0-9_]+|leader_election_[a-z0-9_]+)\b`)

// foreign are metrics of libraries that dashboard and alerts use.
var foreign = []string{"controller_runtime_reconcile_errors_total", "controller_runtime_reconcile_time_seconds_bucket",
	"workqueue_depth", "workqueue_longest_running_processor_seconds", "leader_election_master_status"}

// TestWhatIsWatchedExists: dashboard and alerts ask for metrics and labels that
// the process has.
func TestWhatIsWatchedExists(t *testing.T) {
	all, err := Metrics()
	if err != nil {
		t.Fatal(err)
	}
	names := slices.Clone(foreign)
	for _, m := range all {
		names = append(names, m.Name)
		if m.Type == "histogram" {
			names = append(names, m.Name+"_bucket", m.Name+"_sum", m.Name+"_count")
		}
	}
	exprs := append(dashboard(t), alerts(t)...)
	if len(exprs) < 20 {
		t.Fatalf("only %d expressions were found", len(exprs))
	}
	for _, expr := range exprs {
		found := metricName.FindAllString(expr, -1)
		if len(found) == 0 {
			t.Errorf("no metric in %q", expr)
		}
		for _, name := range found {
			if !slices.Contains(names, name) {
				t.Errorf("there is no metric %s, in %q", name, expr)
			}
		}
		if strings.Count(expr, "(") != strings.Count(expr, ")") {
			t.Errorf("brackets do not match in %q", expr)
		}
	}
}

func dashboard(t *testing.T) (exprs []string) {
	t.Helper()
	text, err := os.ReadFile("../../monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			exprs = append(exprs, target.Expr)
		}
	}
	return exprs
}

func alerts(t *testing.T) (exprs []string) {
	t.Helper()
	text, err := os.ReadFile("../../monitoring/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			exprs = append(exprs, r.Expr)
			if r.Alert == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("%s %q: an alert has a severity, a summary and a description", g.Name, r.Alert)
			}
		}
	}
	return exprs
}
