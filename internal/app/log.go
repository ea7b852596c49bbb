package app

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"karpenter/internal/settings"
)

// style is how the log is written; it may be changed while the process runs.
type style struct {
	level slog.LevelVar
	json  atomic.Bool
}

func newStyle(l settings.Logging) *style {
	s := &style{}
	s.level.Set(levelOf(l.Level))
	s.json.Store(l.Encoding == "json")
	return s
}

// newLog makes the log of the process.
func newLog(w io.Writer, s *style) logr.Logger {
	return logr.FromSlogHandler(&handler{to: &sink{w: w}, style: s})
}

// commit is the first digits of the version-control hash that the program was
// built from; empty if the build did not know.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value[:min(7, len(s.Value))]
		}
	}
	return ""
}

func levelOf(name string) slog.Level {
	switch name {
	case "debug":
		return slog.LevelDebug
	case "warn":
		return slog.LevelWarn
	case "error":
		return slog.LevelError
	}
	return slog.LevelInfo
}

// handler writes one line per record. It is safe for concurrent use.
type handler struct {
	to    *sink
	style *style
	attrs []slog.Attr
	group string
}

// line is what is written of a record.
type line struct {
	time, level, logger, message string
	fields                       []field
}

// field is a key and a value that are JSON already.
type field struct{ key, value []byte }

type sink struct {
	mu sync.Mutex
	w  io.Writer
}

// nameKey is where logr puts the name of the logger; controllerKey is where
// controller-runtime puts that of a controller.
const (
	nameKey       = "logger"
	controllerKey = "controller"
)

// dull are attributes that controller-runtime adds to every line and that tell
// a person nothing which is not in the line anyway.
var dull = map[string]bool{"controllerGroup": true, "controllerKind": true, "reconcileID": true}

func (c *handler) Enabled(_ context.Context, l slog.Level) bool { return l >= c.style.level.Level() }

func (c *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := *c
	out.attrs = slices.Clone(c.attrs)
	for _, a := range attrs {
		a.Key = c.group + a.Key
		out.attrs = append(out.attrs, a)
	}
	return &out
}

func (c *handler) WithGroup(name string) slog.Handler {
	out := *c
	out.group = c.group + name + "."
	return &out
}

func (c *handler) Handle(_ context.Context, r slog.Record) error {
	attrs := slices.Clone(c.attrs)
	r.Attrs(func(a slog.Attr) bool {
		if a.Key != nameKey {
			a.Key = c.group + a.Key
		}
		attrs = append(attrs, a)
		return true
	})
	l := line{time: r.Time.UTC().Format("2006-01-02T15:04:05.000Z"), level: r.Level.String(), logger: "controller", message: r.Message}
	for _, a := range attrs {
		a.Value = a.Value.Resolve()
		switch {
		case a.Key == nameKey || a.Key == controllerKey:
			l.logger += "." + strings.ReplaceAll(a.Value.String(), "/", ".")
			continue
		case dull[a.Key], a.Key == "namespace" && a.Value.String() == "", a.Value.Kind() == slog.KindGroup:
			continue // a group is the object that is reconciled, named by "name" too
		}
		if a.Key == "err" {
			a.Key = "error"
		}
		key, _ := json.Marshal(a.Key)
		l.fields = append(l.fields, field{key, value(a.Value)})
	}
	text := console(l)
	if c.style.json.Load() {
		text = asJSON(l)
	}
	c.to.mu.Lock()
	defer c.to.mu.Unlock()
	_, err := c.to.w.Write(text)
	return err
}

// console writes time, level, logger, message and the rest as JSON, separated by
// tabs.
func console(l line) []byte {
	var b bytes.Buffer
	b.WriteString(l.time + "\t" + l.level + "\t" + l.logger + "\t" + l.message)
	for i, f := range l.fields {
		if i == 0 {
			b.WriteString("\t{")
		} else {
			b.WriteString(", ")
		}
		b.Write(f.key)
		b.WriteString(": ")
		b.Write(f.value)
	}
	if len(l.fields) > 0 {
		b.WriteByte('}')
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// asJSON writes one object per line.
func asJSON(l line) []byte {
	var b bytes.Buffer
	for i, pair := range [][2]string{{"level", l.level}, {"time", l.time}, {"logger", l.logger}, {"message", l.message}} {
		text, _ := json.Marshal(pair[1])
		if i > 0 {
			b.WriteByte(',')
		} else {
			b.WriteByte('{')
		}
		b.WriteString(`"` + pair[0] + `":`)
		b.Write(text)
	}
	for _, f := range l.fields {
		b.WriteByte(',')
		b.Write(f.key)
		b.WriteByte(':')
		b.Write(f.value)
	}
	b.WriteString("}\n")
	return b.Bytes()
}

// value writes an attribute as JSON; errors and durations as their text.
func value(v slog.Value) []byte {
	switch x := v.Any().(type) {
	case error:
		b, _ := json.Marshal(x.Error())
		return b
	case interface{ String() string }:
		b, _ := json.Marshal(x.String())
		return b
	}
	b, err := json.Marshal(v.Any())
	if err != nil {
		b, _ = json.Marshal(v.String())
	}
	return b
}

// begin makes the log and gives it to the libraries.
func begin(w io.Writer, s *style) logr.Logger {
	log := newLog(w, s)
	if hash := commit(); hash != "" {
		log = log.WithValues("commit", hash)
	}
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	return log
}
