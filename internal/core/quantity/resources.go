// Package quantity holds amounts: a vector of resources and money.
//
// It imports the standard library only. Amounts are integers with a fixed
// unit, so that adding and comparing never loses anything; whoever translates
// from another form rounds against us (requests up, capacity down).
package quantity

import (
	"slices"
	"strconv"
	"strings"
)

// Names of the resources that have a field of their own in [Resources].
const (
	CPU              = "cpu"
	Memory           = "memory"
	EphemeralStorage = "ephemeral-storage"
	Pods             = "pods"
)

// Nodes is the name under which machines are counted, in limits of pools and in
// what pools use.
const Nodes = "nodes"

// Resources is a vector of amounts. The zero value is the empty vector. A
// resource that is not mentioned has the amount 0.
type Resources struct {
	MilliCPU       int64 `json:"milliCPU,omitempty"`
	MemoryBytes    int64 `json:"memoryBytes,omitempty"`
	EphemeralBytes int64 `json:"ephemeralBytes,omitempty"`
	Pods           int64 `json:"pods,omitempty"`
	// Extended holds all other resources (hugepages, devices), in whole
	// units (bytes for hugepages), sorted by name, without zero amounts.
	Extended []Amount `json:"extended,omitempty"`
}

// Amount is one named resource. Units: milli-CPU for cpu, bytes for memory and
// storage, pieces for everything else.
type Amount struct {
	Name  string `json:"name"`
	Value int64  `json:"value"`
}

// Of builds a vector from named amounts; amounts of the same name are added.
func Of(amounts ...Amount) Resources {
	var r Resources
	for _, a := range amounts {
		r = r.With(a.Name, r.Get(a.Name)+a.Value)
	}
	return r
}

// Get returns the amount of the named resource.
func (r Resources) Get(name string) int64 {
	switch name {
	case CPU:
		return r.MilliCPU
	case Memory:
		return r.MemoryBytes
	case EphemeralStorage:
		return r.EphemeralBytes
	case Pods:
		return r.Pods
	}
	if i, ok := r.find(name); ok {
		return r.Extended[i].Value
	}
	return 0
}

// With returns a copy in which the named resource has the given amount.
func (r Resources) With(name string, value int64) Resources {
	switch name {
	case CPU:
		r.MilliCPU = value
	case Memory:
		r.MemoryBytes = value
	case EphemeralStorage:
		r.EphemeralBytes = value
	case Pods:
		r.Pods = value
	default:
		i, ok := r.find(name)
		r.Extended = slices.Clone(r.Extended)
		switch {
		case ok && value == 0:
			r.Extended = slices.Delete(r.Extended, i, i+1)
		case ok:
			r.Extended[i].Value = value
		case value != 0:
			r.Extended = slices.Insert(r.Extended, i, Amount{name, value})
		}
		if len(r.Extended) == 0 {
			r.Extended = nil
		}
	}
	return r
}

func (r Resources) find(name string) (int, bool) {
	return slices.BinarySearchFunc(r.Extended, name, func(a Amount, n string) int { return strings.Compare(a.Name, n) })
}

// Add returns r + o.
func (r Resources) Add(o Resources) Resources {
	return combine(r, o, func(a, b int64) int64 { return a + b })
}

// Sub returns r − o; amounts may become negative.
func (r Resources) Sub(o Resources) Resources {
	return combine(r, o, func(a, b int64) int64 { return a - b })
}

// Max returns the greater amount of each resource.
func (r Resources) Max(o Resources) Resources {
	return combine(r, o, func(a, b int64) int64 { return max(a, b) })
}

// Min returns the smaller amount of each resource; a resource that one of the
// two does not mention has the amount 0 there.
func (r Resources) Min(o Resources) Resources {
	return combine(r, o, func(a, b int64) int64 { return min(a, b) })
}

