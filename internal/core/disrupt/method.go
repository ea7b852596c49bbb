package disrupt

import (
	"slices"
	"time"

	"karpenter/internal/core/reason"
	"karpenter/internal/core/schedule"
	"karpenter/internal/core/world"
)

// empty: the machine has had no pod for longer than its pool allows.
func empty(c candidate) (time.Time, bool) {
	if c.pool == nil || c.pool.EmptyAfter == nil || c.node.EmptySince == nil {
		return time.Time{}, false
	}
	since := c.node.EmptySince.Add(c.pool.EmptyAfter.Duration)
	return since, !c.now.Before(since) && !slices.ContainsFunc(c.node.Pods, occupies)
}

// occupies reports whether the pod keeps a machine from being empty. A pod
// that is shutting down still does; daemon and static pods never do.
func occupies(p world.Pod) bool { return !p.Finished && !p.IsDaemon() && !p.IsStatic() }

// expired: the machine is older than its pool allows.
func expired(c candidate) (time.Time, bool) {
	if c.pool == nil || c.pool.ExpireAfter == nil {
		return time.Time{}, false
	}
	since := c.node.Created.Add(c.pool.ExpireAfter.Duration)
	return since, c.now.After(since)
}

// replace plans the removal of one machine: where its pods go, and what has to
// be bought for them. Prices do not matter here; limits of pools do.
func replace(s *world.Snapshot, method string, t Target, opt Options) (*Command, reason.Reason) {
	what, moved := without(s, t.Node)
	plan := schedule.Solve(what, opt.Schedule)
	cmd := &Command{Method: method, Remove: []Target{t}}
	for _, u := range plan.Unplaced {
		if moved[u.Pod] {
			return nil, NoOtherPlace{Pod: u.Pod, Reasons: u.Reasons}
		}
	}
	for _, p := range plan.Placements {
		if !moved[p.Pod] {
			continue
		}
		for i := range what.Nodes {
			n := &what.Nodes[i]
			if n.Claim != "" && n.Claim == p.Claim && !n.Initialized {
				return nil, WaitsFor{Pod: p.Pod, Node: n.Name}
			}
		}
		cmd.Moves = append(cmd.Moves, p)
	}
	for _, m := range plan.Machines {
		if slices.ContainsFunc(m.Pods, func(p world.ObjectName) bool { return moved[p] }) {
			cmd.Replace = append(cmd.Replace, m)
		}
	}
	return cmd, nil
}

// without is the snapshot as it would be if the node were gone and its pods
// pending. The pool's use is left as it is: the old machine stays until the new
// one is ready, so both must be within the limits.
func without(s *world.Snapshot, node string) (*world.Snapshot, map[world.ObjectName]bool) {
	moved := map[world.ObjectName]bool{}
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Name == node {
			for _, p := range n.Pods {
				moved[p.ObjectName] = p.Leaves(n)
			}
		}
	}
	return s.Without(node), moved
}
