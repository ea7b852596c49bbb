// Package convert translates API objects to values of the hub model and back.
//
// It imports the API types, admission, core and dialect, and no client. All
// functions are pure: what an object refers to must be in the object or in the
// [Lookups], or is joined by the caller. Amounts are rounded against us:
// requests up, capacity and limits down. What is not understood is never dropped
// in silence: a pod gets a word in Refused, a pool an error.
package convert

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "karpenter/api/v1"
	"karpenter/api/v1alpha5"
	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
)

func objectName(o metav1.ObjectMeta) world.ObjectName {
	return world.ObjectName{Namespace: o.Namespace, Name: o.Name}
}

func timePointer(t *metav1.Time) *time.Time {
	if t == nil {
		return nil
	}
	return &t.Time
}

// taints leaves out those without effect.
func taints[T corev1.Taint | karpv1.Taint | v1alpha5.Taint](list []T) []world.Taint {
	var out []world.Taint
	for _, t := range list {
		t := corev1.Taint(t)
		if t.Effect != "" {
			out = append(out, world.Taint{Key: t.Key, Value: t.Value, Effect: world.Effect(t.Effect)})
		}
	}
	return out
}

func apiTaints(list []world.Taint) []karpv1.Taint {
	var out []karpv1.Taint
	for _, t := range list {
		out = append(out, karpv1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
	}
	return out
}

// requirement writes one entry in the normal form: normal key, and values only
// where the operator has some.
func requirement(key string, op corev1.NodeSelectorOperator, values []string) label.Requirement {
	r := label.Requirement{Key: label.Normalize(key), Op: label.Op(op)}
	if r.Op != label.Exists && r.Op != label.DoesNotExist {
		r.Values = slices.Clone(values)
	}
	return r
}
