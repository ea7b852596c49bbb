package lifecycle

import (
	"fmt"
	"strings"
	"time"

	"karpenter/internal/core/world"
)

// PlannedHold is how long, from the start of its life as an initialised node,
// pods that were planned for a node keep it from counting as empty while they
// wait. It is longer than the scheduler's five-minute sweep over pods that
// nothing else wakes.
const PlannedHold = 6 * time.Minute

// ephemeral are the taints that Kubernetes takes off by itself once a node
// works.
var ephemeral = []world.Taint{
	{Key: "node.kubernetes.io/not-ready", Effect: world.NoSchedule},
	{Key: "node.kubernetes.io/not-ready", Effect: world.NoExecute},
	{Key: "node.kubernetes.io/unreachable", Effect: world.NoSchedule},
	{Key: "node.cloudprovider.kubernetes.io/uninitialized", Effect: world.NoSchedule},
	Unregistered,
}

// readinessPrefix marks taints of node readiness gates.
const readinessPrefix = "readiness.k8s.io/"

// uninitialized returns the first reason why a registered node is not fully
// usable, or nil.
func uninitialized(in *Input, n *Node) *Condition {
	not := func(reason, format string, args ...any) *Condition {
		return &Condition{Initialized, Unknown, reason, fmt.Sprintf(format, args...)}
	}
	if !n.Ready {
		return not("NodeNotReady", "condition Ready of Node %q is not True", n.Name)
	}
	for _, t := range in.StartupTaints {
		if n.has(t) {
			return not("StartupTaintsExist", "startup taint %s is still on Node %q; whoever prepares the node must take it off", t, n.Name)
		}
	}
	for _, t := range n.Taints {
		if same(t, Unregistered) {
			continue // taken off in this very step
		}
		if strings.HasPrefix(t.Key, readinessPrefix) || containsTaint(ephemeral, t) {
			return not("KnownEphemeralTaintsExist", "taint %s is still on Node %q", t, n.Name)
		}
	}
	for _, a := range in.Record.Requests.Amounts() {
		if in.Record.Capacity.Get(a.Name) > 0 && n.Allocatable.Get(a.Name) == 0 {
			return not("ResourceNotRegistered", "resource %s is promised by the instance type, but Node %q does not offer any (is its device plugin running?)", a.Name, n.Name)
		}
	}
	return nil
}

func containsTaint(list []world.Taint, t world.Taint) bool {
	for _, o := range list {
		if same(o, t) {
			return true
		}
	}
	return false
}

// stamp notes on an initialised node since when it has been empty.
func stamp(in *Input, n *Node, s *Step) {
	_, stamped := n.Annotations[EmptySince]
	if in.Empty != Stamp {
		if stamped && in.Empty == NoStamp {
			s.Node.DropAnnotations = append(s.Node.DropAnnotations, EmptySince)
		}
		return
	}
	used, until := occupied(in, n)
	switch {
	case used && stamped:
		s.Node.DropAnnotations = append(s.Node.DropAnnotations, EmptySince)
	case !used && until.After(in.Now):
		// Pods are expected. An earlier stamp stays: they may not come.
		s.Again = earlier(s.Again, until)
	case !used && !stamped && n.Ready:
		s.Node.annotate(EmptySince, in.Now.UTC().Format(time.RFC3339))
	}
}

// occupied reports whether a pod is there that counts, and otherwise until when
// pods are expected. Pods that are terminating still count.
func occupied(in *Input, n *Node) (bool, time.Time) {
	for i := range n.Pods {
		if p := &n.Pods[i]; !p.Finished && !p.IsDaemon() && !p.IsStatic() {
			return true, time.Time{}
		}
	}
	until := in.NominatedUntil
	for _, p := range in.Nominations.Pods {
		if p.Nominated == n.Name {
			return true, time.Time{}
		}
		if hold := in.Record.Initialized.Since.Add(PlannedHold); !in.Record.Initialized.True() {
			until = in.Now.Add(Recheck)
		} else if hold.After(until) {
			until = hold
		}
	}
	return false, until
}
