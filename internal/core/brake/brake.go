// Package brake stops what does not help, whatever the cause: buying machines
// that never become usable, or that no pod uses, for one pod or for a whole pool,
// and removing machines whose pods then need new ones.
//
// It is a function of what was tried and what came of it; it imports the
// standard library only.
package brake

import (
	"slices"
	"time"
)

// Tally counts tries in a row that did not help. The zero value has seen none.
type Tally struct {
	Failed int
	// Last is when the last of them failed.
	Last time.Time
}

// Fail counts one that did not help.
func (t Tally) Fail(at time.Time) Tally { return Tally{t.Failed + 1, at} }

// Limit says how many tries in a row are free, and how long the pause after the
// next one is; it doubles with each further one, up to Most.
type Limit struct {
	Free        int
	First, Most time.Duration
}

// The limits.
var (
	// Pod: an offering may be refused, and another one be tried at once.
	Pod = Limit{Free: 1, First: 10 * time.Second, Most: 10 * time.Minute}
	// Pool: several machines of one plan may fail together.
	Pool = Limit{Free: 10, First: time.Minute, Most: time.Hour}
	// Churn: pods may have changed between the decision and the eviction.
	Churn = Limit{Free: 1, First: 5 * time.Minute, Most: time.Hour}
)

// Until is when the next try is allowed; not later than Last if it is at once.
func (l Limit) Until(t Tally) time.Time {
	over := t.Failed - l.Free
	if over <= 0 {
		return t.Last
	}
	pause := l.Most
	if over <= 30 { // beyond that it would overflow, and it is at most Most long before
		pause = min(l.First<<(over-1), l.Most)
	}
	return t.Last.Add(pause)
}

// Holds reports whether it is too early for the next try.
func (l Limit) Holds(t Tally, now time.Time) bool { return t.Failed > 0 && now.Before(l.Until(t)) }

// Yield is what came of the machines of a pool within the last hour: Useless are
// those that never became usable, or became usable and got none of the pods that
// they were bought for; Placed are pods that got a place. Both are in the order
// of time. The zero value has seen nothing.
type Yield struct{ Useless, Placed []time.Time }

// Free is how many useless machines a pool may have within the hour whatever
// else it does, and hour is how long they count.
const (
	Free = 20
	hour = time.Hour
)

// Since forgets what is older than an hour.
func (y Yield) Since(now time.Time) Yield {
	old := func(t time.Time) bool { return now.Sub(t) >= hour }
	return Yield{slices.DeleteFunc(slices.Clone(y.Useless), old), slices.DeleteFunc(slices.Clone(y.Placed), old)}
}

// Until is when the pool may buy again; false: it may at once. It stops when
// more machines were useless than are free, and more than pods were placed.
func (y Yield) Until(now time.Time) (time.Time, bool) {
	y = y.Since(now)
	over := len(y.Useless) - max(Free, len(y.Placed))
	if over <= 0 {
		return time.Time{}, false
	}
	return y.Useless[over-1].Add(hour), true
}
