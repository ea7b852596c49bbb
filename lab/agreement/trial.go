package agreement

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "karpenter/api/v1"
	"karpenter/internal/core/schedule"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/convert"
	"karpenter/internal/kube/mirror"
)

// Planner is schedule.Solve, or something that takes its place.
type Planner func(*world.Snapshot) schedule.Plan

// sameAnyway reports whether the plan is the same, to the byte, if everything is
// listed the other way round.
func (t *trial) sameAnyway(solve Planner) (bool, error) {
	c := t.clone()
	slices.Reverse(c.Types)
	slices.Reverse(c.Provisioners)
	slices.Reverse(c.DaemonSets)
	slices.Reverse(c.Claims)
	slices.Reverse(c.Nodes)
	slices.Reverse(c.Pods)
	slices.Reverse(c.Namespaces)
	slices.Reverse(c.Classes)
	slices.Reverse(c.Volumes)
	slices.Reverse(c.VolumeClaims)
	slices.Reverse(c.CSINodes)
	view, err := c.View()
	if err != nil {
		return false, err
	}
	other := solve(view.Snapshot)
	a, err := json.Marshal(t.plan)
	if err != nil {
		return false, err
	}
	b, err := json.Marshal(other)
	return bytes.Equal(a, b), err
}

// Solve is the planner of the controller.
func Solve(s *world.Snapshot) schedule.Plan { return schedule.Solve(s, schedule.Options{}) }

// trial is a cluster with a plan, and the cluster that the plan makes of it.
type trial struct {
	*Cluster
	view *mirror.View
	plan schedule.Plan

	places   []place // existing and booting
	machines []machine
	bound    []*corev1.Pod // on places
	// reserved are pods for which room was kept before: promised to a booting
	// machine, or nominated by others, by node name.
	reserved map[string][]*corev1.Pod
}

// machine is a planned machine, with what the cloud makes of it.
type machine struct {
	planned *schedule.Machine
	claim   *karpv1.NodeClaim // as it was written down, before the launch
	all     []option          // what the cloud may pick from
	node    *corev1.Node
}

// newTrial plans the cluster. What the cloud picks follows from
// the seed.
func newTrial(c *Cluster, solve Planner, seed uint64) (*trial, *Disagreement, error) {
	view, err := c.View()
	if err != nil {
		return nil, nil, err
	}
	t := &trial{Cluster: c, view: view, plan: solve(view.Snapshot), reserved: map[string][]*corev1.Pod{}}
	choose := lottery(seed)
	t.places = c.places(choose)
	at := map[string]bool{}
	ofClaim := map[string]string{}
	for _, p := range t.places {
		at[p.node.Name] = true
		ofClaim[p.claim] = p.node.Name
	}
	for i := range c.Pods {
		p := &c.Pods[i]
		if at[p.Spec.NodeName] && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			t.bound = append(t.bound, p)
		}
		if claim := view.Promised[nameOf(p)]; ofClaim[claim] != "" && claim != "" {
			t.reserved[ofClaim[claim]] = append(t.reserved[ofClaim[claim]], unbound(p))
		} else if node := p.Status.NominatedNodeName; at[node] {
			t.reserved[node] = append(t.reserved[node], unbound(p))
		}
	}
	for i := range t.plan.Machines {
		m, d := t.buy(i, choose)
		if d != nil {
			return nil, d, nil
		}
		t.machines = append(t.machines, m)
	}
	return t, nil, nil
}

// buy takes a planned machine the way of the controller: to a record, to an
// option that the launch would allow, to a Node.
func (t *trial) buy(i int, choose chooser) (machine, *Disagreement) {
	planned := &t.plan.Machines[i]
	at := slices.IndexFunc(t.view.Pools, func(p world.Pool) bool { return p.Name == planned.Pool })
	if at < 0 {
		return machine{}, illegal("no-such-pool", "machine %d is of pool %q, which does not exist", i, planned.Pool)
	}
	claim := convert.Claim(t.view.Pools[at], convert.Machine{
		Requirements: planned.Requirements, Requests: planned.Requests, Labels: planned.Labels, Pods: planned.Pods,
	})
	claim.Name = fmt.Sprintf("new-%d", i)
	claim.UID, claim.CreationTimestamp = types.UID(claim.Name), ago(0)
	m := machine{planned: planned, claim: claim, all: survivors(t.Cluster, claim)}
	if len(m.all) == 0 {
		return m, illegal("unusable", "machine %d of pool %q: nothing can be bought for what its record asks for: %v", i, planned.Pool, planned.Requirements)
	}
	m.node = machineNode(claim, choose(claim.Name, m.all), t.Region, claim.Name)
	return m, nil
}

// unbound is the pod as it comes back when its node goes.
func unbound(p *corev1.Pod) *corev1.Pod {
	p = p.DeepCopy()
	p.Spec.NodeName = ""
	p.Status = corev1.PodStatus{Phase: corev1.PodPending}
	return p
}

// placeOf finds where a placement points.
func (t *trial) placeOf(p schedule.Placement) (place, bool) {
	for _, at := range t.places {
		if p.Node != "" && at.node.Name == p.Node || p.Node == "" && at.claim == p.Claim {
			return at, true
		}
	}
	return place{}, false
}

// nodes are all nodes once the plan has come true.
func (t *trial) nodes() []*corev1.Node {
	var out []*corev1.Node
	for _, p := range t.places {
		out = append(out, p.node)
	}
	for _, m := range t.machines {
		out = append(out, m.node)
	}
	return out
}

// Disagreement is something on which a plan and Kubernetes do not agree.
type Disagreement struct {
	// Property that is broken: legal, complete or comes-true.
	Property string `json:"property"`
	// Rule is a fixed word for the kind of breach, so that shrinking does not
	// wander from one to another.
	Rule string `json:"rule"`
	// Detail says what happened to whom.
	Detail string `json:"detail"`
}

func (d *Disagreement) String() string { return d.Property + "/" + d.Rule + ": " + d.Detail }
