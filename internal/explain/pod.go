package explain

import (
	"fmt"
	"slices"
	"strings"

	"karpenter/internal/core/label"
	"karpenter/internal/core/reason"
	"karpenter/internal/core/schedule"
	"karpenter/internal/core/world"
	"karpenter/internal/dump"
)

// States of a pod.
const (
	Running   = "running"   // it is bound to a node
	Leaving   = "leaving"   // the same, and the node goes
	Waiting   = "waiting"   // for a machine, or for kube-scheduler to bind it
	Placeable = "placeable" // it would be planned now
	Stuck     = "stuck"     // no place can be made for it
)

// Pod says why a pod waits, and for what.
func Pod(d *dump.Dump, name world.ObjectName) (*Answer, error) {
	a := &Answer{About: "pod " + name.String()}
	pod, node := find(&d.Snapshot, name)
	if pod == nil {
		return nil, unknownPod(d, name)
	}
	if node != nil && pod.Node == node.Name && !node.Deleting {
		a.State, a.Summary = Running, "runs on node "+node.Name
		return a, nil
	}
	if node != nil && pod.Node != node.Name && !node.Deleting {
		a.waitsFor(d, pod, node)
		return a, nil
	}
	if node != nil && !slices.ContainsFunc(d.Snapshot.Pending, func(p world.Pod) bool { return p.ObjectName == name }) {
		a.State, a.Summary = Leaving, fmt.Sprintf("runs on node %s, which is on its way out; it cannot leave yet", node.Name)
		return a, nil
	}
	plan := schedule.Solve(&d.Snapshot, d.Limits.Plan())
	a.planned(d, pod, &plan)
	if node != nil {
		a.State = Leaving
		a.Summary = fmt.Sprintf("runs on node %s, which is on its way out; then it %s", node.Name, a.Summary)
	}
	return a, nil
}

// find looks for a pod at the nodes, then among the pending ones.
func find(s *world.Snapshot, name world.ObjectName) (*world.Pod, *world.Node) {
	for i := range s.Nodes {
		for j := range s.Nodes[i].Pods {
			if p := &s.Nodes[i].Pods[j]; p.ObjectName == name {
				return p, &s.Nodes[i]
			}
		}
	}
	for i := range s.Pending {
		if s.Pending[i].ObjectName == name {
			return &s.Pending[i], nil
		}
	}
	return nil, nil
}

func unknownPod(d *dump.Dump, name world.ObjectName) error {
	var all []string
	for i := range d.Snapshot.Pending {
		all = append(all, d.Snapshot.Pending[i].String())
	}
	for i := range d.Snapshot.Nodes {
		for j := range d.Snapshot.Nodes[i].Pods {
			all = append(all, d.Snapshot.Nodes[i].Pods[j].String())
		}
	}
	return &UnknownError{Kind: "pod", Name: name.String(), Near: near(name.String(), all),
		More: "if it exists, kube-scheduler has not given up on it yet, it is held by a scheduling gate, or it has finished: 'kubectl describe pod' tells"}
}

// waitsFor: room is kept for the pod on a node.
func (a *Answer) waitsFor(d *dump.Dump, pod *world.Pod, n *world.Node) {
	a.State = Waiting
	switch {
	case !n.Joined:
		a.Summary = "waits for machine " + n.Claim + ", which was bought for it"
	case !n.Initialized:
		a.Summary = "waits for node " + n.Name + ", which is not ready for pods yet"
	default:
		a.Summary = "is expected on node " + n.Name + ", and kube-scheduler has not bound it yet"
		if by := repels(&d.Snapshot, pod); by != "" {
			a.add("why it may take up to five minutes",
				Line{Code: "RepelledBy", Text: fmt.Sprintf("the required anti-affinity of pod %s matches it. A pod that kube-scheduler refused for that alone is not woken by a new node", by)},
				words("nor by a nomination: only when its labels change, when that pod goes, or when the scheduler sweeps, which it does every five minutes"),
				words("meanwhile its node does not count as empty, and no second one is bought for it"))
		}
	}
	if pod.Nominated != "" {
		a.add("nomination", words("status.nominatedNodeName is %s, written by others: the room is kept", pod.Nominated))
	}
	if n.NominatedUntil != nil {
		a.add("until when", words("room is kept until %s; then the pod is planned anew", at(*n.NominatedUntil, d.Now)))
	}
	a.add("how far the machine is", progress(d, n)...)
}

// repels names a pod whose required anti-affinity matches this one.
func repels(s *world.Snapshot, pod *world.Pod) string {
	for i := range s.Nodes {
		for j := range s.Nodes[i].Pods {
			other := &s.Nodes[i].Pods[j]
			if other.ObjectName == pod.ObjectName {
				continue
			}
			for _, t := range other.AntiAffinity {
				if t.Weight == 0 && schedule.TermSelects(&t, pod) {
					return other.String()
				}
			}
		}
	}
	return ""
}

