package app

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"karpenter/internal/kube/event"
	"karpenter/internal/settings"
)

// settingsName is the ConfigMap with what the controller does; that with how it
// logs may be named differently.
const settingsName = "karpenter-global-settings"

// configMaps follows the two ConfigMaps. What cannot be used changes nothing, and is
// said once: in the log, as an event of the ConfigMap, and by a metric.
type configMaps struct {
	proc  settings.Process
	live  *settings.Live
	style *style
	log   logr.Logger
	read  func(ctx context.Context, name string) (map[string]string, error)
	// events is nil as long as there is nobody to publish them.
	events event.Recorder
	valid  *prometheus.GaugeVec

	said map[string]string // by what it is about
}

func newConfigMaps(proc settings.Process, live *settings.Live, style *style, log logr.Logger, read func(context.Context, string) (map[string]string, error)) configMaps {
	return configMaps{proc: proc, live: live, style: style, log: log, read: read, said: map[string]string{},
		valid: SettingsValid()}
}

// SettingsValid makes the metric that tells whether the ConfigMaps can be used.
func SettingsValid() *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "karpenter_settings_valid",
		Help: "1 if the ConfigMap can be used as it is now, or does not exist; 0 if the last good values hold instead."}, []string{"configmap"})
}

// start reads both ConfigMaps. Settings that cannot be used are an error, as
// there are no good ones to go on with; for the log there are.
func (c *configMaps) start(ctx context.Context) error {
	c.logging(ctx)
	data, err := c.read(ctx, settingsName)
	if err != nil {
		return fmt.Errorf("reading the settings: %w", err)
	}
	_, unknown, err := c.live.Update(data)
	if err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	c.verdict(settingsName, nil)
	c.strange(unknown)
	return nil
}

// refresh reads both again.
func (c *configMaps) refresh(ctx context.Context) {
	c.logging(ctx)
	data, err := c.read(ctx, settingsName)
	if err != nil {
		return // nothing is known to have changed
	}
	changed, unknown, err := c.live.Update(data)
	c.verdict(settingsName, err)
	if err != nil {
		return
	}
	c.strange(unknown)
	if changed {
		c.log.Info("the settings have changed", "configmap", settingsName)
	}
}

// logging applies a changed level or encoding.
func (c *configMaps) logging(ctx context.Context) {
	name := c.proc.LoggingConfig
	if name == "" {
		return
	}
	data, err := c.read(ctx, name)
	if err != nil {
		return
	}
	l, err := c.proc.Logging(data)
	c.verdict(name, err)
	if err != nil {
		return
	}
	c.style.json.Store(l.Encoding == "json")
	if was, next := c.style.level.Level(), levelOf(l.Level); was != next {
		c.style.level.Set(min(was, next, slog.LevelInfo)) // so that the line is seen
		c.log.Info("the log level changes", "from", strings.ToLower(was.String()), "to", strings.ToLower(next.String()))
		c.style.level.Set(next)
	}
}

// verdict says, when it is new, that a ConfigMap cannot be used, or can again.
func (c *configMaps) verdict(name string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	c.valid.WithLabelValues(name).Set(map[bool]float64{true: 1}[err == nil])
	was := c.said["verdict "+name]
	if !c.news("verdict "+name, text) {
		return
	}
	if text == "" {
		if was != "" {
			c.log.Info("the ConfigMap can be used again", "configmap", name)
		}
		return
	}
	c.log.Error(err, "the ConfigMap cannot be used; the last good values stay", "configmap", name)
	if c.events != nil {
		o := &corev1.ConfigMap{}
		o.Namespace, o.Name = c.proc.SystemNamespace, name
		c.events.Event(o, corev1.EventTypeWarning, "InvalidSettings", text+"; the last good values stay")
	}
}

// strange names what was set and has no effect.
func (c *configMaps) strange(unknown []string) {
	if text := strings.Join(unknown, ", "); c.news("unknown", text) && text != "" {
		c.log.Info("settings that are not known here are ignored", "configmap", settingsName, "keys", text)
	}
	idle := slices.Concat(c.proc.Ignored, c.live.Get().Ignored)
	if text := strings.Join(idle, ", "); c.news("ignored", text) && text != "" {
		c.log.Info("settings that have no effect here", "settings", text)
	}
}

// news reports whether this has not been said of it last.
func (c *configMaps) news(about, text string) bool {
	was, known := c.said[about]
	c.said[about] = text
	return !known || was != text
}
