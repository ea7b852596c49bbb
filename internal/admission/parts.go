package admission

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	karpv1 "karpenter/api/v1"
	"karpenter/api/v1alpha5"
)

// mostEntries of labels, annotations, taints and requirements.
const mostEntries = 100

// most checks that a list is not longer than the API server takes.
func most(path *field.Path, n, limit int) field.ErrorList {
	if n <= limit {
		return nil
	}
	return field.ErrorList{field.TooMany(path, n, limit)}
}

// Annotations of nodes that users may set although the domain is ours.
var usersAnnotations = []string{"karpenter.sh/do-not-consolidate", "karpenter.sh/do-not-evict", "karpenter.sh/do-not-disrupt"}

// The API server keeps no object with more than 256 KiB of annotations, and we
// add to those of the user. A character has 4 bytes at most.
const longestAnnotations = 32768

func annotations(path *field.Path, list map[string]string) field.ErrorList {
	errs := most(path, len(list), mostEntries)
	size := 0
	for _, k := range sortedKeys(list) {
		errs = append(errs, key(path.Key(k), strings.ToLower(k))...) // as the API server does
		size += utf8.RuneCountInString(k) + utf8.RuneCountInString(list[k])
		domain, _, _ := strings.Cut(k, "/")
		if strings.HasSuffix("."+domain, ".karpenter.sh") && !slices.Contains(usersAnnotations, k) {
			errs = append(errs, field.Forbidden(path.Key(k), fmt.Sprintf("annotation %s is restricted: with annotations of the domain karpenter.sh the controller keeps its own state on nodes; "+
				"allowed are karpenter.sh/do-not-consolidate, do-not-evict and do-not-disrupt; remove it", k)))
		}
	}
	if size > longestAnnotations {
		errs = append(errs, field.Invalid(path, size, fmt.Sprintf("annotations must not be longer than %d characters, all keys and values together", longestAnnotations)))
	}
	return errs
}

// Taints with which the controller marks nodes on their way in and out.
var ownTaints = []string{"karpenter.sh/unregistered", "karpenter.sh/disrupted"}

var effects = []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute, ""}

// taints checks both lists; a pair of key and effect may be in them once.
func taints[T v1alpha5.Taint | karpv1.Taint](spec *field.Path, taints, startup []T) field.ErrorList {
	var errs field.ErrorList
	type pair struct {
		key    string
		effect corev1.TaintEffect
	}
	seen := map[pair]bool{}
	check := func(path *field.Path, list []T) {
		errs = append(errs, most(path, len(list), mostEntries)...)
		for i := range list {
			t, at := corev1.Taint(list[i]), path.Index(i)
			errs = append(errs, key(at.Child("key"), t.Key)...)
			errs = append(errs, value(at.Child("value"), t.Value)...)
			if slices.Contains(ownTaints, t.Key) {
				errs = append(errs, field.Forbidden(at.Child("key"), fmt.Sprintf("taint %s is not for users: the controller puts it on nodes and takes it off itself; remove it", t.Key)))
			}
			if !slices.Contains(effects, t.Effect) {
				errs = append(errs, field.NotSupported(at.Child("effect"), t.Effect, effects))
			}
			if p := (pair{t.Key, t.Effect}); seen[p] {
				errs = append(errs, field.Invalid(at, t.Key, "taints and startupTaints together must not hold the same pair of key and effect twice"))
			} else {
				seen[p] = true
			}
		}
	}
	check(spec.Child("taints"), taints)
	check(spec.Child("startupTaints"), startup)
	return errs
}

// amounts checks a list of limits or requests.
func amounts(path *field.Path, list corev1.ResourceList) field.ErrorList {
	errs := most(path, len(list), 30)
	for _, name := range sortedKeys(list) {
		if q := list[name]; q.Sign() < 0 {
			errs = append(errs, field.Invalid(path.Key(string(name)), q.String(), "must be 0 or more"))
		}
	}
	return errs
}

func weight(path *field.Path, w *int32) field.ErrorList {
	if w == nil || (*w >= 1 && *w <= 100) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *w, "must be between 1 and 100")}
}

func notNegative[T int32 | int64](path *field.Path, n *T) field.ErrorList {
	if n == nil || *n >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *n, "must be 0 or more")}
}

// sortedKeys returns the keys of a map in order, so that errors come in order.
func sortedKeys[M ~map[K]V, K ~string, V any](m M) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
