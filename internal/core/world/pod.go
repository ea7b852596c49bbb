package world

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
)

// Pod is a pod with everything resolved that a decision needs.
type Pod struct {
	ObjectName
	UID     string            `json:"uid,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	Created time.Time         `json:"created"`
	Owner   Owner             `json:"owner"`
	// Requests follow the rules of kube-scheduler (init containers, sidecars,
	// overhead, pod level) and include one unit of "pods".
	Requests quantity.Resources `json:"requests"`
	Priority int32              `json:"priority,omitempty"`

	// Selector is spec.nodeSelector: all must hold.
	Selector []label.Requirement `json:"selector,omitempty"`
	// Terms are the required node affinity: one of them must hold, if there
	// are any.
	Terms [][]label.Requirement `json:"terms,omitempty"`
	// Preferred are node-affinity preferences, as written.
	Preferred   []Preference `json:"preferred,omitempty"`
	Tolerations []Toleration `json:"tolerations,omitempty"`

	// Spread, Affinity and AntiAffinity are rules between pods, as written.
	Spread       []Spread  `json:"spread,omitempty"`
	Affinity     []PodTerm `json:"affinity,omitempty"`
	AntiAffinity []PodTerm `json:"antiAffinity,omitempty"`
	// HostPorts are the ports of the node that the pod takes.
	HostPorts []HostPort `json:"hostPorts,omitempty"`
	// Volumes is where the volumes can be reached; empty: everywhere.
	Volumes VolumeTerms `json:"volumes,omitempty"`
	// Attach lists the volumes that count against attach limits, sorted by
	// driver and volume.
	Attach []Attachment `json:"attach,omitempty"`

	// Refused says why this pod is not planned: it asks for something that is
	// not understood, or for something that does not exist. Empty: planned.
	Refused string `json:"refused,omitempty"`

	// Life, for draining and disruption.

	Node         string     `json:"node,omitempty"`      // where it is bound
	Nominated    string     `json:"nominated,omitempty"` // reserved by others on this node
	Finished     bool       `json:"finished,omitempty"`  // Succeeded or Failed
	DeletedAt    *time.Time `json:"deletedAt,omitempty"` // when its grace ends
	GraceSeconds int64      `json:"graceSeconds,omitempty"`
	// MovedAt is when it came here because another machine was removed to save
	// money; nil: it did not.
	MovedAt *time.Time `json:"movedAt,omitempty"`
	// DoNotEvict: a person asked that it not be moved (either generation's
	// annotation). DoNotEvictUntil is the same for a time; see [Pod.Protected].
	DoNotEvict      bool       `json:"doNotEvict,omitempty"`
	DoNotEvictUntil *time.Time `json:"doNotEvictUntil,omitempty"`
	// Misread is what such an annotation says that means nothing; empty: nothing.
	Misread string `json:"misread,omitempty"`
	// Critical: priority class system-cluster-critical or system-node-critical.
	Critical     bool   `json:"critical,omitempty"`
	DeletionCost string `json:"deletionCost,omitempty"`
}

// Preference is a node-affinity term that should hold, with its weight 1–100.
type Preference struct {
	Weight int32               `json:"weight"`
	Term   []label.Requirement `json:"term"`
}

// IsDaemon reports whether a DaemonSet owns the pod.
func (p *Pod) IsDaemon() bool { return p.Owner.Kind == "DaemonSet" }

// IsStatic reports whether the kubelet made the pod from a file.
func (p *Pod) IsStatic() bool { return p.Owner.Kind == "Node" }

// Protected reports whether a person has asked that the pod not be moved now.
func (p *Pod) Protected(now time.Time) bool {
	return p.DoNotEvict || p.DoNotEvictUntil != nil && now.Before(*p.DoNotEvictUntil)
}

// ProtectedUntil is when the protection of the pod ends by itself; nil: it does
// not, or there is none.
func (p *Pod) ProtectedUntil() *time.Time {
	if p.DoNotEvict {
		return nil
	}
	return p.DoNotEvictUntil
}

// Leaves reports whether the pod, which is listed at the node, needs another
// place when the node goes. One for which room is only kept has no place yet.
func (p *Pod) Leaves(n *Node) bool {
	return p.Node == n.Name && !p.IsDaemon() && !p.IsStatic() && !p.Finished && p.DeletedAt == nil
}

// SortPending puts pods in the order in which they are tried: most cpu first,
// then most memory, then oldest, then UID and name.
func SortPending(pods []Pod) {
	slices.SortFunc(pods, func(a, b Pod) int {
		return cmp.Or(
			cmp.Compare(b.Requests.MilliCPU, a.Requests.MilliCPU),
			cmp.Compare(b.Requests.MemoryBytes, a.Requests.MemoryBytes),
			a.Created.Compare(b.Created),
			strings.Compare(a.UID, b.UID),
			a.Compare(b.ObjectName),
		)
	})
}
