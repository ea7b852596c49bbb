package world

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
)

// Node is a place for pods that exists or is on its way: a Node, a NodeClaim
// whose machine has not joined yet, or both.
type Node struct {
	// Name is the name of the Node; while none has joined, of the NodeClaim.
	Name string `json:"name"`
	// Claim is the NodeClaim behind it; empty on foreign nodes.
	Claim string `json:"claim,omitempty"`
	// Pool is the owning pool; empty on foreign nodes and stand-alone claims.
	Pool       string            `json:"pool,omitempty"`
	PoolKind   string            `json:"poolKind,omitempty"`
	ProviderID string            `json:"providerID,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	// Annotations hold what people wrote on the node that decisions look at.
	Annotations map[string]string `json:"annotations,omitempty"`
	// Choices are the labels that are not decided yet, by key: those that differ
	// between the machines that an unlaunched claim may become. They are not in
	// Labels.
	Choices []Choice `json:"choices,omitempty"`
	// Taints that a pod must tolerate. While the node is not initialised the
	// taints of booting and the startup taints are left out.
	Taints []Taint `json:"taints,omitempty"`
	// Allocatable is what the node reports, or what its instance type promises
	// as long as it reports nothing.
	Allocatable quantity.Resources `json:"allocatable"`
	Capacity    quantity.Resources `json:"capacity"`
	Created     time.Time          `json:"created"`
	// AttachLimits caps the number of different volumes per CSI driver; a
	// driver that is not listed has no limit.
	AttachLimits []quantity.Amount `json:"attachLimits,omitempty"`

	Joined      bool `json:"joined,omitempty"`      // a Node object exists
	Ready       bool `json:"ready,omitempty"`       // its Ready condition is True
	Registered  bool `json:"registered,omitempty"`  // labels and taints put right
	Initialized bool `json:"initialized,omitempty"` // fully usable
	// Deleting: on its way out, or chosen to be; takes no pods, and its pods
	// need a place elsewhere.
	Deleting bool `json:"deleting,omitempty"`
	// Unschedulable is spec.unschedulable.
	Unschedulable bool `json:"unschedulable,omitempty"`
	// Disruption is the method by which the node was chosen to go (an intent is
	// written down); empty if it was not chosen.
	Disruption string `json:"disruption,omitempty"`
	// Drifted says how the machine differs from what its pool would buy now, and
	// DriftedSince since when it does; empty and nil: it does not.
	Drifted      string     `json:"drifted,omitempty"`
	DriftedSince *time.Time `json:"driftedSince,omitempty"`
	// Bounded: once it goes, what still runs on it after a time goes with it.
	Bounded bool `json:"bounded,omitempty"`
	// Failures of attempts to replace it.
	Failures Failures `json:"failures,omitzero"`
	// EmptySince is when the last pod that counts went; nil while in use.
	EmptySince *time.Time `json:"emptySince,omitempty"`
	// PodEvent is when a pod last came or went, or the machine became usable; nil:
	// not since it was created.
	PodEvent *time.Time `json:"podEvent,omitempty"`
	// Unused: no pod has come since it became usable, as far as anybody noted.
	Unused bool `json:"unused,omitempty"`
	// NominatedUntil: before this time pods are expected that were planned here.
	NominatedUntil *time.Time `json:"nominatedUntil,omitempty"`

	// Pods that are bound here or for which room is kept here (pods planned
	// for this node and pods that others nominated), sorted by name.
	Pods []Pod `json:"pods,omitempty"`
}

// Choice is a label whose value is still open.
type Choice struct {
	Key    string   `json:"key"`
	Values []string `json:"values"`
	// Absent: the node may also come without the label.
	Absent bool `json:"absent,omitempty"`
}

// Allows reports whether the requirement, which is on the choice's key, holds
// for every outcome, and whether it holds for some.
func (c Choice) Allows(r label.Requirement) (always, ever bool) {
	always = !c.Absent || r.Allows("", false)
	ever = c.Absent && r.Allows("", false)
	for _, v := range c.Values {
		ok := r.Allows(v, true)
		always, ever = always && ok, ever || ok
	}
	return always, ever
}

// Requested returns the sum of the requests of the pods that take room.
func (n *Node) Requested() quantity.Resources {
	var sum quantity.Resources
	for i := range n.Pods {
		if !n.Pods[i].Finished {
			sum = sum.Add(n.Pods[i].Requests)
		}
	}
	return sum
}

// SortNodes puts nodes in the order of a snapshot: initialised first, then by
// name.
func SortNodes(nodes []Node) {
	slices.SortFunc(nodes, func(a, b Node) int {
		if a.Initialized != b.Initialized {
			if a.Initialized {
				return -1
			}
			return 1
		}
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Claim, b.Claim))
	})
}
