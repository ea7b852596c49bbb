// Package lifecycle decides what happens next to one machine, from the written
// intent to buy it to the removal of its last trace.
//
// It imports core/world and below. [Next] leads a record up (launch, register,
// initialise, mark as empty), [Drain] leads it down, [Garbage] compares what
// the cloud has with what is written down. All three are functions of their
// arguments: they may be asked again at any moment, after any crash, and
// answer what is still to do. A Step that was carried out by half is therefore
// finished by the next one.
package lifecycle

import (
	"slices"
	"time"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

// Keys on Nodes that have a meaning in the life of a machine, in both API
// generations.
const (
	// DoNotSyncTaints on a Node, set to "true" by its boot script: the taints
	// are on it already.
	DoNotSyncTaints = "karpenter.sh/do-not-sync-taints"
	// EmptySince holds, in RFC 3339, when the last pod that counts went.
	EmptySince = "karpenter.sh/emptiness-timestamp"
	// ExcludeFromBalancers keeps load balancers from sending to the Node.
	ExcludeFromBalancers = "node.kubernetes.io/exclude-from-external-load-balancers"
)

// Taints in the life of a machine.
var (
	// Unregistered is on a Node from boot until it is registered.
	Unregistered = world.Taint{Key: "karpenter.sh/unregistered", Effect: world.NoExecute}
	// Disrupted is on a Node that is being removed.
	Disrupted = world.Taint{Key: "karpenter.sh/disrupted", Effect: world.NoSchedule}
	// Cordoned is what Kubernetes puts on a Node with spec.unschedulable.
	Cordoned = world.Taint{Key: "node.kubernetes.io/unschedulable", Effect: world.NoSchedule}
)

// Poll intervals, where nothing else says when to look again.
const (
	// Recheck is how often a machine is looked at though nothing happened.
	Recheck = time.Minute
	// Settled is the same for a machine that is usable: its changes are all told,
	// and it has moments of its own (emptiness, quiet, expiry, drift).
	Settled = 30 * time.Minute
	// NominationPoll is how often nominations for a node that is not usable yet
	// are looked at.
	NominationPoll = 500 * time.Millisecond
	// DrainPoll is how often pods that must go are looked at.
	DrainPoll = time.Second
	// InstancePoll is how often the cloud is asked about an instance that ends.
	InstancePoll = 5 * time.Second
)

// Node is a Node object as it is, taints of booting included.
type Node struct {
	Name        string
	ProviderID  string
	Created     time.Time
	Labels      map[string]string
	Annotations map[string]string
	Taints      []world.Taint
	// Held: it carries our finalizer. Owned: its owner reference is right.
	Held, Owned   bool
	Unschedulable bool
	Ready         bool
	Allocatable   quantity.Resources
	DeletedAt     *time.Time
	// Pods are bound here, sorted by name.
	Pods []world.Pod
}

func (n *Node) registered() bool  { return n.Labels[label.Registered] == "true" }
func (n *Node) initialized() bool { return n.Labels[label.Initialized] == "true" }
func (n *Node) has(t world.Taint) bool {
	return slices.ContainsFunc(n.Taints, func(o world.Taint) bool { return same(t, o) })
}

// same reports whether two taints are the same entry on a Node; its value may
// differ.
func same(a, b world.Taint) bool { return a.Key == b.Key && a.Effect == b.Effect }

// NodePatch is what to change on a Node, in one write.
type NodePatch struct {
	Labels          map[string]string // to set
	Annotations     map[string]string // to set
	DropAnnotations []string
	AddTaints       []world.Taint // to add, or to give this value
	DropTaints      []world.Taint
	Hold            bool // add our finalizer
	Own             bool // put the owner reference right
	Cordon          bool // spec.unschedulable
}

// IsZero reports whether there is nothing to change.
func (p *NodePatch) IsZero() bool {
	return len(p.Labels)+len(p.Annotations)+len(p.DropAnnotations)+len(p.AddTaints)+len(p.DropTaints) == 0 &&
		!p.Hold && !p.Own && !p.Cordon
}

func (p *NodePatch) label(key, value string) {
	if p.Labels == nil {
		p.Labels = map[string]string{}
	}
	p.Labels[key] = value
}

func (p *NodePatch) annotate(key, value string) {
	if p.Annotations == nil {
		p.Annotations = map[string]string{}
	}
	p.Annotations[key] = value
}

// Condition of a record that is to be set.
type Condition struct {
	Type    ConditionType
	Status  string // True, False or Unknown; empty: it is taken away
	Reason  string
	Message string
}

// ConditionType names a condition of a record.
type ConditionType string

// The conditions that this package sets.
const (
	Launched            ConditionType = "Launched"
	Registered          ConditionType = "Registered"
	Initialized         ConditionType = "Initialized"
	Drained             ConditionType = "Drained"
	VolumesDetached     ConditionType = "VolumesDetached"
	InstanceTerminating ConditionType = "InstanceTerminating"
	Consolidatable      ConditionType = "Consolidatable"
	Drifted             ConditionType = "Drifted"
)

// Values of a condition.
const (
	True    = "True"
	False   = "False"
	Unknown = "Unknown"
)

// HeldBack is the reason of a Launched condition that is Unknown because the
// launch waits for its turn.
const HeldBack = "Throttled"

func holds(t ConditionType) Condition { return Condition{Type: t, Status: True, Reason: string(t)} }

// Event is something a person should see on the Node, or on the record where
// there is no Node.
type Event struct {
	Warning bool
	Reason  string
	Message string
}

// Why a record is deleted; also the value of the metric label "reason".
const (
	LaunchTimeout        = "launch_timeout"
	RegistrationTimeout  = "registration_timeout"
	LaunchRefused        = "launch_refused" // the condition tells why; the next two are the common ones
	InsufficientCapacity = "insufficient_capacity"
	ClassNotReady        = "nodeclass_not_ready"
	GarbageCollected     = "garbage_collected"
	Expired              = "expired" // older than the record allows
	Interrupted          = "interruption"
)
