package reference

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"karpenter/internal/app"
	"karpenter/internal/assembly"
	"karpenter/internal/aws"
	"karpenter/internal/census"
	"karpenter/internal/controller/notice"
)

// Metric is one metric of the product itself.
type Metric struct {
	Name, Type, Help string
	Labels           []string
	// PerObject: it has a series for each node, pod or offering, and is published
	// only if that is asked for.
	PerObject bool
}

// nowhere is a cloud that nobody calls.
type nowhere struct{ aws.API }

func (nowhere) Region() string { return "us-west-2" }

// Metrics lists all metrics, sorted by name, as a process would register them.
func Metrics() ([]Metric, error) {
	always, err := registered(false)
	if err != nil {
		return nil, err
	}
	all, err := registered(true)
	for i := range all {
		all[i].PerObject = !slices.ContainsFunc(always, func(m Metric) bool { return m.Name == all[i].Name })
	}
	return all, err
}

func registered(perObject bool) ([]Metric, error) {
	b := &book{}
	assembly.New(assembly.Parts{AWS: nowhere{}, Inbox: struct{ notice.Inbox }{}, Metrics: b, PerObject: perObject, Now: time.Now, Log: logr.Discard()})
	b.MustRegister(app.SettingsValid())
	slices.SortFunc(b.metrics, func(x, y Metric) int { return cmp.Compare(x.Name, y.Name) })
	return b.metrics, b.err
}

// book is a registry that takes down what is registered.
type book struct {
	metrics []Metric
	err     error
}

func (b *book) Register(c prometheus.Collector) error { b.MustRegister(c); return nil }
func (b *book) Unregister(prometheus.Collector) bool  { return false }

func (b *book) MustRegister(list ...prometheus.Collector) {
	for _, c := range list {
		descs := make(chan *prometheus.Desc, 100)
		c.Describe(descs)
		close(descs)
		for d := range descs {
			m, err := read(d)
			if err != nil {
				b.err = err
			}
			m.Type = typeOf(c)
			b.metrics = append(b.metrics, m)
		}
	}
}

func typeOf(c prometheus.Collector) string {
	switch c.(type) {
	case *prometheus.CounterVec:
		return "counter"
	case *prometheus.GaugeVec, prometheus.Gauge, *census.Census: // a Gauge can do what a Counter can
		return "gauge"
	case prometheus.Counter:
		return "counter"
	}
	return "histogram"
}

// parts are those of a description, which shows them in its text only.
var parts = regexp.MustCompile(`^Desc\{fqName: "(.*)", help: "(.*)", unit: ".*", constLabels: \{\}, variableLabels: \{(.*)\}\}$`)

func read(d *prometheus.Desc) (Metric, error) {
	p := parts.FindStringSubmatch(d.String())
	if p == nil {
		return Metric{}, fmt.Errorf("a description is written in another way: %s", d)
	}
	m := Metric{Name: p[1], Help: p[2]}
	if p[3] != "" {
		m.Labels = strings.Split(p[3], ",")
	}
	return m, nil
}

func metricsPage() (string, error) {
	all, err := Metrics()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(generated + `# Metrics

Served on the metrics port under ` + "`/metrics`" + `. Numbers of what there is are those of the last snapshot that a decision was
made from; a replica that follows has none of them, and ` + "`karpenter_cluster_state_synced`" + ` is 0 there. The series of an object
goes with the object. Beside these there are the metrics of controller-runtime, client-go, its work queues and Go.

The label ` + "`nodepool`" + ` is the name of the Provisioner or NodePool. ` + "`monitoring/`" + ` has a dashboard and alert rules.

`)
	section := func(text string, perObject bool) {
		b.WriteString(text)
		var rows [][]string
		for _, m := range all {
			if m.PerObject == perObject {
				rows = append(rows, []string{code(m.Name), m.Type, code(m.Labels...), m.Help})
			}
		}
		table(&b, []string{"metric", "type", "labels", "meaning"}, rows)
	}
	section("", false)
	section("## Per node, pod and offering\n\nWith `METRICS_PER_OBJECT=true`. At 5,000 nodes these are hundreds of thousands of series.\n\n", true)
	b.WriteString("## Older names\n\nWith `METRICS_OLD_NAMES=true` the same numbers are published under names of v0.23, and under those of v1 that the\nconventions of Prometheus do not allow. Labels that the older metric does not have are summed up.\n\n")
	var rows [][]string
	for _, pair := range census.OlderNames() {
		rows = append(rows, []string{code(pair[0]), code(pair[1])})
	}
	table(&b, []string{"older name", "from"}, rows)
	return b.String(), nil
}
