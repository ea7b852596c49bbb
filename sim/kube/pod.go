package kube

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

const (
	defaultGraceSeconds = 30
	// evictAfterSeconds is how long pods stay by default on a node that is not
	// ready.
	evictAfterSeconds = 300
)

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// defaultPod fills in what the API server's defaults and its usual admission
// (priority, RuntimeClass, default tolerations) fill in.
func (c *Cluster) defaultPod(p *corev1.Pod) {
	s := &p.Spec
	for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			defaultRequests(&list[i].Resources)
		}
	}
	if s.RestartPolicy == "" {
		s.RestartPolicy = corev1.RestartPolicyAlways
	}
	if s.SchedulerName == "" {
		s.SchedulerName = corev1.DefaultSchedulerName
	}
	if s.TerminationGracePeriodSeconds == nil {
		grace := int64(defaultGraceSeconds)
		s.TerminationGracePeriodSeconds = &grace
	}
	if p.Status.Phase == "" {
		p.Status.Phase = corev1.PodPending
	}
	c.defaultPriority(s)
	c.defaultOverhead(s)
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		tolerated := slices.ContainsFunc(s.Tolerations, func(t corev1.Toleration) bool {
			return (t.Key == key || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "")
		})
		if !tolerated {
			after := int64(evictAfterSeconds)
			s.Tolerations = append(s.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &after})
		}
	}
}

// gate says on a new pod that it is held back, as the API server does.
func gate(p *corev1.Pod) {
	if len(p.Spec.SchedulingGates) > 0 {
		setPodCondition(p, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: corev1.PodReasonSchedulingGated, Message: "Scheduling is blocked due to non-empty scheduling gates"})
	}
}

// unready keeps pods off a new Node until somebody has seen that it is ready, as
// the API server's usual admission does.
func unready(n *corev1.Node) {
	if !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeNotReady && t.Effect == corev1.TaintEffectNoSchedule
	}) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule})
	}
}

// defaultRequests asks for the limit of what has a limit and no request.
func defaultRequests(r *corev1.ResourceRequirements) {
	for name, limit := range r.Limits {
		if _, ok := r.Requests[name]; !ok {
			if r.Requests == nil {
				r.Requests = corev1.ResourceList{}
			}
			r.Requests[name] = limit
		}
	}
}

func (c *Cluster) defaultPriority(s *corev1.PodSpec) {
	if s.Priority != nil {
		return
	}
	var value int32
	switch s.PriorityClassName {
	case "system-cluster-critical":
		value = 2000000000
	case "system-node-critical":
		value = 2000001000
	}
	if k := c.byKind[schedulingv1.SchemeGroupVersion.WithKind("PriorityClass")]; k != nil {
		for _, e := range k.list {
			class := e.obj.(*schedulingv1.PriorityClass)
			if class.Name == s.PriorityClassName || s.PriorityClassName == "" && class.GlobalDefault {
				value, s.PriorityClassName = class.Value, class.Name
				if s.PreemptionPolicy == nil {
					s.PreemptionPolicy = class.PreemptionPolicy
				}
				break
			}
		}
	}
	s.Priority = &value
}

func (c *Cluster) defaultOverhead(s *corev1.PodSpec) {
	k := c.byKind[nodev1.SchemeGroupVersion.WithKind("RuntimeClass")]
	if s.RuntimeClassName == nil || s.Overhead != nil || k == nil {
		return
	}
	class, ok := k.get(*s.RuntimeClassName).(*nodev1.RuntimeClass)
	if !ok {
		return
	}
	if class.Overhead != nil {
		s.Overhead = class.Overhead.PodFixed.DeepCopy()
	}
	if class.Scheduling != nil {
		for key, value := range class.Scheduling.NodeSelector {
			if s.NodeSelector == nil {
				s.NodeSelector = map[string]string{}
			}
			s.NodeSelector[key] = value
		}
		s.Tolerations = append(s.Tolerations, class.Scheduling.Tolerations...)
	}
}

// podSpecMayBecome reports whether an update may change one spec to the other.
func podSpecMayBecome(old, next *corev1.PodSpec) bool {
	if equality.Semantic.DeepEqual(old, next) {
		return true
	}
	// A copy of the new one, with the old one's values where a change is fine,
	// must be the old one.
	s := next.DeepCopy()
	if len(s.Tolerations) >= len(old.Tolerations) && !slices.ContainsFunc(old.Tolerations, func(t corev1.Toleration) bool {
		return !slices.ContainsFunc(s.Tolerations, func(n corev1.Toleration) bool { return equality.Semantic.DeepEqual(t, n) })
	}) {
		s.Tolerations = old.Tolerations
	}
	if !slices.ContainsFunc(s.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return !slices.Contains(old.SchedulingGates, g) }) {
		if len(old.SchedulingGates) > 0 { // a gated pod may narrow where it goes
			s.NodeSelector, s.Affinity = old.NodeSelector, old.Affinity
		}
		s.SchedulingGates = old.SchedulingGates
	}
	s.ActiveDeadlineSeconds = old.ActiveDeadlineSeconds
	for _, pair := range [][2][]corev1.Container{{s.Containers, old.Containers}, {s.InitContainers, old.InitContainers}} {
		for i := range min(len(pair[0]), len(pair[1])) {
			pair[0][i].Image = pair[1][i].Image
		}
	}
	return equality.Semantic.DeepEqual(s, old)
}

// finished reports whether a pod has ended by itself.
func finished(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// ready reports whether a pod's Ready condition is true.
func ready(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
