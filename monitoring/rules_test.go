package monitoring

import (
	"encoding/json"
	"log/slog"
	"os"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// TestPrometheusReadsTheRules, templates and expressions included.
func TestPrometheusReadsTheRules(t *testing.T) {
	groups, errs := rulefmt.ParseFile("alerts.yaml", false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Error(err)
	}
	if groups == nil || len(groups.Groups) == 0 || len(groups.Groups[0].Rules) < 5 {
		t.Fatal("there are no rules")
	}
}

// TestPrometheusReadsTheDashboard: every expression is one.
func TestPrometheusReadsTheDashboard(t *testing.T) {
	text, err := os.ReadFile("dashboard.json")
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
	n := 0
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			n++
			if _, err := parser.NewParser(parser.Options{}).ParseExpr(target.Expr); err != nil {
				t.Errorf("%s: %v", p.Title, err)
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d expressions", n)
	}
}
