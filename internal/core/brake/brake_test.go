package brake

import (
	"testing"
	"time"
)

func TestPausesGrow(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l := Limit{Free: 2, First: 10 * time.Second, Most: time.Minute}
	var tally Tally
	if l.Holds(tally, at) {
		t.Error("nothing has failed, and it holds")
	}
	for i, want := range []time.Duration{0, 0, 10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute, time.Minute} {
		tally = tally.Fail(at)
		if got := l.Until(tally).Sub(at); got != want {
			t.Errorf("after %d failures a pause of %s, want %s", i+1, got, want)
		}
		if l.Holds(tally, at.Add(want)) || want > 0 && !l.Holds(tally, at.Add(want-1)) {
			t.Errorf("after %d failures the pause does not end at %s", i+1, want)
		}
	}
}

// In any time the number of tries is bounded, whatever becomes of them.
func FuzzBounded(f *testing.F) {
	f.Add(uint16(3), uint16(10), uint16(600), uint16(3600))
	f.Fuzz(func(t *testing.T, free, first, most, within uint16) {
		l := Limit{Free: int(free % 20), First: time.Duration(1+first) * time.Second, Most: time.Duration(1+most) * time.Second}
		start := time.Unix(0, 0)
		now, tally, tries := start, Tally{}, 0
		for now.Sub(start) < time.Duration(within)*time.Second {
			tries++
			if tally = tally.Fail(now); l.Until(tally).After(now) {
				now = l.Until(tally)
			}
		}
		if bound := l.Free + 2 + int(within)/int(min(l.First, l.Most)/time.Second); tries > bound {
			t.Errorf("%+v: %d tries in %d s, want at most %d", l, tries, within, bound)
		}
	})
}

func TestManyFailuresDoNotOverflow(t *testing.T) {
	if got := Pool.Until(Tally{Failed: 1 << 20}); got.Sub(time.Time{}) != Pool.Most {
		t.Errorf("a pause of %s", got.Sub(time.Time{}))
	}
}
