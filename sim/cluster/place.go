package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/schedule"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/convert"
)

// place is a node as the scheduler sees it.
type place struct {
	node *corev1.Node
	as   world.Node
	pods map[id]*world.Pod
	used quantity.Resources
	// fresh: the stage knows it as it is.
	fresh bool
}

func newPlace() *place { return &place{pods: map[id]*world.Pod{}} }

// become takes over what the Node says now, and nothing that is expected of it.
func (p *place) become(n *corev1.Node) {
	p.node, p.fresh = n, false
	p.as = world.Node{Name: n.Name, Labels: n.Labels, Allocatable: convert.Resources(n.Status.Allocatable, false)}
	for _, t := range n.Spec.Taints {
		p.as.Taints = append(p.as.Taints, world.Taint{Key: t.Key, Value: t.Value, Effect: world.Effect(t.Effect)})
	}
}

func (p *place) add(i id, t *tracked) {
	p.remove(i)
	p.pods[i] = &t.as
	p.used = p.used.Add(t.as.Requests)
	p.fresh = false
}

func (p *place) remove(i id) {
	if old := p.pods[i]; old != nil {
		p.used = p.used.Sub(old.Requests)
		delete(p.pods, i)
		p.fresh = false
	}
}

// show tells the stage what has changed.
func (s *Scheduler) show() {
	for name, p := range s.places {
		if p.fresh {
			continue
		}
		p.fresh = true
		pods := slices.SortedFunc(maps.Values(p.pods), func(a, b *world.Pod) int { return a.Compare(b.ObjectName) })
		as := p.as
		as.AttachLimits = s.look.AttachLimits(name)
		s.stage.Put(&as, pods)
	}
}

// names are those of all nodes, in order.
func (s *Scheduler) names() []string {
	if len(s.sorted) != len(s.places) {
		s.sorted = sortedKeys(s.places, compareStrings)
	}
	return s.sorted
}

// choose returns the node for a pod, or why there is none.
func (s *Scheduler) choose(t *tracked) (node, why string) {
	if convert.Refers(t.pod) {
		if trouble := s.trouble(t.pod); trouble != "" {
			return "", summary(len(s.places), map[string]int{trouble: len(s.places)})
		}
	}
	s.show()
	reasons, only := map[string]int{}, ""
	if t.pod.Spec.NodeName == "" {
		only = nodeOf(t.pod)
	}
	var suits []string
	for _, name := range s.names() {
		why := "node(s) didn't match Pod's node affinity/selector"
		if only == "" || only == name {
			why = s.refuses(t, s.places[name])
		}
		switch {
		case why != "":
			reasons[why]++
		case name == t.pod.Status.NominatedNodeName && s.stage.Crowded(&t.as, name) == "" && s.stage.Repelled(&t.as, name) == "":
			return name, ""
		default:
			suits = append(suits, name)
		}
	}
	crowded := map[string]bool{} // by domains
	for _, name := range s.ranked(t, suits) {
		domains := s.domainsOf(&t.as, name)
		full, known := crowded[domains]
		if !known {
			full = s.stage.Crowded(&t.as, name) != ""
			crowded[domains] = full
		}
		if !full && s.stage.Repelled(&t.as, name) == "" {
			return name, ""
		}
		reasons["node(s) didn't satisfy rules between pods"]++
	}
	return "", summary(len(s.places), reasons)
}

// domainsOf are the domains of a node that matter to the pod's spread.
func (s *Scheduler) domainsOf(p *world.Pod, node string) (out string) {
	for i := range p.Spread {
		value, ok := s.places[node].as.Labels[p.Spread[i].Key]
		out += fmt.Sprintf("%q %v;", value, ok)
	}
	return out
}

// trouble is what is wrong with the volumes of a pod, wherever it goes.
func (s *Scheduler) trouble(p *corev1.Pod) string {
	bare := &corev1.Pod{Spec: corev1.PodSpec{Volumes: p.Spec.Volumes}}
	bare.Namespace, bare.Name, bare.UID = p.Namespace, p.Name, p.UID
	return s.look.Pod(bare).Refused
}

