package cluster

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

func compareStrings(a, b string) int { return strings.Compare(a, b) }

func sortedKeys[K comparable, V any](m map[K]V, compare func(a, b K) int) []K {
	return slices.SortedFunc(maps.Keys(m), compare)
}

func sameMap(a, b map[string]string) bool { return maps.Equal(a, b) }

func taintsDiffer(a, b []corev1.Taint) bool { return !slices.EqualFunc(a, b, sameTaint) }
