package convert

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/dialect"
)

// defaultGraceSeconds is what Kubernetes gives a pod that does not say.
const defaultGraceSeconds = 30

// Pod translates a pod that refers to nothing, or of which only what stands in
// the pod itself is of interest.
func Pod(p *corev1.Pod) world.Pod { return (&Lookups{}).Pod(p) }

// Pod translates a pod. Refused is set if the pod asks for something that is
// not planned for, or that does not exist. Nominated is what the pod's status
// says, whoever wrote it.
func (l *Lookups) Pod(p *corev1.Pod) world.Pod {
	out := world.Pod{
		ObjectName:   objectName(p.ObjectMeta),
		UID:          string(p.UID),
		Labels:       p.Labels,
		Created:      p.CreationTimestamp.Time,
		Owner:        owner(p),
		Requests:     Requests(p),
		Node:         p.Spec.NodeName,
		Nominated:    p.Status.NominatedNodeName,
		Finished:     finished(p),
		HostPorts:    hostPorts(&p.Spec),
		Spread:       spread(p),
		DeletedAt:    timePointer(p.DeletionTimestamp),
		GraceSeconds: defaultGraceSeconds,
		Critical:     p.Spec.PriorityClassName == "system-cluster-critical" || p.Spec.PriorityClassName == "system-node-critical",
		DeletionCost: p.Annotations[dialect.AnnotationPodDeletionCost],
	}
	if p.Spec.Priority != nil {
		out.Priority = *p.Spec.Priority
	}
	if g := p.Spec.TerminationGracePeriodSeconds; g != nil {
		out.GraceSeconds = *g
	}
	for _, t := range p.Spec.Tolerations {
		out.Tolerations = append(out.Tolerations, world.Toleration{Key: t.Key, Op: string(t.Operator), Value: t.Value, Effect: world.Effect(t.Effect)})
	}
	if len(p.Spec.NodeSelector) > 0 {
		out.Selector = label.FromLabels(p.Spec.NodeSelector)
	}
	protection(p, &out)
	nodeAffinity(p, &out)
	l.podAffinity(p, &out)
	l.podVolumes(p, &out)
	refuse(&out, refused(p))
	return out
}

// protection reads the annotations by which people keep a pod where it is: true,
// or for do-not-disrupt also how long from the start of the pod; one that has not
// started is kept.
func protection(p *corev1.Pod, out *world.Pod) {
	out.DoNotEvict = p.Annotations[dialect.AnnotationDoNotEvict] == "true"
	value := p.Annotations[dialect.AnnotationDoNotDisrupt]
	if value == "" || value == "false" { // nearly all pods: nothing is parsed
		return
	}
	switch d, err := time.ParseDuration(value); {
	case value == "true", err == nil && d > 0 && p.Status.StartTime == nil:
		out.DoNotEvict = true
	case err == nil && d > 0:
		until := p.Status.StartTime.Add(d)
		out.DoNotEvictUntil = &until
	default:
		out.Misread = value
	}
}

func finished(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// Provisionable reports whether kube-scheduler has found no place for the pod
// and it is worth finding one: not while a scheduling gate holds it back. A nomination by others is not looked at: it
// counts only while the node exists, which the caller knows.
func Provisionable(p *corev1.Pod) bool {
	if p.Spec.NodeName != "" || p.DeletionTimestamp != nil || len(p.Spec.SchedulingGates) > 0 || finished(p) {
		return false
	}
	if k := owner(p).Kind; k == "DaemonSet" || k == "Node" {
		return false
	}
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status != corev1.ConditionTrue && c.Reason == corev1.PodReasonUnschedulable
	})
}

// owner is the controller of the pod, or the first owner if none is marked as
// the controller. A kind that another API group has under the same name as
// Kubernetes is written with its group, so that only an apps/v1 DaemonSet is a
// DaemonSet.
func owner(p *corev1.Pod) world.Owner {
	if _, static := p.Annotations[dialect.AnnotationMirrorPod]; static {
		return world.Owner{Kind: "Node", Name: p.Spec.NodeName}
	}
	ref := metav1.GetControllerOfNoCopy(p)
	if ref == nil {
		if len(p.OwnerReferences) == 0 {
			return world.Owner{}
		}
		ref = &p.OwnerReferences[0]
	}
	group, _, found := strings.Cut(ref.APIVersion, "/")
	if !found {
		group = ""
	}
	if ref.Kind == "DaemonSet" && group != "apps" || ref.Kind == "Node" && group != "" {
		return world.Owner{Kind: ref.Kind + "." + group, Name: ref.Name}
	}
	return world.Owner{Kind: ref.Kind, Name: ref.Name}
}

// nodeAffinity translates required and preferred node affinity. Terms are
// alternatives; a term without any expression matches no node, so it is left
// out, as kube-scheduler does. A preference that is not understood is left out
// too: nobody is promised that it is followed.
func nodeAffinity(p *corev1.Pod, out *world.Pod) {
	if p.Spec.Affinity == nil || p.Spec.Affinity.NodeAffinity == nil {
		return
	}
	a := p.Spec.Affinity.NodeAffinity
	if required := a.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		for _, t := range required.NodeSelectorTerms {
			term, trouble := expressions(t)
			switch {
			case trouble != "":
				refuse(out, trouble)
			case len(term) > 0:
				out.Terms = append(out.Terms, term)
			}
		}
		if len(out.Terms) == 0 {
			// An empty term matches nothing; no terms at all would match
			// everything, also for daemons, which are never refused.
			out.Terms = [][]label.Requirement{{}}
			refuse(out, "its required node affinity has no term with an expression, so it matches no node")
		} else if !slices.ContainsFunc(out.Terms, func(t []label.Requirement) bool { return !avoidsPools(t) }) {
			refuse(out, "it requires nodes without the label "+label.Provisioner+" or "+label.NodePool+", by which it asks for nodes that nobody here has bought")
		}
	}
	for _, t := range a.PreferredDuringSchedulingIgnoredDuringExecution {
		if term, trouble := expressions(t.Preference); trouble == "" && len(term) > 0 {
			out.Preferred = append(out.Preferred, world.Preference{Weight: t.Weight, Term: term})
		}
	}
}

// expressions translates one term; trouble says what is not understood.
func expressions(t corev1.NodeSelectorTerm) (term []label.Requirement, trouble string) {
	if len(t.MatchFields) > 0 {
		return nil, unsupported("node affinity by matchFields", t.MatchFields[0].Key)
	}
	for _, e := range t.MatchExpressions {
		r := requirement(e.Key, e.Operator, e.Values)
		if err := label.Validate(r); err != nil {
			return nil, "its node affinity cannot be met: " + err.Error()
		}
		term = append(term, r)
	}
	return term, ""
}

// avoidsPools reports whether the term asks for nodes that belong to no pool.
func avoidsPools(term []label.Requirement) bool {
	return slices.ContainsFunc(term, func(r label.Requirement) bool {
		return (r.Key == label.Provisioner || r.Key == label.NodePool) && r.Op == label.DoesNotExist
	})
}

// refuse keeps the first reason.
func refuse(p *world.Pod, why string) {
	if p.Refused == "" {
		p.Refused = why
	}
}
