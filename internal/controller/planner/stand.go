package planner

import (
	"context"
	"time"

	"karpenter/internal/core/brake"
	"karpenter/internal/core/disrupt"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/mirror"
	"karpenter/internal/settings"
)

// standing is what the last look for machines to remove was based on, if it found
// none. The same look has the same answer.
type standing struct {
	view    *mirror.View // nil: the next look is a new one
	changes uint64       // that were noticed before the view was taken
	until   time.Time    // when time alone may change the answer
	policy  world.Policy
	window  time.Duration
}

// noticed is how many changes there were so far.
func (p *Planner) noticed() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changes
}

// stand remembers a look that found nothing, as far as its answer will hold.
func (p *Planner) stand(set settings.Settings, v *mirror.View, d disrupt.Decision, changes uint64, now time.Time) {
	until := now.Add(staysEvery) // then it is said again why machines stay
	for _, t := range []time.Time{v.Until, d.Until, p.acc.released(now)} {
		if !t.IsZero() && t.Before(until) {
			until = t
		}
	}
	p.standing = standing{v, changes, until, policy(set), nominationWindow(set)}
}

// stands reports whether a look now would find what the last one has found.
func (p *Planner) stands(ctx context.Context, set settings.Settings) bool {
	s := &p.standing
	if s.view != nil && p.Now().Before(s.until) && p.noticed() == s.changes && policy(set) == s.policy && nominationWindow(set) == s.window &&
		len(p.commands) == 0 && p.Mirror.Same(ctx, s.view) {
		return true
	}
	s.view = nil
	return false
}

// released is when the first pool that rests may buy or save again; zero: none
// rests.
func (a *accounts) released(now time.Time) (first time.Time) {
	for _, one := range []struct {
		limit   brake.Limit
		tallies map[poolName]brake.Tally
	}{{brake.Pool, a.pools}, {brake.Churn, a.churn}} {
		for _, t := range one.tallies {
			if end := one.limit.Until(t); one.limit.Holds(t, now) && (first.IsZero() || end.Before(first)) {
				first = end
			}
		}
	}
	for _, y := range a.yield {
		if end, holds := y.Until(now); holds && (first.IsZero() || end.Before(first)) {
			first = end
		}
	}
	if len(a.usable) > 0 { // it is about to be known whether they helped
		return now
	}
	return first
}
