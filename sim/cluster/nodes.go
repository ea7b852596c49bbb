package cluster

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/sim/kube"
)

// Nodes is the life of nodes as Kubernetes sees it: a node whose kubelet is
// silent becomes not ready, conditions become taints, a NoExecute taint drives
// pods out that do not tolerate it, and pods whose node is gone are removed.
type Nodes struct {
	client *kube.Client
	opt    Options
	nodes  map[string]*corev1.Node
	pods   map[string]map[id]*corev1.Pod // by node
	queue  queue                         // of Nodes and Pods
	silent map[string]time.Time          // since when a node is down
	asked  time.Time
	lost   map[string]time.Time // since when a node that has pods is missing
	// tainted is since when a taint without time of its own is on a node.
	tainted map[string]map[corev1.Taint]time.Time
}

func newNodes(k *kube.Cluster, opt Options) *Nodes {
	n := &Nodes{client: k.Client("node-lifecycle-controller"), opt: opt, nodes: map[string]*corev1.Node{}, pods: map[string]map[id]*corev1.Pod{},
		silent: map[string]time.Time{}, lost: map[string]time.Time{}, tainted: map[string]map[corev1.Taint]time.Time{}}
	k.Subscribe(n.see)
	return n
}

func nodeID(name string) id { return id{Kind: "Node", Name: name} }

func (n *Nodes) see(e kube.Event) {
	switch o := e.Object().(type) {
	case *corev1.Node:
		n.nodes[o.Name] = o
		if e.New == nil {
			delete(n.nodes, o.Name)
			delete(n.silent, o.Name)
			delete(n.tainted, o.Name)
		}
		n.queue.add(nodeID(o.Name), time.Time{})
	case *corev1.Pod:
		i := idOf(o)
		if e.Old != nil {
			delete(n.pods[e.Old.(*corev1.Pod).Spec.NodeName], i)
		}
		if e.New == nil || o.Spec.NodeName == "" {
			return
		}
		if n.pods[o.Spec.NodeName] == nil {
			n.pods[o.Spec.NodeName] = map[id]*corev1.Pod{}
		}
		n.pods[o.Spec.NodeName][i] = o
		if e.Old == nil || e.Old.(*corev1.Pod).Spec.NodeName != o.Spec.NodeName {
			n.queue.add(nodeID(o.Spec.NodeName), time.Time{})
		}
	}
}

// Step implements [Part].
func (n *Nodes) Step(now time.Time) time.Time {
	for name, o := range n.nodes { // which are down is not told, it is asked once a moment
		if now.Equal(n.asked) {
			break
		}
		if _, known := n.silent[name]; known != n.opt.Down(o) {
			n.queue.add(nodeID(name), time.Time{})
		}
	}
	n.asked = now
	for _, i := range n.queue.take(now) {
		again, err := n.node(i.Name, now)
		if client.IgnoreNotFound(err) != nil {
			again = now.Add(retry)
		}
		if !again.IsZero() {
			n.queue.add(i, again)
		}
	}
	return n.queue.next(now)
}

// node does what is due on a node, and returns when to look again.
func (n *Nodes) node(name string, now time.Time) (again time.Time, err error) {
	node := n.nodes[name]
	if node == nil {
		return n.missing(name, now)
	}
	delete(n.lost, name)
	if !n.opt.Down(node) {
		delete(n.silent, name)
	} else {
		since, known := n.silent[name]
		if !known {
			since = now
			n.silent[name] = now
		}
		switch end := since.Add(n.opt.Unreachable); {
		case end.After(now):
			again = end
		case nodeCondition(node, corev1.NodeReady) == corev1.ConditionTrue:
			return again, n.unknown(node, now)
		}
	}
	if wanted := taintsOf(node, now); !slices.EqualFunc(wanted, node.Spec.Taints, sameTaint) {
		next := node.DeepCopy()
		next.Spec.Taints = wanted
		return again, n.client.Update(context.Background(), next)
	}
	out, err := n.drive(node, now)
	return earlier(again, out), err
}

// missing removes the pods of a node that is gone, once it has been so for a
// while.
func (n *Nodes) missing(name string, now time.Time) (again time.Time, err error) {
	if len(n.pods[name]) == 0 {
		delete(n.lost, name)
		return again, nil
	}
	since, known := n.lost[name]
	if !known {
		since = now
		n.lost[name] = now
	}
	if end := since.Add(n.opt.Orphaned); end.After(now) {
		return end, nil
	}
	for _, p := range n.on(name) {
		if err := n.client.Delete(context.Background(), p, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			return again, err
		}
	}
	return again, nil
}

// on are the pods of a node, by name.
func (n *Nodes) on(name string) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range n.pods[name] {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b *corev1.Pod) int { return idOf(a).compare(idOf(b)) })
	return out
}

func (n *Nodes) unknown(node *corev1.Node, now time.Time) error {
	next := node.DeepCopy()
	for i := range next.Status.Conditions {
		if c := &next.Status.Conditions[i]; c.Type == corev1.NodeReady {
			c.Status, c.Reason, c.Message = corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status."
			c.LastTransitionTime = metav1.Time{Time: now.Truncate(time.Second)}
		}
	}
	return n.client.Status().Update(context.Background(), next)
}

