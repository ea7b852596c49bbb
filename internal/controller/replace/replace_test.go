package replace

import (
	"testing"
	"time"

	"karpenter/internal/kube/intent"
)

func TestDecide(t *testing.T) {
	t0 := time.Unix(0, 0)
	bought := intent.Intent{Since: t0, Replacements: 2, Bought: true}
	for name, c := range map[string]struct {
		in     intent.Intent
		s      state
		after  time.Duration
		remove bool
		giveUp bool
	}{
		"ready":                              {in: bought, s: state{live: 2, ready: 2}, after: time.Minute, remove: true},
		"ready at the last moment":           {in: bought, s: state{live: 2, ready: 2}, after: readyWithin, remove: true},
		"one is missing":                     {in: bought, s: state{live: 2, ready: 1}, after: time.Minute},
		"too late":                           {in: bought, s: state{live: 2, ready: 1}, after: readyWithin, giveUp: true},
		"one has failed":                     {in: bought, s: state{live: 1, ready: 1}, after: visibleWithin, giveUp: true},
		"the cache may be behind":            {in: bought, s: state{}, after: visibleWithin - 1},
		"still being checked":                {in: intent.Intent{Since: t0}, after: checkedWithin - 1},
		"left behind by a process that died": {in: intent.Intent{Since: t0}, after: checkedWithin, giveUp: true},
	} {
		remove, giveUp, again := decide(c.in, c.s, t0.Add(c.after))
		if remove != c.remove || (giveUp != nil) != c.giveUp {
			t.Errorf("%s: remove %v, give up %v", name, remove, giveUp)
		}
		if waits := !remove && giveUp == nil; waits != (again > 0) {
			t.Errorf("%s: again in %s", name, again)
		}
	}
}
