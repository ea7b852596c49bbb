package rig

import "time"

// Around is the cluster around the controllers. Its turn comes when an object has
// changed, and at the moment that its last step named.
type Around struct {
	rig  *Rig
	step func(now time.Time) time.Time
	at   time.Time
	seen uint64
}

// Surround adds the cluster around the controllers. step lets it go on, and returns
// when it wants to by itself; the zero time is never.
func (r *Rig) Surround(step func(now time.Time) time.Time) *Around {
	a := &Around{rig: r, step: step}
	r.Add(a)
	return a
}

// Wake gives it a turn though no object has changed, as when a machine has.
func (a *Around) Wake() { a.seen = 0 }

// Name implements [Part].
func (a *Around) Name() string { return "cluster" }

// Next implements [Part].
func (a *Around) Next(now time.Time) (time.Time, bool) {
	if a.rig.Kube.Version() != a.seen {
		return now, true
	}
	return a.at, !a.at.IsZero()
}

// Act implements [Part].
func (a *Around) Act() { a.at = a.step(a.rig.Now()); a.seen = a.rig.Kube.Version() }
