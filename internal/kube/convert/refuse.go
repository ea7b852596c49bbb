package convert

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// features are what a pod may ask for that is not planned for yet. Each names
// the detail by which the pod uses it; empty if it does not. Planning such a
// pod as if it had not asked would plan it wrongly.
var features = []struct {
	name string
	used func(*corev1.PodSpec) string
}{
	{"a scheduling group", func(s *corev1.PodSpec) string {
		if s.SchedulingGroup == nil {
			return ""
		}
		return "spec.schedulingGroup"
	}},
	{"Windows", func(s *corev1.PodSpec) string {
		if s.OS == nil || s.OS.Name != corev1.Windows {
			return ""
		}
		return "spec.os"
	}},
	{"resource claims", func(s *corev1.PodSpec) string {
		if len(s.ResourceClaims) == 0 {
			return ""
		}
		return s.ResourceClaims[0].Name
	}},
}

// refused says that the pod is held back, or which feature keeps it from being
// planned; empty if neither.
func refused(p *corev1.Pod) string {
	if gates := p.Spec.SchedulingGates; len(gates) > 0 {
		return "it is held back by the scheduling gate " + gates[0].Name + " until somebody takes that away"
	}
	if negative := negativeAmount(&p.Spec); negative != "" {
		return negative
	}
	for _, f := range features {
		if detail := f.used(&p.Spec); detail != "" {
			return unsupported(f.name, detail)
		}
	}
	return ""
}

// negativeAmount names what the API server would refuse: an amount below zero.
func negativeAmount(s *corev1.PodSpec) string {
	for i := range s.Containers {
		if below := belowZero(&s.Containers[i].Resources); below != "" {
			return fmt.Sprintf("spec.containers[%d].%s", i, below)
		}
	}
	for i := range s.InitContainers {
		if below := belowZero(&s.InitContainers[i].Resources); below != "" {
			return fmt.Sprintf("spec.initContainers[%d].%s", i, below)
		}
	}
	if s.Resources != nil {
		if below := belowZero(s.Resources); below != "" {
			return "spec." + below
		}
	}
	return ""
}

// belowZero names the first request, or else limit, that is; in order of name.
func belowZero(r *corev1.ResourceRequirements) string {
	for _, list := range []struct {
		name    string
		amounts corev1.ResourceList
	}{{"requests", r.Requests}, {"limits", r.Limits}} {
		least := ""
		for name, q := range list.amounts {
			if q.Sign() < 0 && (least == "" || string(name) < least) {
				least = string(name)
			}
		}
		if least != "" {
			q := list.amounts[corev1.ResourceName(least)]
			return fmt.Sprintf("resources.%s[%s]: %s is less than 0, which no API server accepts", list.name, least, q.String())
		}
	}
	return ""
}

func unsupported(feature, detail string) string {
	return fmt.Sprintf("it uses %s (%s), which is not supported yet", feature, detail)
}
