package demo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// entry is something that happened.
type entry struct {
	at   time.Time
	who  string
	what string
	// group joins entries of one kind into one line, such as "3 pods run on
	// ip-10-0-0-7"; empty = a line of its own. {} in what is the number.
	group string
}

// timeline collects what happens and writes it in the order of time. Entries
// wait a moment, so that late news still comes in order and equal news becomes
// one line.
type timeline struct {
	screen *Screen

	mu      sync.Mutex
	waiting []entry
}

const settle = 400 * time.Millisecond

func (t *timeline) add(e entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = append(t.waiting, e)
}

// flush writes the entries that are older than the moment, or all.
func (t *timeline) flush(all bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	slices.SortStableFunc(t.waiting, func(a, b entry) int { return a.at.Compare(b.at) })
	due := len(t.waiting)
	if !all {
		limit := time.Now().Add(-settle)
		due, _ = slices.BinarySearchFunc(t.waiting, limit, func(e entry, l time.Time) int { return cmp.Compare(e.at.UnixNano(), l.UnixNano()) })
	}
	counts := map[string]int{}
	for _, e := range t.waiting[:due] {
		counts[e.group]++
	}
	for _, e := range t.waiting[:due] {
		what := e.what
		if e.group != "" {
			if counts[e.group] == 0 {
				continue
			}
			what = strings.ReplaceAll(what, "{}", plural(counts[e.group], "pod"))
			counts[e.group] = 0
		}
		t.screen.At(e.at, e.who, what)
	}
	t.waiting = slices.Delete(t.waiting, 0, due)
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
