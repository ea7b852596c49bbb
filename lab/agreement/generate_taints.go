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

func tolerations(d *draft, t *template) {
	s := &t.Spec
	for range d.between(1, 3) {
		o := corev1.Toleration{Key: pick(d, taintKeys), Operator: corev1.TolerationOpExists}
		if d.chance(0.4) {
			o.Operator, o.Value = corev1.TolerationOpEqual, pick(d, taintValues)
		}
		if d.chance(0.5) {
			o.Effect = pick(d, taintEffects)
		}
		if d.chance(0.1) {
			o = corev1.Toleration{Operator: corev1.TolerationOpExists} // everything
			if d.chance(0.3) {
				o.Effect = pick(d, taintEffects)
			}
		}
		s.Tolerations = append(s.Tolerations, o)
	}
}
