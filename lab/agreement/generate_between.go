package agreement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podTerm says with which pods a pod wants to be, or not.
func (d *draft) podTerm(t *template) corev1.PodAffinityTerm {
	out := corev1.PodAffinityTerm{TopologyKey: pick(d, topologyKeys), LabelSelector: d.selector(t.Labels)}
	if d.chance(0.15) {
		out.Namespaces = some(d, namespaceNames, 2)
	}
	if d.chance(0.15) {
		out.NamespaceSelector = pick(d, []*metav1.LabelSelector{{}, {MatchLabels: map[string]string{"owner": "red"}}, {MatchLabels: map[string]string{"owner": "nobody"}}})
	}
	if out.LabelSelector != nil && d.chance(0.2) {
		out.MatchLabelKeys = []string{"rev"}
	} else if out.LabelSelector != nil && d.chance(0.15) {
		out.MismatchLabelKeys = []string{"rev"}
	}
	return out
}

func affinityOf(t *template) *corev1.Affinity {
	if t.Spec.Affinity == nil {
		t.Spec.Affinity = &corev1.Affinity{}
	}
	return t.Spec.Affinity
}

func podAffinity(d *draft, t *template) {
	a := affinityOf(t)
	a.PodAffinity = &corev1.PodAffinity{}
	for range max(1, d.between(-2, 2)) {
		a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution = append(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, d.podTerm(t))
	}
}

func podAntiAffinity(d *draft, t *template) {
	a := affinityOf(t)
	a.PodAntiAffinity = &corev1.PodAntiAffinity{}
	for range max(1, d.between(-2, 2)) {
		a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = append(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, d.podTerm(t))
	}
}

// podPreferences are affinity and anti-affinity that should hold.
func podPreferences(d *draft, t *template) {
	a := affinityOf(t)
	term := corev1.WeightedPodAffinityTerm{Weight: int32(d.between(1, 100)), PodAffinityTerm: d.podTerm(t)}
	if d.chance(0.5) {
		if a.PodAffinity == nil {
			a.PodAffinity = &corev1.PodAffinity{}
		}
		a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution, term)
		return
	}
	if a.PodAntiAffinity == nil {
		a.PodAntiAffinity = &corev1.PodAntiAffinity{}
	}
	a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution, term)
}

// matchKeys writes the values of matchLabelKeys and mismatchLabelKeys of pod
// affinity into the selectors, as the API server does on creation. Those of
// topology spread the scheduler reads itself.
func matchKeys(p *corev1.Pod) {
	a := p.Spec.Affinity
	if a == nil {
		return
	}
	var terms []*corev1.PodAffinityTerm
	list := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		for i := range required {
			terms = append(terms, &required[i])
		}
		for i := range preferred {
			terms = append(terms, &preferred[i].PodAffinityTerm)
		}
	}
	if b := a.PodAffinity; b != nil {
		list(b.RequiredDuringSchedulingIgnoredDuringExecution, b.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if b := a.PodAntiAffinity; b != nil {
		list(b.RequiredDuringSchedulingIgnoredDuringExecution, b.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	for _, t := range terms {
		add := func(keys []string, op metav1.LabelSelectorOperator) {
			for _, k := range keys {
				if v, ok := p.Labels[k]; ok && t.LabelSelector != nil {
					t.LabelSelector.MatchExpressions = append(slices.Clone(t.LabelSelector.MatchExpressions), metav1.LabelSelectorRequirement{Key: k, Operator: op, Values: []string{v}})
				}
			}
		}
		add(t.MatchLabelKeys, metav1.LabelSelectorOpIn)
		add(t.MismatchLabelKeys, metav1.LabelSelectorOpNotIn)
	}
}
