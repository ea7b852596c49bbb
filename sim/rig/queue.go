package rig

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Limits of the wait after a failure, as controller-runtime has them by default.
const (
	firstBackoff = 5 * time.Millisecond
	lastBackoff  = 1000 * time.Second
)

// queue holds what a reconciler is to look at: each object once, at the earliest
// time for which it was asked.
type queue struct {
	p      *Process
	title  string
	work   reconcile.Reconciler
	items  []item
	failed map[reconcile.Request]int
	serial int
}

type item struct {
	reconcile.Request
	at  time.Time
	seq int
}

func (q *queue) add(r reconcile.Request, at time.Time) {
	q.serial++
	seq := q.serial
	if i := slices.IndexFunc(q.items, func(o item) bool { return o.Request == r }); i >= 0 {
		if !at.Before(q.items[i].at) {
			return
		}
		q.items = slices.Delete(q.items, i, i+1)
	}
	it := item{r, at, seq}
	i, _ := slices.BinarySearchFunc(q.items, it, func(a, b item) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.seq, b.seq)) })
	q.items = slices.Insert(q.items, i, it)
}

func (q *queue) name() string { return q.title }

func (q *queue) next(time.Time) (time.Time, bool) {
	if len(q.items) == 0 {
		return time.Time{}, false
	}
	return q.items[0].at, true
}

// act reconciles one of the objects that are due.
func (q *queue) act() {
	i := 0
	if rig := q.p.rig; rig.opt.Shuffle {
		due := 1
		for due < len(q.items) && !q.items[due].at.After(rig.clock) {
			due++
		}
		i = rig.rng.IntN(due)
	}
	r := q.items[i].Request
	q.items = slices.Delete(q.items, i, i+1)
	result, err := q.work.Reconcile(q.p.ctx(q.title), r)
	if q.p.dead {
		return
	}
	now := q.p.rig.clock
	switch {
	case err != nil:
		q.p.rig.Log.trouble(q.title, r.String(), err)
		q.again(r, now)
	case result.RequeueAfter > 0:
		delete(q.failed, r)
		q.add(r, now.Add(result.RequeueAfter))
	default:
		delete(q.failed, r)
	}
}

// again waits, the longer the more often it has failed.
func (q *queue) again(r reconcile.Request, now time.Time) {
	wait := lastBackoff
	if n := q.failed[r]; n < 18 {
		wait = min(firstBackoff<<n, lastBackoff)
	}
	q.failed[r]++
	q.add(r, now.Add(wait))
}

// String lists what waits.
func (q *queue) String() string {
	names := make([]string, len(q.items))
	for i, it := range q.items {
		names[i] = it.String()
	}
	return q.title + ": " + strings.Join(names, " ")
}
