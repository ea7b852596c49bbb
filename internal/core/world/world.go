// Package world is the hub model: what the autoscaler knows about a cluster
// and its cloud, in plain values for people. It is the form of snapshots,
// dumps and offline input.
//
// It imports the standard library and its siblings quantity, label and reason.
// What always holds: slices are in a fixed order, nothing points back to where
// it was read from, and everything that needs a look-up (volumes, owners,
// namespaces, images) was resolved before a value of this package was made.
package world

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
)

// Snapshot is the input of every decision. It is immutable once built.
type Snapshot struct {
	// Version counts snapshots; it is for logs and never decides anything.
	Version uint64 `json:"version,omitempty"`
	// Pools are sorted by weight, greatest first, then by name.
	Pools []Pool `json:"pools"`
	// Nodes are sorted: initialised first, then by name.
	Nodes []Node `json:"nodes,omitempty"`
	// Pending are the pods that want a place, in the order in which they are
	// tried (see [SortPending]).
	Pending []Pod `json:"pending,omitempty"`
	// Daemons are the DaemonSets, sorted by namespace and name.
	Daemons []Daemon `json:"daemons,omitempty"`
	// Catalogs holds what each pool can buy, by [Pool.Catalog].
	Catalogs map[CatalogKey]Catalog `json:"catalogs,omitempty"`
	Budgets  []PodBudget            `json:"budgets,omitempty"`
	Policy   Policy                 `json:"policy"`
}

// CatalogKey names a catalogue: the class and everything else of a pool that
// changes what its instance types offer (kubelet settings).
type CatalogKey string

// Policy holds differences of behaviour that are not a property of one pool.
type Policy struct {
	// MachineCost is added to the price of every machine when plans are
	// compared (root volume, daemons, noise).
	MachineCost quantity.Price `json:"machineCost,omitempty"`
	// TieToleranceMicros: plans whose prices differ by at most this many
	// millionths count as equally cheap; then fewer machines win.
	TieToleranceMicros int64 `json:"tieToleranceMicros,omitempty"`
	// PreferenceMicros is how much dearer, in millionths, a plan may become by
	// following preferences.
	PreferenceMicros int64 `json:"preferenceMicros,omitempty"`
	// RelaxMinValues: a machine may be planned with fewer different values than
	// [label.Requirement] MinValues asks for, as many as there are; otherwise the
	// pod waits.
	RelaxMinValues bool `json:"relaxMinValues,omitempty"`
	// SpotToSpot is [Disruption.SpotToSpot] of the pools that may replace spot
	// machines by others at all; 0 = none does.
	SpotToSpot int `json:"spotToSpot,omitempty"`
}

// DefaultPolicy returns the policy of an installation that sets nothing.
func DefaultPolicy() Policy {
	return Policy{MachineCost: 2000, TieToleranceMicros: 10_000, PreferenceMicros: 10_000}
}

// ObjectName is a namespaced name.
type ObjectName struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String writes namespace/name, or the name alone for cluster-scoped objects.
func (n ObjectName) String() string {
	if n.Namespace == "" {
		return n.Name
	}
	return n.Namespace + "/" + n.Name
}

// Compare orders by namespace, then name.
func (n ObjectName) Compare(o ObjectName) int {
	if c := strings.Compare(n.Namespace, o.Namespace); c != 0 {
		return c
	}
	return strings.Compare(n.Name, o.Name)
}

// Owner is the controller of a pod, as far as decisions need it.
type Owner struct {
	Kind string `json:"kind,omitempty"`
	Name string `json:"name,omitempty"`
}

// Daemon is a DaemonSet: what one of its pods asks of a node.
type Daemon struct {
	ObjectName
	// Template holds requests, selectors and tolerations of a pod of the set,
	// with the tolerations that the DaemonSet controller adds.
	Template Pod `json:"template"`
}

// PodBudget is a PodDisruptionBudget.
type PodBudget struct {
	ObjectName
	Selector LabelSelector `json:"selector"`
	// Allowed is status.disruptionsAllowed.
	Allowed int32 `json:"allowed"`
	// Never: it can not allow anything, however many of its pods are well.
	Never bool `json:"never,omitempty"`
}

