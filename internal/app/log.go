package app

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
)

// newLog makes the log of the process. encoding is console or json; the level
// may be changed while it runs.
func newLog(w io.Writer, encoding string, level slog.Leveler) logr.Logger {
	var h slog.Handler = &console{to: &sink{w: w}, level: level}
	if encoding == "json" {
		h = slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level})
	}
	return logr.FromSlogHandler(h)
}

func levelOf(name string) slog.Level {
	switch name {
	case "debug":
		return slog.LevelDebug
	case "error":
		return slog.LevelError
	}
	return slog.LevelInfo
}

// console writes one line per record: time, level, logger, message and the rest
// as JSON, separated by tabs.
type console struct {
	to    *sink
	level slog.Leveler
	attrs []slog.Attr
	group string
}

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

func (c *console) Enabled(_ context.Context, l slog.Level) bool { return l >= c.level.Level() }

func (c *console) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := *c
	out.attrs = slices.Clone(c.attrs)
	for _, a := range attrs {
		a.Key = c.group + a.Key
		out.attrs = append(out.attrs, a)
	}
	return &out
}

func (c *console) WithGroup(name string) slog.Handler {
	out := *c
	out.group = c.group + name + "."
	return &out
}

func (c *console) Handle(_ context.Context, r slog.Record) error {
	attrs := slices.Clone(c.attrs)
	r.Attrs(func(a slog.Attr) bool {
		if a.Key != nameKey {
			a.Key = c.group + a.Key
		}
		attrs = append(attrs, a)
		return true
	})
	name := "controller"
	var fields bytes.Buffer
	for _, a := range attrs {
		a.Value = a.Value.Resolve()
		switch {
		case a.Key == nameKey || a.Key == controllerKey:
			name += "." + strings.ReplaceAll(a.Value.String(), "/", ".")
			continue
		case dull[a.Key], a.Key == "namespace" && a.Value.String() == "", a.Value.Kind() == slog.KindGroup:
			continue // a group is the object that is reconciled, named by "name" too
		}
		key, _ := json.Marshal(a.Key)
		if fields.Len() > 0 {
			fields.WriteString(", ")
		}
		fields.Write(key)
		fields.WriteString(": ")
		fields.Write(value(a.Value))
	}
	var line bytes.Buffer
	line.WriteString(r.Time.UTC().Format("2006-01-02T15:04:05.000Z") + "\t" + r.Level.String() + "\t" + name + "\t" + r.Message)
	if fields.Len() > 0 {
		line.WriteString("\t{" + fields.String() + "}")
	}
	line.WriteByte('\n')
	c.to.mu.Lock()
	defer c.to.mu.Unlock()
	_, err := c.to.w.Write(line.Bytes())
	return err
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
