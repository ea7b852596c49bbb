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

func TestAPoolStopsWhenMachinesDoNotHelp(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	times := func(n int, from time.Time) (out []time.Time) {
		for i := range n {
			out = append(out, from.Add(time.Duration(i)*time.Second))
		}
		return out
	}
	ago := now.Add(-30 * time.Minute)
	for _, c := range []struct {
		what  string
		y     Yield
		until time.Time
	}{
		{"nothing was bought", Yield{}, time.Time{}},
		{"a few were useless", Yield{Useless: times(Free, ago)}, time.Time{}},
		{"one too many: until the oldest is forgotten", Yield{Useless: times(Free+1, ago)}, ago.Add(time.Hour)},
		{"three too many", Yield{Useless: times(Free+3, ago)}, ago.Add(time.Hour + 2*time.Second)},
		{"many pods were placed beside them", Yield{Useless: times(40, ago), Placed: times(40, ago)}, time.Time{}},
		{"fewer were placed than machines useless", Yield{Useless: times(41, ago), Placed: times(40, ago)}, ago.Add(time.Hour)},
		{"that was long ago", Yield{Useless: times(40, now.Add(-2*time.Hour))}, time.Time{}},
	} {
		if until, holds := c.y.Until(now); !until.Equal(c.until) || holds == c.until.IsZero() {
			t.Errorf("%s: until %s (%v), want %s", c.what, until, holds, c.until)
		}
	}
}