// refuses says what keeps a pod off a node, other pods' rules apart.
func (s *Scheduler) refuses(t *tracked, p *place) string {
	if p.node.Spec.Unschedulable && !world.Tolerated(world.Taint{Key: corev1.TaintNodeUnschedulable, Effect: world.NoSchedule}, t.as.Tolerations) {
		return "node(s) were unschedulable"
	}
	if taint, bad := world.FirstUntolerated(p.as.Taints, t.as.Tolerations); bad {
		return fmt.Sprintf("node(s) had untolerated taint {%s: %s}", taint.Key, taint.Value)
	}
	if !schedule.Suits(&t.as, p.as.Labels) {
		return "node(s) didn't match Pod's node affinity/selector"
	}
	room := p.as.Allocatable.Sub(p.used)
	for i, n := range s.nominated[p.as.Name] {
		if n.as.Priority >= t.as.Priority && i != idOf(t.pod) {
			room = room.Sub(n.as.Requests)
		}
	}
	if short, bad := t.as.Requests.Shortage(room); bad {
		if short.Name == quantity.Pods {
			return "Too many pods"
		}
		return "Insufficient " + short.Name
	}
	return ""
}

// Weights of kube-scheduler's default scores.
const (
	weightTaints    = 3
	weightAffinity  = 2
	weightSpread    = 2
	weightPods      = 2
	weightRoom      = 1
	weightAvoidance = 100 // one taint that is only to be avoided, of 100
)

// ranked puts nodes in the order of their score, best first, then by name.
func (s *Scheduler) ranked(t *tracked, names []string) []string {
	if len(names) < 2 {
		return names
	}
	score := map[string]int64{}
	affinity, spread, pods := map[string]int64{}, map[string]int64{}, map[string]int64{}
	for _, name := range names {
		p := s.places[name]
		score[name] = weightRoom * freeRoom(p, &t.as)
		for _, taint := range p.as.Taints {
			if taint.Effect == world.PreferNoSchedule && !world.Tolerated(taint, t.as.Tolerations) {
				score[name] -= weightTaints * weightAvoidance
			}
		}
		for _, f := range t.as.Preferred {
			if label.Matches(f.Term, p.as.Labels) {
				affinity[name] += int64(f.Weight)
			}
		}
	}
	s.preferences(t, names, spread, pods)
	addScaled(score, weightAffinity, affinity, names)
	addScaled(score, weightSpread, spread, names)
	addScaled(score, weightPods, pods, names)
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(score[b], score[a]) })
	return names
}

// addScaled adds raw scores, brought to 0–100 over all nodes.
func addScaled(score map[string]int64, weight int64, raw map[string]int64, names []string) {
	if len(raw) == 0 {
		return
	}
	least, most := raw[names[0]], raw[names[0]]
	for _, n := range names {
		least, most = min(least, raw[n]), max(most, raw[n])
	}
	for _, n := range names {
		if least < most {
			score[n] += weight * (raw[n] - least) * 100 / (most - least)
		}
	}
}

// freeRoom is the share of cpu and memory that would be left, 0–100.
func freeRoom(p *place, pod *world.Pod) int64 {
	left := p.as.Allocatable.Sub(p.used).Sub(pod.Requests)
	share := func(part, whole int64) int64 {
		if whole <= 0 {
			return 0
		}
		return max(part, 0) * 100 / whole
	}
	return (share(left.MilliCPU, p.as.Allocatable.MilliCPU) + share(left.MemoryBytes, p.as.Allocatable.MemoryBytes)) / 2
}

// preferences counts, per node, pods that a soft spread would rather not add to,
// and pods to be with or to be away from.
func (s *Scheduler) preferences(t *tracked, names []string, spread, pods map[string]int64) {
	for i := range t.as.Spread {
		if c := &t.as.Spread[i]; c.Soft {
			counts := s.domains(c.Key, func(p *world.Pod) bool { return p.Namespace == t.as.Namespace && schedule.Selects(c.Selector, p) })
			for _, name := range names {
				spread[name] -= counts[s.places[name].as.Labels[c.Key]]
			}
		}
	}
	for sign, terms := range map[int64][]world.PodTerm{1: t.as.Affinity, -1: t.as.AntiAffinity} {
		for i := range terms {
			if f := &terms[i]; f.Weight > 0 {
				counts := s.domains(f.Key, func(p *world.Pod) bool { return schedule.TermSelects(f, p) })
				for _, name := range names {
					pods[name] += sign * int64(f.Weight) * counts[s.places[name].as.Labels[f.Key]]
				}
			}
		}
	}
}

// domains counts pods per value of a label of their nodes.
func (s *Scheduler) domains(key string, counts func(*world.Pod) bool) map[string]int64 {
	out := map[string]int64{}
	for _, p := range s.places {
		value, ok := p.as.Labels[key]
		if !ok {
			continue
		}
		for _, pod := range p.pods {
			if pod.DeletedAt == nil && counts(pod) {
				out[value]++
			}
		}
	}
	return out
}
