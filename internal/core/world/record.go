package world

import (
	"time"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
)

// Record is the durable record of one machine: a NodeClaim.
type Record struct {
	Name string `json:"name"`
	// Token identifies the launch: the UID of the NodeClaim. It is the client
	// token of the cloud call and a tag of the instance.
	Token string `json:"token"`
	// Pool owns the record; empty for stand-alone claims.
	Pool     string    `json:"pool,omitempty"`
	PoolKind string    `json:"poolKind,omitempty"`
	Class    ClassRef  `json:"class"`
	Created  time.Time `json:"created"`
	// DeletedAt is the deletion timestamp of the NodeClaim.
	DeletedAt *time.Time `json:"deletedAt,omitempty"`

	Requirements  []label.Requirement `json:"requirements,omitempty"`
	Requests      quantity.Resources  `json:"requests"`
	Labels        map[string]string   `json:"labels,omitempty"`
	Annotations   map[string]string   `json:"annotations,omitempty"`
	Taints        []Taint             `json:"taints,omitempty"`
	StartupTaints []Taint             `json:"startupTaints,omitempty"`
	// Pods are the pods for which the machine was bought.
	Pods []ObjectName `json:"pods,omitempty"`

	// LaunchRequest is the prepared cloud call, stored before it is sent and
	// sent again byte for byte; empty until prepared.
	LaunchRequest string `json:"launchRequest,omitempty"`

	ProviderID  string             `json:"providerID,omitempty"`
	ImageID     string             `json:"imageID,omitempty"`
	NodeName    string             `json:"nodeName,omitempty"`
	Capacity    quantity.Resources `json:"capacity"`
	Allocatable quantity.Resources `json:"allocatable"`

	Launched    Condition `json:"launched"`
	Registered  Condition `json:"registered"`
	Initialized Condition `json:"initialized"`
	// InstanceTerminating: the cloud was asked to terminate the instance.
	InstanceTerminating bool `json:"instanceTerminating,omitempty"`
	// PodEvent is when a pod last came or went; nil: none has.
	PodEvent *time.Time `json:"podEvent,omitempty"`
	// Drifted: it differs from what its pool would buy now; the reason says how.
	Drifted Condition `json:"drifted,omitzero"`
	// TerminationGrace is how long its draining may take; nil = as long as it
	// takes.
	TerminationGrace *Duration `json:"terminationGrace,omitempty"`
	// Failures of attempts to replace it.
	Failures Failures `json:"failures,omitzero"`
	// Moved are pods that were moved to save money; some of them came here.
	Moved []Moved `json:"moved,omitempty"`
	// Expires is when the machine goes, whatever is on it; nil = never.
	Expires *time.Time `json:"expires,omitempty"`
	// Interrupted says why the cloud ends the machine, so that no pod may stay;
	// empty: it does not.
	Interrupted string `json:"interrupted,omitempty"`
	// Deadline is when draining ends whatever is left; nil = no deadline.
	Deadline *time.Time `json:"deadline,omitempty"`
}

// Moved says that so many pods of an owner were told to go, from that time on,
// to save money. Those that its owner makes first after that are the same pods
// at another place.
type Moved struct {
	Owner OwnerKey  `json:"owner"`
	At    time.Time `json:"at"`
	Pods  int       `json:"pods"`
}

// OwnerKey names the controller of a pod.
type OwnerKey struct {
	Namespace string `json:"namespace,omitempty"`
	Owner
}

// Failures counts what went wrong in a row, and when it last did.
type Failures struct {
	Count int       `json:"count"`
	Last  time.Time `json:"last"`
	Why   string    `json:"why,omitempty"`
}

// Condition is one condition of a record.
type Condition struct {
	// Status is True, False or Unknown; empty if never set.
	Status  string    `json:"status,omitempty"`
	Since   time.Time `json:"since"`
	Reason  string    `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"`
}

// True reports whether the condition holds.
func (c Condition) True() bool { return c.Status == "True" }
