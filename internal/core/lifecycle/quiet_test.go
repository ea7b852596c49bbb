package lifecycle

import (
	"slices"
	"testing"
	"time"

	"karpenter/internal/core/world"
)

func TestQuiet(t *testing.T) {
	const wait = 5 * time.Minute
	pod := world.Pod{ObjectName: world.ObjectName{Namespace: "default", Name: "p"}, UID: "p", Node: "node-1"}
	since := func(in *Input, ago time.Duration) { in.Record.Initialized.Since = in.Now.Add(-ago) }
	event := func(in *Input, ago time.Duration) { at := in.Now.Add(-ago); in.Record.PodEvent = &at }
	for name, c := range map[string]struct {
		change func(*Input)
		noted  bool // that a pod came or went
		quiet  bool
		again  time.Duration // 0: the usual recheck
	}{
		"usable for a moment": {func(in *Input) { since(in, time.Minute) }, false, false, 4 * time.Minute},
		"usable for long":     {func(in *Input) { since(in, wait) }, false, true, 0},
		"a pod came": {func(in *Input) {
			since(in, time.Hour)
			in.Seen = map[string]bool{}
			in.Nodes[0].Pods = []world.Pod{pod}
		}, true, false, 0},
		"a pod went": {func(in *Input) { since(in, time.Hour); in.Seen = map[string]bool{"p": true} }, true, false, 0},
		"the same pods": {func(in *Input) {
			since(in, time.Hour)
			in.Seen = map[string]bool{"p": true}
			in.Nodes[0].Pods = []world.Pod{pod}
		}, false, true, 0},
		"what happened before": {func(in *Input) { since(in, time.Hour); event(in, 2*time.Minute) }, false, false, 3 * time.Minute},
		"a daemon came": {func(in *Input) {
			since(in, time.Hour)
			in.Seen = map[string]bool{}
			d := pod
			d.Owner.Kind = "DaemonSet"
			in.Nodes[0].Pods = []world.Pod{d}
		}, false, true, 0},
		"a pod begins to terminate": {func(in *Input) {
			since(in, time.Hour)
			in.Seen = map[string]bool{"p": true}
			p := pod
			p.DeletedAt = &in.Now
			in.Nodes[0].Pods = []world.Pod{p}
		}, true, false, 0},
		"many pods come, once in a while it is noted": {func(in *Input) {
			since(in, time.Hour)
			event(in, 4*time.Second)
			in.Seen = map[string]bool{}
			in.Nodes[0].Pods = []world.Pod{pod}
		},
			false, false, 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			in := running(func(in *Input) { d := wait; in.Quiet = &d })
			c.change(&in)
			s := Next(in)
			if (s.PodEvent != nil) != c.noted || s.PodEvent != nil && !s.PodEvent.Equal(in.Now) {
				t.Errorf("noted %v, want %v", s.PodEvent, c.noted)
			}
			if got := slices.Contains(s.Conditions, holds(Consolidatable)); got != c.quiet {
				t.Errorf("consolidatable: %v", got)
			}
			if c.again > 0 && c.again < Recheck && s.Again.Sub(in.Now) != c.again {
				t.Errorf("looked at again after %s, want %s", s.Again.Sub(in.Now), c.again)
			}
		})
	}
}
