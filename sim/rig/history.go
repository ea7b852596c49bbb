package rig

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "karpenter/api/v1"
	"karpenter/internal/core/label"
	"karpenter/internal/kube/dialect"
	"karpenter/internal/scenario/cases"
	"karpenter/sim/kube"
)

// History is what has happened in a world.
type History struct {
	rig    *Rig
	start  time.Time
	Events []cases.Event
	Calls  []cases.Call
	Texts  []cases.Text
	// Lines are the timeline in words; they are kept only if Keep is set.
	Lines []string
	Keep  bool

	known map[string]bool // nodes
	gone  map[string]bool
}

func newHistory(r *Rig) *History {
	h := &History{rig: r, start: r.opt.Start, known: map[string]bool{}, gone: map[string]bool{}}
	r.Kube.Subscribe(h.changed)
	return h
}

// Launched notes that a machine was started.
func (h *History) Launched(instance string) { h.add(cases.Launched, instance, 0) }

// Nodes are the names of all nodes that there ever were.
func (h *History) Nodes() []string { return slices.Sorted(maps.Keys(h.known)) }

// Begin forgets what has happened, and counts time from now.
func (h *History) Begin() {
	h.start = h.rig.clock
	h.Events, h.Calls, h.Texts, h.Lines = nil, nil, nil, nil
}

func (h *History) since() time.Duration { return h.rig.clock.Sub(h.start) }

func (h *History) note(what, about, text string) {
	if h.Keep {
		h.Lines = append(h.Lines, fmt.Sprintf("%10s  %-10s %s %s", h.since(), what, about, text))
	}
}

func (h *History) add(k cases.EventKind, subject string, grace int) {
	h.Events = append(h.Events, cases.Event{At: h.since(), Kind: k, Subject: subject, Grace: grace})
	h.note(string(k), subject, "")
}

func (h *History) trouble(part, about string, err error) {
	h.Texts = append(h.Texts, cases.Text{At: h.since(), Words: err.Error()})
	h.note("error", part+" "+about, err.Error())
}

func (h *History) event(o runtime.Object, kind, reason, message string) {
	about := Name(o)
	h.Texts = append(h.Texts, cases.Text{At: h.since(), About: []string{about}, Words: reason + ": " + message})
	h.note("event", about, kind+" "+reason+": "+message)
}

// Name is Kind/name or Kind/namespace/name.
func Name(o runtime.Object) string {
	kind := fmt.Sprintf("%T", o)
	kind = kind[strings.LastIndexByte(kind, '.')+1:]
	m, err := meta.Accessor(o)
	if err != nil {
		return kind
	}
	if ns := m.GetNamespace(); ns != "" {
		return kind + "/" + ns + "/" + m.GetName()
	}
	return kind + "/" + m.GetName()
}

// changed sees every change of the store.
func (h *History) changed(e kube.Event) {
	switch o := e.Object().(type) {
	case *corev1.Node:
		h.nodeChanged(e.Old, e.New, o)
	case *karpv1.NodeClaim:
		if e.New != nil && o.DeletionTimestamp != nil && o.Status.NodeName != "" {
			h.removed(o.Status.NodeName)
		}
	}
	if h.Keep {
		h.show(e)
	}
}

func (h *History) nodeChanged(old, now client.Object, n *corev1.Node) {
	before, _ := old.(*corev1.Node)
	if before == nil {
		before = &corev1.Node{}
	}
	h.known[n.Name] = true
	if now == nil || n.DeletionTimestamp != nil {
		h.removed(n.Name)
		return
	}
	if old == nil {
		delete(h.gone, n.Name)
	}
	if n.Labels[label.Initialized] == "true" && before.Labels[label.Initialized] != "true" && old != nil {
		h.add(cases.Initialised, n.Name, 0)
	}
	if marked(n) && !marked(before) {
		h.add(cases.Tainted, n.Name, 0)
	}
}

func marked(n *corev1.Node) bool {
	return n.Spec.Unschedulable || slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == dialect.TaintDisrupted.Key })
}

func (h *History) removed(node string) {
	if !h.gone[node] {
		h.gone[node] = true
		h.add(cases.Removed, node, 0)
		h.add(cases.Drained, node, 0)
	}
}

// show writes a change into the timeline.
func (h *History) show(e kube.Event) {
	switch {
	case e.Old == nil:
		h.note("create", Name(e.New), "")
	case e.New == nil:
		h.note("gone", Name(e.Old), "")
	case e.New.GetDeletionTimestamp() != nil && e.Old.GetDeletionTimestamp() == nil:
		h.note("deleting", Name(e.New), "")
	default:
		if p, ok := e.New.(*corev1.Pod); ok && p.Spec.NodeName != "" && e.Old.(*corev1.Pod).Spec.NodeName == "" {
			h.note("bind", Name(p), "to "+p.Spec.NodeName)
		}
	}
}

// sink turns log lines into texts about the objects that they name.
type sink struct {
	p    *Process
	name string
	kv   []any
}

var _ logr.LogSink = (*sink)(nil)

// Init implements [logr.LogSink].
func (s *sink) Init(logr.RuntimeInfo) {}

// Enabled implements [logr.LogSink].
func (s *sink) Enabled(int) bool { return true }

// Info implements [logr.LogSink].
func (s *sink) Info(_ int, msg string, kv ...any) { s.write(msg, kv) }

// Error implements [logr.LogSink].
func (s *sink) Error(err error, msg string, kv ...any) {
	if err != nil {
		kv = append(kv, "error", err.Error())
	}
	s.write(msg, kv)
}

// WithValues implements [logr.LogSink].
func (s *sink) WithValues(kv ...any) logr.LogSink {
	return &sink{s.p, s.name, append(s.kv[:len(s.kv):len(s.kv)], kv...)}
}

// WithName implements [logr.LogSink].
func (s *sink) WithName(n string) logr.LogSink { return &sink{s.p, n, s.kv} }

// kinds tells what the values of keys in the log are.
var kinds = map[string][]string{
	"node": {"Node"}, "nodeclaim": {"NodeClaim"}, "pod": {"Pod"}, "provisioner": {"Provisioner", "NodePool"}, "nodepool": {"NodePool"},
	"pool": {"Provisioner", "NodePool"}, "class": {"EC2NodeClass", "AWSNodeTemplate"},
}

func (s *sink) write(msg string, kv []any) {
	if s.p.dead {
		return
	}
	h := s.p.rig.Log
	t := cases.Text{At: h.since(), Words: msg}
	all := append(s.kv[:len(s.kv):len(s.kv)], kv...)
	for i := 0; i+1 < len(all); i += 2 {
		value := fmt.Sprint(all[i+1])
		t.Words += fmt.Sprintf(" %v=%s", all[i], value)
		for _, kind := range kinds[fmt.Sprint(all[i])] {
			t.About = append(t.About, kind+"/"+value)
		}
	}
	h.Texts = append(h.Texts, t)
	h.note("log", s.name, t.Words)
}
