package planner

import (
	"testing"
	"time"
)

func TestWindow(t *testing.T) {
	at := func(ms ...int) (w Window) {
		for _, m := range ms {
			w.Trigger(time.UnixMilli(int64(m)))
		}
		return w
	}
	for name, c := range map[string]struct {
		w    Window
		want int64
	}{
		"one trigger: idle time later":         {at(1000), 2000},
		"more triggers put it off":             {at(1000, 1900, 2500), 3500},
		"never beyond the longest":             {at(1000, 2000, 3000, 4000, 5000, 5900), 6000},
		"a late report of an early one counts": {at(1000, 500), 2000},
	} {
		if got := c.w.DueAt(time.Second, 5*time.Second).UnixMilli(); got != c.want {
			t.Errorf("%s: due at %d, want %d", name, got, c.want)
		}
	}
	w := at(1)
	if w.Close(); w.Open() {
		t.Error("open after Close")
	}
}
