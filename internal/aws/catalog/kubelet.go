package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

// Eviction signals that take room from pods.
const (
	memoryAvailable = "memory.available"
	diskAvailable   = "nodefs.available"
)

// Thresholds where the settings say nothing: kubelet's own.
var (
	defaultMemory = threshold{bytes: 100 * mebi}
	defaultDisk   = threshold{percent: 10, isPercent: true}
)

// kubelet is the part of the kubelet settings that changes what a node offers.
type kubelet struct {
	maxPods        *int64
	podsPerCore    int64
	kubeReserved   reserved
	systemReserved reserved
	hard, soft     *threshold // of memory
	disk           *threshold
}

// readKubelet reads and checks the settings. Errors name the field as it is
// written in the API object.
func readKubelet(w world.Kubelet) (kubelet, error) {
	var k kubelet
	for _, n := range []struct {
		field string
		value *int32
	}{{"maxPods", w.MaxPods}, {"podsPerCore", w.PodsPerCore}} {
		if n.value != nil && *n.value < 0 {
			return k, fmt.Errorf("kubeletConfiguration.%s: %d is negative: set 0 or more, or leave it out", n.field, *n.value)
		}
	}
	if w.MaxPods != nil {
		if *w.MaxPods == 0 {
			return k, errors.New("kubeletConfiguration.maxPods: 0 leaves no room for pods: set 1 or more, or leave it out")
		}
		n := int64(*w.MaxPods)
		k.maxPods = &n
	}
	if w.PodsPerCore != nil {
		k.podsPerCore = int64(*w.PodsPerCore)
	}
	var err error
	if k.kubeReserved, err = readReserved("kubeReserved", w.KubeReserved); err != nil {
		return k, err
	}
	if k.systemReserved, err = readReserved("systemReserved", w.SystemReserved); err != nil {
		return k, err
	}
	for _, t := range []struct {
		field, signal string
		in            map[string]string
		into          **threshold
	}{
		{"evictionHard", memoryAvailable, w.EvictionHard, &k.hard},
		{"evictionSoft", memoryAvailable, w.EvictionSoft, &k.soft},
		{"evictionHard", diskAvailable, w.EvictionHard, &k.disk},
	} {
		if *t.into, err = readThreshold(t.field, t.signal, t.in); err != nil {
			return k, err
		}
	}
	return k, nil
}

// reserved replaces single amounts of a default reservation.
type reserved struct{ milliCPU, memory, ephemeral *int64 }

func (r reserved) over(d quantity.Resources) quantity.Resources {
	for _, o := range []struct{ set, amount *int64 }{
		{r.milliCPU, &d.MilliCPU}, {r.memory, &d.MemoryBytes}, {r.ephemeral, &d.EphemeralBytes},
	} {
		if o.set != nil {
			*o.amount = *o.set
		}
	}
	return d
}

func readReserved(field string, values map[string]string) (reserved, error) {
	var r reserved
	// In a fixed order, so that of several faults the same one is named.
	for _, name := range slices.Sorted(maps.Keys(values)) {
		q, err := readQuantity(fmt.Sprintf("kubeletConfiguration.%s[%s]", field, name), values[name])
		if err != nil {
			return r, err
		}
		milli, whole := q.MilliValue(), q.Value()
		switch name {
		case quantity.CPU:
			r.milliCPU = &milli
		case quantity.Memory:
			r.memory = &whole
		case quantity.EphemeralStorage:
			r.ephemeral = &whole
		case "pid":
		default:
			return r, fmt.Errorf("kubeletConfiguration.%s[%s]: not a resource that can be reserved: use cpu, memory, ephemeral-storage or pid", field, name)
		}
	}
	return r, nil
}

// maxQuantity is more than any machine has, and few enough that thousandths of
// it fit into 64 bits.
const maxQuantity = 1e15

func readQuantity(field, text string) (resource.Quantity, error) {
	q, err := parseQuantity(text)
	switch {
	case err != nil:
		return q, fmt.Errorf("%s: %q is not a quantity: write a number with a unit, such as 500m, 200Mi or 1Gi", field, text)
	case q.Sign() < 0:
		return q, fmt.Errorf("%s: %q is negative: set 0 or more", field, text)
	case q.AsApproximateFloat64() > maxQuantity:
		return q, fmt.Errorf("%s: %q is more than any machine has: set a smaller amount", field, text)
	}
	return q, nil
}

// parseQuantity refuses exponents of three digits and more before they are
// computed: 1e-99999999 would take a minute.
func parseQuantity(text string) (resource.Quantity, error) {
	if i := strings.IndexAny(text, "eE"); i >= 0 && len(strings.TrimLeft(text[i+1:], "+-")) > 2 {
		return resource.Quantity{}, resource.ErrFormatWrong
	}
	return resource.ParseQuantity(text)
}

// threshold is an amount: bytes, or a percentage of the capacity.
type threshold struct {
	bytes     int64
	percent   float64
	isPercent bool
}

func readThreshold(field, signal string, signals map[string]string) (*threshold, error) {
	text, ok := signals[signal]
	if !ok {
		return nil, nil
	}
	field = fmt.Sprintf("kubeletConfiguration.%s[%s]", field, signal)
	if number, ok := strings.CutSuffix(text, "%"); ok {
		p, err := strconv.ParseFloat(number, 64)
		if err != nil || !(p >= 0 && p <= 100) {
			return nil, fmt.Errorf("%s: %q is not a percentage: write a number from 0%% to 100%%", field, text)
		}
		return &threshold{percent: p, isPercent: true}, nil
	}
	q, err := readQuantity(field, text)
	if err != nil {
		return nil, err
	}
	return &threshold{bytes: q.Value()}, nil
}

// of returns the threshold in bytes of a capacity. 100 % switches the
// signal off, as it does for kubelet.
func (t threshold) of(capacity int64) int64 {
	switch {
	case !t.isPercent:
		return t.bytes
	case t.percent == 100:
		return 0
	default:
		return int64(math.Ceil(float64(capacity) / 100 * t.percent))
	}
}

// eviction is what pods cannot use because kubelet would evict them: of memory
// the greater of the thresholds that are set, else the default.
func (k kubelet) eviction(in Input, capacity quantity.Resources) quantity.Resources {
	hard, soft := k.hard, k.soft
	if !in.Family.EvictionSoft || !in.Rules.SoftEviction {
		soft = nil
	}
	if hard == nil && soft == nil {
		hard = &defaultMemory
	}
	var kept quantity.Resources
	for _, t := range []*threshold{hard, soft} {
		if t != nil {
			kept.MemoryBytes = max(kept.MemoryBytes, t.of(capacity.MemoryBytes))
		}
	}
	if in.Rules.DiskEviction {
		kept.EphemeralBytes = cmp.Or(k.disk, &defaultDisk).of(capacity.EphemeralBytes)
	}
	return kept
}