// LabelSelector is a metav1.LabelSelector with everything written as
// requirements on pod labels. Nothing selects nothing, an empty list selects
// everything.
type LabelSelector struct {
	Nothing      bool                `json:"nothing,omitempty"`
	Requirements []label.Requirement `json:"requirements,omitempty"`
}

// Catalog is what one pool can buy.
type Catalog struct {
	Region string `json:"region,omitempty"`
	// Types are sorted by name.
	Types []InstanceType `json:"types"`
	// Trouble says why there is no catalogue; then Types is empty and no pool
	// that uses it can buy.
	Trouble string `json:"trouble,omitempty"`
}

// InstanceType is a kind of machine.
type InstanceType struct {
	Name string `json:"name"`
	// Labels are what every node of the type carries, except zone and capacity
	// type, which are a matter of the offering. A well-known key that is not
	// here is absent on such nodes.
	Labels      map[string]string  `json:"labels"`
	Capacity    quantity.Resources `json:"capacity"`
	Allocatable quantity.Resources `json:"allocatable"`
	// AttachLimits is what [Node.AttachLimits] will be on such nodes.
	AttachLimits []quantity.Amount `json:"attachLimits,omitempty"`
	// Offerings are sorted by zone, then capacity type.
	Offerings []Offering `json:"offerings"`
}

// Counts is what a machine of the type counts for against a limit on the
// resource.
func (t *InstanceType) Counts(resource string) int64 {
	if resource == quantity.Nodes {
		return 1
	}
	return t.Capacity.Get(resource)
}

// Offering is a place and a market where an instance type can be bought.
type Offering struct {
	Zone         string         `json:"zone"`
	CapacityType string         `json:"capacityType"`
	Price        quantity.Price `json:"price"`
	// Available is false while the cloud has said that it has none left.
	Available bool `json:"available"`
}

// Effect of a taint.
type Effect string

// The effects of a taint.
const (
	NoSchedule       Effect = "NoSchedule"
	PreferNoSchedule Effect = "PreferNoSchedule"
	NoExecute        Effect = "NoExecute"
)

// Taint keeps pods off a node unless they tolerate it.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect Effect `json:"effect"`
}

// String writes key=value:effect.
func (t Taint) String() string {
	s := t.Key
	if t.Value != "" {
		s += "=" + t.Value
	}
	return s + ":" + string(t.Effect)
}

// Toleration lets a pod run in spite of taints. Op is Exists or Equal (the
// default); an empty key with Exists matches every key, an empty effect every
// effect.
type Toleration struct {
	Key    string `json:"key,omitempty"`
	Op     string `json:"operator,omitempty"`
	Value  string `json:"value,omitempty"`
	Effect Effect `json:"effect,omitempty"`
}

// Tolerates reports whether the toleration covers the taint, by the rules of
// kube-scheduler.
func (t Toleration) Tolerates(taint Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect {
		return false
	}
	if t.Key != "" && t.Key != taint.Key {
		return false
	}
	switch t.Op {
	case "Exists":
		return true
	case "", "Equal":
		return t.Key != "" && t.Value == taint.Value
	}
	return false
}

// Tolerated reports whether one of the tolerations covers the taint.
func Tolerated(taint Taint, by []Toleration) bool {
	return slices.ContainsFunc(by, func(t Toleration) bool { return t.Tolerates(taint) })
}

// FirstUntolerated returns the first taint with effect NoSchedule or NoExecute
// that none of the tolerations covers.
func FirstUntolerated(taints []Taint, by []Toleration) (Taint, bool) {
	for _, t := range taints {
		if t.Effect != PreferNoSchedule && !Tolerated(t, by) {
			return t, true
		}
	}
	return Taint{}, false
}

// Duration is a time.Duration that is written as text ("30s") in JSON.
type Duration struct{ time.Duration }

// MarshalJSON writes the duration as text.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON reads the form that MarshalJSON writes.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	v, err := time.ParseDuration(s)
	d.Duration = v
	return err
}