// planned says what Solve makes of the pod.
func (a *Answer) planned(d *dump.Dump, pod *world.Pod, plan *schedule.Plan) {
	for _, u := range plan.Unplaced {
		if u.Pod == pod.ObjectName {
			a.refused(d, pod, u.Reasons)
			return
		}
	}
	for _, to := range plan.Placements {
		if to.Pod == pod.ObjectName {
			a.placed(d, pod, to)
			return
		}
	}
	for i := range plan.Machines {
		m := &plan.Machines[i]
		if !slices.Contains(m.Pods, pod.ObjectName) {
			continue
		}
		first := m.Options[0]
		a.State = Placeable
		a.Summary = fmt.Sprintf("gets a new machine of pool %q: %s %s in %s, %s", m.Pool, first.Type, first.CapacityType, first.Zone, m.Price)
		a.add("with it there", words("%s", names(m.Pods, pod.ObjectName)))
		return
	}
}

// placed says on which node or machine the pod has room.
func (a *Answer) placed(d *dump.Dump, pod *world.Pod, to schedule.Placement) {
	i := slices.IndexFunc(d.Snapshot.Nodes, func(n world.Node) bool {
		return n.Claim == to.Claim && n.Claim != "" || n.Name == to.Node && n.Joined
	})
	if i < 0 || d.Snapshot.Nodes[i].Initialized {
		a.State, a.Summary = Placeable, "has room on node "+to.Node
		return
	}
	n := &d.Snapshot.Nodes[i]
	why := "on which it has room"
	if r := record(d, n.Claim); r != nil && slices.Contains(r.Pods, pod.ObjectName) {
		why = "which was bought for it"
	}
	a.State, a.Summary = Waiting, fmt.Sprintf("waits for machine %s, %s", n.Claim, why)
	if n.Joined {
		a.Summary = fmt.Sprintf("waits for node %s, %s; it is not ready for pods yet", n.Name, why)
	}
	a.add("how far the machine is", progress(d, n)...)
}

func names(pods []world.ObjectName, but world.ObjectName) string {
	var out []string
	for _, p := range pods {
		if p != but {
			out = append(out, p.String())
		}
	}
	if len(out) == 0 {
		return "no other pod"
	}
	return list(out, 5)
}

// refused says why no pool takes the pod, the closest first.
func (a *Answer) refused(d *dump.Dump, pod *world.Pod, reasons []reason.Reason) {
	a.State, a.Summary = Stuck, "no machine can be bought for it"
	if len(reasons) > 1 {
		a.Summary += fmt.Sprintf(" from any of %d pools; the closest comes first", len(reasons))
	}
	var lines []Line
	for _, r := range reasons {
		lines = append(lines, Line{Text: r.String(), Code: r.Code(), About: r})
	}
	a.add("why", lines...)
	a.add("it asks for", demands(pod)...)
	for _, r := range reasons {
		if r.Code() == "NoCapacity" {
			a.add("when that ends", closedFor(d, r)...)
			break
		}
	}
}

// demands lists what the pod asks for, shortly.
func demands(p *world.Pod) (out []Line) {
	out = append(out, words("requests   %s", p.Requests))
	say := func(what string, reqs []label.Requirement) {
		var some []string
		for _, r := range reqs {
			some = append(some, r.String())
		}
		if len(some) > 0 {
			out = append(out, words("%-10s %s", what, strings.Join(some, "; ")))
		}
	}
	say("selector", p.Selector)
	for i, t := range p.Terms {
		what := "affinity"
		if i > 0 {
			what = "  or"
		}
		say(what, t)
	}
	for i, t := range p.Volumes {
		what := "volumes"
		if i > 0 {
			what = "  or"
		}
		say(what, t)
	}
	var rules []string
	for _, s := range p.Spread {
		if !s.Soft {
			rules = append(rules, fmt.Sprintf("spread over %s within %d", s.Key, s.MaxSkew))
		}
	}
	for _, t := range p.Affinity {
		if t.Weight == 0 {
			rules = append(rules, "with pods over "+t.Key)
		}
	}
	for _, t := range p.AntiAffinity {
		if t.Weight == 0 {
			rules = append(rules, "apart from pods over "+t.Key)
		}
	}
	if len(rules) > 0 {
		out = append(out, words("%-10s %s", "rules", strings.Join(rules, "; ")))
	}
	return out
}

// closedFor says until when the offerings are closed that a reason names.
func closedFor(d *dump.Dump, r reason.Reason) (out []Line) {
	none, ok := r.(reason.NoCapacity)
	if !ok {
		return nil
	}
	var some []dump.Closed
	for _, c := range d.Closed {
		if c.Type == "" || slices.Contains(none.Types, c.Type) && slices.Contains(none.Zones, c.Zone) {
			some = append(some, c)
		}
	}
	return closedLines(d, some)
}
