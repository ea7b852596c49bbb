package agreement

import (
	corev1 "k8s.io/api/core/v1"
)

var (
	taintKeys    = []string{"dedicated", "example.com/maintenance", "gpu"}
	taintValues  = []string{"", "a", "b"}
	taintEffects = []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
)

// taints returns up to two taints with different keys.
func (d *draft) taints(often float64) []corev1.Taint {
	var out []corev1.Taint
	for _, key := range some(d, taintKeys, 2) {
		if d.chance(often) {
			out = append(out, corev1.Taint{Key: key, Value: pick(d, taintValues), Effect: pick(d, taintEffects)})
		}
	}
	return out
}

func tolerations(d *draft, s *corev1.PodSpec) {
	for range d.between(1, 3) {
		t := corev1.Toleration{Key: pick(d, taintKeys), Operator: corev1.TolerationOpExists}
		if d.chance(0.4) {
			t.Operator, t.Value = corev1.TolerationOpEqual, pick(d, taintValues)
		}
		if d.chance(0.5) {
			t.Effect = pick(d, taintEffects)
		}
		if d.chance(0.1) {
			t = corev1.Toleration{Operator: corev1.TolerationOpExists} // everything
			if d.chance(0.3) {
				t.Effect = pick(d, taintEffects)
			}
		}
		s.Tolerations = append(s.Tolerations, t)
	}
}
