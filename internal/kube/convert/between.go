package convert

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
)

// spread translates topology spread constraints. The constraints that
// kube-scheduler adds of its own are preferences of scoring, and are not
// followed.
func spread(p *corev1.Pod) []world.Spread {
	var out []world.Spread
	for _, c := range p.Spec.TopologySpreadConstraints {
		s := world.Spread{
			Key:            label.Normalize(c.TopologyKey),
			MaxSkew:        c.MaxSkew,
			Soft:           c.WhenUnsatisfiable == corev1.ScheduleAnyway,
			Selector:       Selector(c.LabelSelector),
			IgnoreAffinity: c.NodeAffinityPolicy != nil && *c.NodeAffinityPolicy == corev1.NodeInclusionPolicyIgnore,
			HonorTaints:    c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor,
		}
		if c.MinDomains != nil {
			s.MinDomains = *c.MinDomains
		}
		matchKeys(&s.Selector, p.Labels, c.MatchLabelKeys, label.In)
		out = append(out, s)
	}
	return out
}

// podAffinity translates pod affinity and anti-affinity, required terms first.
func (l *Lookups) podAffinity(p *corev1.Pod, out *world.Pod) {
	a := p.Spec.Affinity
	if a == nil {
		return
	}
	if with := a.PodAffinity; with != nil {
		out.Affinity = l.podTerms(p, with.RequiredDuringSchedulingIgnoredDuringExecution, with.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if apart := a.PodAntiAffinity; apart != nil {
		out.AntiAffinity = l.podTerms(p, apart.RequiredDuringSchedulingIgnoredDuringExecution, apart.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

func (l *Lookups) podTerms(p *corev1.Pod, required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) []world.PodTerm {
	var out []world.PodTerm
	for i := range required {
		out = append(out, l.podTerm(p, &required[i]))
	}
	for i := range preferred {
		t := l.podTerm(p, &preferred[i].PodAffinityTerm)
		t.Weight = preferred[i].Weight
		out = append(out, t)
	}
	return out
}

func (l *Lookups) podTerm(p *corev1.Pod, t *corev1.PodAffinityTerm) world.PodTerm {
	out := world.PodTerm{Key: label.Normalize(t.TopologyKey), Selector: Selector(t.LabelSelector)}
	matchKeys(&out.Selector, p.Labels, t.MatchLabelKeys, label.In)
	matchKeys(&out.Selector, p.Labels, t.MismatchLabelKeys, label.NotIn)
	switch s := t.NamespaceSelector; {
	case s == nil && len(t.Namespaces) == 0:
		out.Namespaces = []string{p.Namespace}
	case s != nil && len(s.MatchLabels)+len(s.MatchExpressions) == 0:
		out.AllNamespaces = true
	default:
		out.Namespaces = append(slices.Clone(t.Namespaces), l.selected(s)...)
		slices.Sort(out.Namespaces)
		out.Namespaces = slices.Compact(out.Namespaces)
		if len(out.Namespaces) == 0 {
			out.Selector = world.LabelSelector{Nothing: true}
		}
	}
	return out
}

// selected are the namespaces that the selector takes; none if it is nil or
// cannot be read.
func (l *Lookups) selected(s *metav1.LabelSelector) []string {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return nil
	}
	var out []string
	for name, set := range l.namespaces {
		if selector.Matches(labels.Set(set)) {
			out = append(out, name)
		}
	}
	return out
}

// matchKeys adds to the selector that other pods have the same value as the pod
// itself for each key (op In), or another one (NotIn). Keys that the pod does
// not have are left out. The API server may have done the same already.
func matchKeys(s *world.LabelSelector, own map[string]string, keys []string, op label.Op) {
	if s.Nothing {
		return
	}
	for _, k := range keys {
		v, has := own[k]
		r := label.Requirement{Key: k, Op: op, Values: []string{v}}
		if has && !slices.ContainsFunc(s.Requirements, func(o label.Requirement) bool { return o.Compare(r) == 0 }) {
			s.Requirements = append(s.Requirements, r)
		}
	}
}

// selectsNamespaces reports whether a term depends on the labels of namespaces.
func selectsNamespaces(p *corev1.Pod) bool {
	a := p.Spec.Affinity
	if a == nil {
		return false
	}
	required, preferred := []corev1.PodAffinityTerm{}, []corev1.WeightedPodAffinityTerm{}
	if a.PodAffinity != nil {
		required = append(required, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
		preferred = append(preferred, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	if a.PodAntiAffinity != nil {
		required = append(required, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
		preferred = append(preferred, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	return slices.ContainsFunc(required, func(t corev1.PodAffinityTerm) bool { return t.NamespaceSelector != nil }) ||
		slices.ContainsFunc(preferred, func(t corev1.WeightedPodAffinityTerm) bool { return t.PodAffinityTerm.NamespaceSelector != nil })
}

// hostPorts lists the ports of the node that the pod takes for as long as it
// runs. On the network of the host every port is a port of the host.
func hostPorts(s *corev1.PodSpec) []world.HostPort {
	var out []world.HostPort
	add := func(c *corev1.Container) {
		for _, port := range c.Ports {
			p := world.HostPort{IP: port.HostIP, Protocol: string(port.Protocol), Port: port.HostPort}
			if p.Protocol == "" {
				p.Protocol = string(corev1.ProtocolTCP)
			}
			if s.HostNetwork && p.Port == 0 {
				p.Port = port.ContainerPort
			}
			if p.Port > 0 && !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	for i := range s.InitContainers {
		if isSidecar(&s.InitContainers[i]) {
			add(&s.InitContainers[i])
		}
	}
	for i := range s.Containers {
		add(&s.Containers[i])
	}
	return out
}

// isSidecar reports whether an init container is kept running.
func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}
