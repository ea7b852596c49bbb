// Package cloud is the boundary to the cloud, in words that hold for any
// provider: launch requests, instances, offerings and kinds of error.
//
// It imports core/world and below. Fleets, launch templates, subnets, security
// groups and images exist only under internal/aws.
package cloud

import (
	"fmt"
	"strings"
	"time"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

// LaunchRequest asks for one machine.
type LaunchRequest struct {
	// Claim is the name of the NodeClaim; Token its UID, which identifies the
	// launch: the same token never makes a second machine.
	Claim string
	Token string
	Pool  string
	// PoolLabel is the label key under which the pool's name is written
	// (label.Provisioner or label.NodePool).
	PoolLabel string
	Class     world.ClassRef
	Kubelet   world.Kubelet
	// Requirements limit instance type, zone, capacity type and everything
	// else; Requests is the least that the machine must offer, daemons
	// included.
	Requirements  []label.Requirement
	Requests      quantity.Resources
	Labels        map[string]string
	Taints        []world.Taint
	StartupTaints []world.Taint
}

// Prepared is a launch that can be sent, and sent again, without looking
// anything up. It is text so that it can be stored on the NodeClaim.
type Prepared string

// Instance is a machine as the cloud knows it.
type Instance struct {
	ID         string
	ProviderID string
	Type       string
	Zone       string
	// CapacityType is label.Spot or label.OnDemand.
	CapacityType string
	ImageID      string
	// InstanceProfile is what the machine may do in the cloud.
	InstanceProfile string
	// Subnet and SecurityGroups are of use to the provider only.
	Subnet         string
	SecurityGroups []string
	PrivateDNS     string
	State          State
	Launched       time.Time
	// Token and Claim are read from the instance's tags; empty if absent.
	Token string
	Claim string
	Tags  map[string]string
	// Labels, Capacity and Allocatable are what the instance type promises.
	// They are set by Launch, and by Describe where the type is known.
	Labels      map[string]string
	Capacity    quantity.Resources
	Allocatable quantity.Resources
}

// State of an instance.
type State string

// The states of an instance.
const (
	Pending      State = "pending"
	Running      State = "running"
	ShuttingDown State = "shutting-down"
	Terminated   State = "terminated"
	Stopping     State = "stopping"
	Stopped      State = "stopped"
)

// Gone reports whether the instance will never run again.
func (s State) Gone() bool { return s == ShuttingDown || s == Terminated }

// OfferingKey names an offering.
type OfferingKey struct {
	Type         string
	Zone         string
	CapacityType string
}

// String writes capacityType:type:zone.
func (k OfferingKey) String() string { return k.CapacityType + ":" + k.Type + ":" + k.Zone }

// NoCapacityError: every offering of the request was refused. The record is
// given up; the next plan is made without the refused offerings.
type NoCapacityError struct {
	Refused []OfferingKey
	Detail  string
}

func (e *NoCapacityError) Error() string {
	if len(e.Refused) == 0 {
		return "no capacity: " + e.Detail
	}
	keys := make([]string, 0, 5)
	for _, k := range e.Refused[:min(len(e.Refused), 5)] {
		keys = append(keys, k.String())
	}
	if more := len(e.Refused) - len(keys); more > 0 {
		keys = append(keys, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("no capacity: %s (refused: %s)", e.Detail, strings.Join(keys, ", "))
}

// RefusedError: the cloud has answered that it launches nothing, for a reason
// that no other offering would change. The answer belongs to the token, so the
// record is given up.
type RefusedError struct{ Detail string }

func (e *RefusedError) Error() string { return "the cloud launched nothing: " + e.Detail }

// ThrottledError: the cloud asks us to be slower. The same call is repeated
// later: After that time where it is not 0, so that those who wait come one
// after the other.
type ThrottledError struct {
	Err   error
	After time.Duration
}

func (e *ThrottledError) Error() string { return "throttled by the cloud: " + e.Err.Error() }
func (e *ThrottledError) Unwrap() error { return e.Err }

// NotYetError: something that was made a moment ago cannot be used everywhere
// yet. The same call is repeated After that time.
type NotYetError struct {
	Err   error
	After time.Duration
}

func (e *NotYetError) Error() string { return "not yet: " + e.Err.Error() }
func (e *NotYetError) Unwrap() error { return e.Err }

// ForbiddenError: we lack a right. Waiting does not help; somebody must give it.
type ForbiddenError struct{ Err error }

func (e *ForbiddenError) Error() string { return e.Err.Error() }
func (e *ForbiddenError) Unwrap() error { return e.Err }

// MissingRightError: it was tried out, without effect, and a right that launching
// needs is missing. Reason is the check in one word.
type MissingRightError struct {
	Right, Reason string
	Err           error
}

func (e *MissingRightError) Error() string {
	return fmt.Sprintf("the right %s is missing for the controller, or does not cover what this class asks for: give it (%v)", e.Right, e.Err)
}
func (e *MissingRightError) Unwrap() error { return e.Err }

// RewrittenError: the launch was not sent, as it goes together with others now.
// What is prepared instead must be written down, and then launched.
type RewrittenError struct{ Prepared Prepared }

func (e *RewrittenError) Error() string { return "the launch goes together with others now" }

// BadClassError: the class cannot be used as it is; waiting does not help,
// changing the object does. Field says where, Problem what and what to do.
type BadClassError struct {
	Class   world.ClassRef
	Field   string
	Problem string
}

func (e *BadClassError) Error() string {
	return fmt.Sprintf("%s %q: %s: %s", e.Class.Kind, e.Class.Name, e.Field, e.Problem)
}

// NotFoundError: the cloud does not know the instance (any more).
type NotFoundError struct{ ID string }

func (e *NotFoundError) Error() string { return fmt.Sprintf("instance %q not found", e.ID) }
