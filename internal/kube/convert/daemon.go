package convert

import (
	"cmp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
)

// Daemon translates a DaemonSet: its template as a pod, with the tolerations
// that the DaemonSet controller adds. The template is never refused: whatever
// else its pods ask for, they take room.
func Daemon(d *appsv1.DaemonSet) world.Daemon {
	p := &corev1.Pod{ObjectMeta: *d.Spec.Template.ObjectMeta.DeepCopy(), Spec: *d.Spec.Template.Spec.DeepCopy()}
	p.Namespace, p.Name = d.Namespace, d.Name
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "DaemonSet", Name: d.Name}}
	out := Pod(p)
	out.Refused = ""
	out.Tolerations = append(out.Tolerations, daemonTolerations...)
	if p.Spec.HostNetwork {
		out.Tolerations = append(out.Tolerations, world.Toleration{Key: corev1.TaintNodeNetworkUnavailable, Op: "Exists", Effect: world.NoSchedule})
	}
	return world.Daemon{ObjectName: out.ObjectName, Template: out}
}

// DaemonPods are running pods of DaemonSets, by namespace and name of the set;
// the youngest of each. They tell what admission makes of the template:
// overhead of a RuntimeClass, defaults of a LimitRange, changes by webhooks.
type DaemonPods map[world.ObjectName]world.Pod

// See takes a pod in, if it is one.
func (d DaemonPods) See(p *world.Pod) {
	if !p.IsDaemon() || p.Node == "" || p.Finished || p.DeletedAt != nil {
		return
	}
	set := world.ObjectName{Namespace: p.Namespace, Name: p.Owner.Name}
	if known, ok := d[set]; !ok || cmp.Or(known.Created.Compare(p.Created), strings.Compare(p.Name, known.Name)) < 0 {
		d[set] = *p
	}
}

// Daemon translates a DaemonSet as [Daemon] does, with the requests of its
// youngest pod if it has one.
func (d DaemonPods) Daemon(set *appsv1.DaemonSet) world.Daemon {
	out := Daemon(set)
	if p, ok := d[out.ObjectName]; ok {
		out.Template.Requests = p.Requests
	}
	return out
}

var daemonTolerations = []world.Toleration{
	{Key: corev1.TaintNodeNotReady, Op: "Exists", Effect: world.NoExecute},
	{Key: corev1.TaintNodeUnreachable, Op: "Exists", Effect: world.NoExecute},
	{Key: corev1.TaintNodeDiskPressure, Op: "Exists", Effect: world.NoSchedule},
	{Key: corev1.TaintNodeMemoryPressure, Op: "Exists", Effect: world.NoSchedule},
	{Key: corev1.TaintNodePIDPressure, Op: "Exists", Effect: world.NoSchedule},
	{Key: corev1.TaintNodeUnschedulable, Op: "Exists", Effect: world.NoSchedule},
}

// Budget translates a PodDisruptionBudget.
func Budget(b *policyv1.PodDisruptionBudget) world.PodBudget {
	return world.PodBudget{ObjectName: objectName(b.ObjectMeta), Selector: Selector(b.Spec.Selector), Allowed: b.Status.DisruptionsAllowed, Never: never(b)}
}

// never reports whether the budget asks for all of its pods at all times.
func never(b *policyv1.PodDisruptionBudget) bool {
	none := func(v *intstr.IntOrString, is ...string) bool { return v != nil && slices.Contains(is, v.String()) }
	all := b.Status.ExpectedPods > 0 && b.Status.DesiredHealthy >= b.Status.ExpectedPods && b.Status.ObservedGeneration == b.Generation
	return b.Status.DisruptionsAllowed < 1 && (all || none(b.Spec.MaxUnavailable, "0", "0%") || none(b.Spec.MinAvailable, "100%"))
}

// Selector translates a selector of pods. None selects nothing, an empty one
// everything; one that cannot be read selects nothing, as in Kubernetes.
func Selector(s *metav1.LabelSelector) world.LabelSelector {
	if s == nil {
		return world.LabelSelector{Nothing: true}
	}
	if !plain(s) {
		if _, err := metav1.LabelSelectorAsSelector(s); err != nil {
			return world.LabelSelector{Nothing: true}
		}
	}
	var out world.LabelSelector
	for k, v := range s.MatchLabels {
		out.Requirements = append(out.Requirements, label.Requirement{Key: k, Op: label.In, Values: []string{v}})
	}
	slices.SortFunc(out.Requirements, func(a, b label.Requirement) int { return strings.Compare(a.Key, b.Key) })
	for _, e := range s.MatchExpressions {
		out.Requirements = append(out.Requirements, label.Requirement{Key: e.Key, Op: label.Op(e.Operator), Values: slices.Clone(e.Values)})
	}
	return out
}

// plain reports whether the selector is valid at first sight: short words of lower
// case, digits and inner hyphens. Most are, and looking closer takes long.
func plain(s *metav1.LabelSelector) bool {
	for k, v := range s.MatchLabels {
		if !plainWord(k) || !plainWord(v) {
			return false
		}
	}
	return len(s.MatchExpressions) == 0
}

func plainWord(w string) bool {
	for i := range len(w) {
		switch c := w[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-' && i > 0 && i < len(w)-1:
		default:
			return false
		}
	}
	return 0 < len(w) && len(w) <= 63
}
