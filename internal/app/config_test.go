package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/runtime"

	"karpenter/internal/settings"
)

// maps are the ConfigMaps of a namespace; nil: the API server does not answer.
type maps map[string]map[string]string

func (m maps) read(_ context.Context, name string) (map[string]string, error) {
	if m == nil {
		return nil, errors.New("down")
	}
	return m[name], nil
}

type told []string

func (l *told) Event(_ runtime.Object, _, reason, message string) {
	*l = append(*l, reason+" "+message)
}

// TestConfigMapsAreFollowed: the two ConfigMaps change while the process runs.
func TestConfigMapsAreFollowed(t *testing.T) {
	var out bytes.Buffer
	look := &style{}
	proc := settings.DefaultProcess()
	proc.Ignored = []string{"WEBHOOK_PORT (there is no webhook)"}
	base := settings.Default()
	base.ClusterName = "blue"
	live := settings.NewLive(base)
	m := maps{"karpenter-global-settings": {"batchMaxDuration": "20s", "new.key": "1"}, "config-logging": {"zap-logger-config": `{"level": "info"}`}}
	var events told
	c := newConfigMaps(proc, live, look, newLog(&out, look), func(ctx context.Context, name string) (map[string]string, error) { return m.read(ctx, name) })
	c.events = &events
	said := func(want ...string) {
		t.Helper()
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		out.Reset()
		if lines[0] == "" {
			lines = nil
		}
		if len(lines) != len(want) {
			t.Fatalf("lines %q, want %q", lines, want)
		}
		for i := range want {
			if !strings.Contains(lines[i], want[i]) {
				t.Errorf("line %q, want %q", lines[i], want[i])
			}
		}
	}
	valid := func(name string, want float64) {
		t.Helper()
		var got dto.Metric
		if err := c.valid.WithLabelValues(name).Write(&got); err != nil || got.GetGauge().GetValue() != want {
			t.Errorf("%s: valid %v, want %v", name, got.GetGauge().GetValue(), want)
		}
	}
	if err := c.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	said("new.key", "WEBHOOK_PORT")
	c.refresh(t.Context())
	said()

	m["config-logging"]["loglevel.controller"] = "debug"
	c.refresh(t.Context())
	said(`the log level changes	{"from": "info", "to": "debug"}`)
	m["config-logging"]["loglevel.controller"] = "loud"
	c.refresh(t.Context())
	c.refresh(t.Context())
	said("the ConfigMap cannot be used")
	valid("config-logging", 0)
	if look.level.Level() != slog.LevelDebug {
		t.Error("an invalid level changed the level")
	}
	m["config-logging"]["loglevel.controller"] = "error"
	c.refresh(t.Context())
	said("can be used again", `{"from": "debug", "to": "error"}`)
	valid("config-logging", 1)
	delete(m, "config-logging")
	c.refresh(t.Context())
	said(`{"from": "error", "to": "info"}`)

	m["karpenter-global-settings"]["batchMaxDuration"] = "never"
	c.refresh(t.Context())
	c.refresh(t.Context())
	said("the last good values stay")
	valid("karpenter-global-settings", 0)
	if live.Get().BatchMax.String() != "20s" {
		t.Errorf("batchMaxDuration is %s", live.Get().BatchMax)
	}
	if fmt.Sprint(events) == "[]" || !strings.Contains(events[len(events)-1], `batchMaxDuration: must be a duration greater than 0, such as 10s, not "never"`) || len(events) != 2 {
		t.Errorf("events %q", events)
	}
	m["karpenter-global-settings"]["batchMaxDuration"] = "30s"
	c.refresh(t.Context())
	said("can be used again", "the settings have changed")

	m = nil // the API server is away: nothing changes
	c.refresh(t.Context())
	said()
	if live.Get().BatchMax.String() != "30s" {
		t.Errorf("batchMaxDuration is %s", live.Get().BatchMax)
	}
}

func TestJSONLine(t *testing.T) {
	var out bytes.Buffer
	newLog(&out, newStyle(settings.Logging{Encoding: "json"})).WithName("planner").WithValues("commit", "abc").Error(errors.New("a \"b\""), "failed", "pods", 3)
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	for key, want := range map[string]any{"level": "ERROR", "logger": "controller.planner", "message": "failed", "commit": "abc", "pods": 3.0, "error": `a "b"`} {
		if got[key] != want {
			t.Errorf("%s is %v, want %v: %s", key, got[key], want, out.String())
		}
	}
}
