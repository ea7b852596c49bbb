package convert

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"karpenter/internal/core/quantity"
)

// most bounds every amount, so that the sums of all containers of all pods of
// a node do not overflow. It is a pebibyte, or a million million CPUs.
const most = int64(1) << 50

// Resources translates a list of resources: cpu in milli-CPU, everything else
// in whole units. Parts of a unit are rounded up for what is asked for, and
// down for what is offered.
func Resources(list corev1.ResourceList, roundUp bool) quantity.Resources {
	var out quantity.Resources
	for name, q := range list {
		out = out.With(string(name), amount(name, q, roundUp))
	}
	return out
}

// amount rounds one quantity to the unit of its resource.
func amount(name corev1.ResourceName, q resource.Quantity, roundUp bool) int64 {
	unit := resource.Scale(0)
	if name == corev1.ResourceCPU {
		unit = resource.Milli
	}
	if q.CmpInt64(most) >= 0 {
		return most
	}
	if q.CmpInt64(-most) <= 0 {
		return -most
	}
	n := q.ScaledValue(unit) // rounds away from zero
	switch c := resource.NewScaledQuantity(n, unit).Cmp(q); {
	case roundUp && c < 0:
		n++
	case !roundUp && c > 0:
		n--
	}
	return min(n, most)
}

// ResourceList translates back.
func ResourceList(r quantity.Resources) corev1.ResourceList {
	amounts := r.Amounts()
	if len(amounts) == 0 {
		return nil
	}
	out := make(corev1.ResourceList, len(amounts))
	for _, a := range amounts {
		out[corev1.ResourceName(a.Name)] = Quantity(a)
	}
	return out
}

// Quantity writes one amount in the form that is usual for its resource.
func Quantity(a quantity.Amount) resource.Quantity {
	switch {
	case a.Name == quantity.CPU:
		return *resource.NewMilliQuantity(a.Value, resource.DecimalSI)
	case a.Name == quantity.Memory, a.Name == quantity.EphemeralStorage, strings.HasPrefix(a.Name, corev1.ResourceHugePagesPrefix):
		return *resource.NewQuantity(a.Value, resource.BinarySI)
	}
	return *resource.NewQuantity(a.Value, resource.DecimalSI)
}
