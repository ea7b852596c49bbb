package disrupt

import (
	"slices"
	"time"

	"karpenter/internal/core/world"
)

// empty: the machine has had no pod for longer than its pool allows. Where the
// pool asks for quiet, the time counts from the last pod that went.
func empty(c candidate) (time.Time, bool) {
	if c.pool == nil || c.pool.EmptyAfter == nil || c.node.EmptySince == nil {
		return time.Time{}, false
	}
	from := *c.node.EmptySince
	if c.pool.Disruption.QuietFor != nil && c.node.PodEvent != nil && c.node.PodEvent.Before(from) {
		from = *c.node.PodEvent
	}
	since := c.swept(from.Add(c.pool.EmptyAfter.Duration))
	return since, !c.before(since) && !slices.ContainsFunc(c.node.Pods, occupies)
}

// sweep is how long kube-scheduler may take to come back to a pod that nothing
// has woken (its podMaxInUnschedulablePodsDuration).
const sweep = 5 * time.Minute

// swept is since when a machine is due that was due at the given time, where no
// pod has used it yet: it waits for those that it was bought for. A pool that does not ask for quiet says
// itself how long an empty machine stays.
func (c candidate) swept(since time.Time) time.Time {
	if c.pool.Disruption.QuietFor == nil || !c.node.Unused || c.node.PodEvent == nil {
		return since
	}
	if until := c.node.PodEvent.Add(sweep); since.Before(until) {
		return until
	}
	return since
}

// occupies reports whether the pod keeps a machine from being empty. A pod
// that is shutting down still does; daemon and static pods never do.
func occupies(p world.Pod) bool { return !p.Finished && !p.IsDaemon() && !p.IsStatic() }

// vacant: no pod has to leave.
func (c candidate) vacant() bool {
	return !slices.ContainsFunc(c.node.Pods, func(p world.Pod) bool { return p.Leaves(c.node) })
}

// drifted: the machine is not what its pool would buy now.
func drifted(c candidate) (time.Time, bool) {
	if c.node.Drifted == "" || c.node.DriftedSince == nil {
		return time.Time{}, false
	}
	return *c.node.DriftedSince, true
}

// expired: the machine is older than its pool allows.
func expired(c candidate) (time.Time, bool) {
	if c.pool == nil || c.pool.ExpireAfter == nil {
		return time.Time{}, false
	}
	since := c.node.Created.Add(c.pool.ExpireAfter.Duration)
	return since, !c.before(since.Add(1)) // the API says older, not as old
}