// drive deletes the pods that do not tolerate a NoExecute taint, each when its
// toleration ends.
func (n *Nodes) drive(node *corev1.Node, now time.Time) (again time.Time, err error) {
	since := map[corev1.Taint]time.Time{}
	for _, t := range node.Spec.Taints {
		if t.Effect != corev1.TaintEffectNoExecute {
			continue
		}
		at, known := n.tainted[node.Name][bare(t)]
		if t.TimeAdded != nil {
			at = t.TimeAdded.Time
		} else if !known {
			at = now
		}
		since[bare(t)] = at
	}
	n.tainted[node.Name] = since
	if len(since) == 0 {
		return again, nil
	}
	for _, p := range n.on(node.Name) {
		end, never := expelled(p, since)
		switch {
		case never || p.DeletionTimestamp != nil:
		case end.After(now):
			again = earlier(again, end)
		default:
			if err := n.client.Delete(context.Background(), p); client.IgnoreNotFound(err) != nil {
				return again, err
			}
		}
	}
	return again, nil
}

func bare(t corev1.Taint) corev1.Taint {
	return corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect}
}

// expelled is when a pod must leave; never is true if it need not.
func expelled(p *corev1.Pod, since map[corev1.Taint]time.Time) (end time.Time, never bool) {
	never = true
	for taint, at := range since {
		stay, tolerated := time.Duration(-1), false
		for i := range p.Spec.Tolerations {
			t := &p.Spec.Tolerations[i]
			if !tolerates(t, &taint) {
				continue
			}
			tolerated = true
			if t.TolerationSeconds != nil {
				if s := time.Duration(max(*t.TolerationSeconds, 0)) * time.Second; stay < 0 || s < stay {
					stay = s
				}
			}
		}
		if tolerated && stay < 0 {
			continue
		}
		leave := at.Add(max(stay, 0))
		if never || leave.Before(end) {
			end = leave
		}
		never = false
	}
	return end, never
}

func tolerates(t *corev1.Toleration, taint *corev1.Taint) bool {
	return (t.Effect == "" || t.Effect == taint.Effect) && (t.Key == "" && t.Operator == corev1.TolerationOpExists || t.Key == taint.Key) &&
		(t.Operator == corev1.TolerationOpExists || t.Value == taint.Value)
}

// pressures are the conditions of a node that become taints, by the status that
// is bad.
var pressures = []struct {
	condition corev1.NodeConditionType
	bad       corev1.ConditionStatus
	taint     corev1.Taint
}{
	{corev1.NodeReady, corev1.ConditionFalse, corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}},
	{corev1.NodeReady, "", corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}},
	{corev1.NodeReady, corev1.ConditionFalse, corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute}},
	{corev1.NodeReady, corev1.ConditionUnknown, corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule}},
	{corev1.NodeReady, corev1.ConditionUnknown, corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}},
	{corev1.NodeMemoryPressure, corev1.ConditionTrue, corev1.Taint{Key: corev1.TaintNodeMemoryPressure, Effect: corev1.TaintEffectNoSchedule}},
	{corev1.NodeDiskPressure, corev1.ConditionTrue, corev1.Taint{Key: corev1.TaintNodeDiskPressure, Effect: corev1.TaintEffectNoSchedule}},
	{corev1.NodePIDPressure, corev1.ConditionTrue, corev1.Taint{Key: corev1.TaintNodePIDPressure, Effect: corev1.TaintEffectNoSchedule}},
	{corev1.NodeNetworkUnavailable, corev1.ConditionTrue, corev1.Taint{Key: corev1.TaintNodeNetworkUnavailable, Effect: corev1.TaintEffectNoSchedule}},
}

// taintsOf are the taints that the node should have: those of its conditions,
// and those of others.
func taintsOf(node *corev1.Node, now time.Time) []corev1.Taint {
	wanted := map[corev1.Taint]bool{}
	for _, p := range pressures {
		wanted[p.taint] = wanted[p.taint] || nodeCondition(node, p.condition) == p.bad
	}
	cordoned := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	wanted[cordoned] = node.Spec.Unschedulable
	var out []corev1.Taint
	for _, t := range node.Spec.Taints {
		if needed, managed := wanted[bare(t)]; !managed || needed {
			out = append(out, t)
		}
		delete(wanted, bare(t))
	}
	add := func(t corev1.Taint) {
		if wanted[t] {
			wanted[t] = false
			if t.Effect == corev1.TaintEffectNoExecute {
				t.TimeAdded = &metav1.Time{Time: now.Truncate(time.Second)}
			}
			out = append(out, t)
		}
	}
	for _, p := range pressures {
		add(p.taint)
	}
	add(cordoned)
	return out
}

func sameTaint(a, b corev1.Taint) bool { return bare(a) == bare(b) }

func nodeCondition(n *corev1.Node, kind corev1.NodeConditionType) corev1.ConditionStatus {
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == kind {
			return n.Status.Conditions[i].Status
		}
	}
	return ""
}
