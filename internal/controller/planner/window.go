package planner

import "time"

// Window collects pods that come in a burst, so that one plan covers them. It
// opens with the first trigger and is due after idle without another, or after
// longest at the latest. The zero value is closed.
type Window struct {
	first, last time.Time
}

// Trigger tells that there is something new to plan.
func (w *Window) Trigger(now time.Time) {
	if w.first.IsZero() {
		w.first = now
	}
	if now.After(w.last) {
		w.last = now
	}
}

// Open reports whether anything is waiting.
func (w *Window) Open() bool { return !w.first.IsZero() }

// DueAt returns when the window ends if nothing else comes. It has no meaning
// while the window is closed.
func (w *Window) DueAt(idle, longest time.Duration) time.Time {
	due := w.last.Add(idle)
	if end := w.first.Add(longest); end.Before(due) {
		return end
	}
	return due
}

// Close empties the window; what comes from now on opens the next one.
func (w *Window) Close() { *w = Window{} }