func combine(a, b Resources, f func(a, b int64) int64) Resources {
	out := Resources{
		MilliCPU:       f(a.MilliCPU, b.MilliCPU),
		MemoryBytes:    f(a.MemoryBytes, b.MemoryBytes),
		EphemeralBytes: f(a.EphemeralBytes, b.EphemeralBytes),
		Pods:           f(a.Pods, b.Pods),
	}
	i, j := 0, 0
	for i < len(a.Extended) || j < len(b.Extended) {
		var name string
		var x, y int64
		switch {
		case j == len(b.Extended) || (i < len(a.Extended) && a.Extended[i].Name < b.Extended[j].Name):
			name, x = a.Extended[i].Name, a.Extended[i].Value
			i++
		case i == len(a.Extended) || a.Extended[i].Name > b.Extended[j].Name:
			name, y = b.Extended[j].Name, b.Extended[j].Value
			j++
		default:
			name, x, y = a.Extended[i].Name, a.Extended[i].Value, b.Extended[j].Value
			i++
			j++
		}
		if v := f(x, y); v != 0 {
			out.Extended = append(out.Extended, Amount{name, v})
		}
	}
	return out
}

// Fits reports whether every amount of r that is greater than zero is at most
// the amount in room. It follows kube-scheduler: a resource that is not asked
// for always fits, even where room is already overdrawn.
func (r Resources) Fits(room Resources) bool {
	_, short := r.Shortage(room)
	return !short
}

// Shortage returns the first resource (in the order of [Resources.Amounts]) of
// which r asks for more than room has.
func (r Resources) Shortage(room Resources) (Amount, bool) {
	for _, a := range r.Amounts() {
		if a.Value > 0 && a.Value > room.Get(a.Name) {
			return a, true
		}
	}
	return Amount{}, false
}

// IsZero reports whether no resource is mentioned.
func (r Resources) IsZero() bool {
	return r.MilliCPU == 0 && r.MemoryBytes == 0 && r.EphemeralBytes == 0 && r.Pods == 0 && len(r.Extended) == 0
}

// Equal reports whether both vectors hold the same amounts.
func (r Resources) Equal(o Resources) bool {
	return r.MilliCPU == o.MilliCPU && r.MemoryBytes == o.MemoryBytes && r.EphemeralBytes == o.EphemeralBytes &&
		r.Pods == o.Pods && slices.Equal(r.Extended, o.Extended)
}

// Amounts lists the resources that are not zero: cpu, memory,
// ephemeral-storage, pods, then the extended ones by name.
func (r Resources) Amounts() []Amount {
	out := make([]Amount, 0, 4+len(r.Extended))
	for _, a := range [...]Amount{{CPU, r.MilliCPU}, {Memory, r.MemoryBytes}, {EphemeralStorage, r.EphemeralBytes}, {Pods, r.Pods}} {
		if a.Value != 0 {
			out = append(out, a)
		}
	}
	return append(out, r.Extended...)
}

// String writes the vector for people, e.g. "cpu 1500m, memory 2Gi, pods 3".
func (r Resources) String() string {
	var b strings.Builder
	for _, a := range r.Amounts() {
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(a.String())
	}
	return b.String()
}

// String writes one amount for people, e.g. "memory 1536Mi".
func (a Amount) String() string { return a.Name + " " + a.Format() }

// Format writes the value alone in the unit usual for the resource.
func (a Amount) Format() string {
	switch {
	case a.Name == CPU:
		if a.Value%1000 == 0 {
			return strconv.FormatInt(a.Value/1000, 10)
		}
		return strconv.FormatInt(a.Value, 10) + "m"
	case a.Name == Memory || a.Name == EphemeralStorage || strings.HasPrefix(a.Name, "hugepages-"):
		return formatBytes(a.Value)
	default:
		return strconv.FormatInt(a.Value, 10)
	}
}

func formatBytes(n int64) string {
	for _, u := range [...]struct {
		shift uint
		name  string
	}{{40, "Ti"}, {30, "Gi"}, {20, "Mi"}, {10, "Ki"}} {
		if size := int64(1) << u.shift; n != 0 && n%size == 0 {
			return strconv.FormatInt(n/size, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}
