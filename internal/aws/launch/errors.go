package launch

import (
	"fmt"
	"strings"
)

// TemplateGoneError: EC2 does not know the launch template (any more).
type TemplateGoneError struct {
	Name string
	Err  error
}

func (e *TemplateGoneError) Error() string {
	return fmt.Sprintf("launch template %q does not exist: %v", e.Name, e.Err)
}
func (e *TemplateGoneError) Unwrap() error { return e.Err }

// MismatchError: the token was used before, with another request.
type MismatchError struct{ Err error }

func (e *MismatchError) Error() string {
	return "the token was used for another request: " + e.Err.Error()
}
func (e *MismatchError) Unwrap() error { return e.Err }

// UnknownParameterError: SSM has no such public parameter, i.e. no image for
// this family, version and architecture.
type UnknownParameterError struct{ Name string }

func (e *UnknownParameterError) Error() string { return fmt.Sprintf("SSM has no parameter %q", e.Name) }

// UnknownProfileError: IAM has no such instance profile.
type UnknownProfileError struct{ Name string }

func (e *UnknownProfileError) Error() string {
	return fmt.Sprintf("IAM has no instance profile %q", e.Name)
}

// UnknownRoleError: IAM has no such role.
type UnknownRoleError struct{ Name string }

func (e *UnknownRoleError) Error() string { return fmt.Sprintf("IAM has no role %q", e.Name) }

// UnknownClusterError: EKS does not know the cluster; it may be another kind of
// cluster.
type UnknownClusterError struct{ Name string }

func (e *UnknownClusterError) Error() string { return fmt.Sprintf("EKS has no cluster %q", e.Name) }

// Tried are the calls that are tried out, and the reason of the condition that says
// that the right to make one is missing.
var Tried = []struct{ Right, Reason string }{
	{"ec2:CreateLaunchTemplate", "CreateLaunchTemplateAuthCheckFailed"},
	{"ec2:CreateFleet", "CreateFleetAuthCheckFailed"},
	{"ec2:RunInstances", "RunInstancesAuthCheckFailed"},
}

// Fleet error codes that say something about the offering, not about us.
var capacityCodes = map[string]bool{
	"InsufficientInstanceCapacity": true,
	"MaxSpotInstanceCountExceeded": true,
	"VcpuLimitExceeded":            true,
	"UnfulfillableCapacity":        true,
	"Unsupported":                  true,
	"InsufficientHostCapacity":     true,
	"InstanceLimitExceeded":        true,
}

// NoCapacity reports whether the offering of the refusal should be left alone
// for a while.
func (r Refusal) NoCapacity() bool { return capacityCodes[r.Code] }

// NoAddress reports whether the subnet of the refusal has no free address.
func (r Refusal) NoAddress() bool { return r.Code == "InsufficientFreeAddressesInSubnet" }

// TemplateGoneCode is the error code for a launch template that EC2 does not
// know.
const TemplateGoneCode = "InvalidLaunchTemplateName.NotFoundException"

// NoSpot reports whether the account may not use spot machines at all, as the
// role that EC2 uses for them is missing.
func (r Refusal) NoSpot() bool {
	return r.Code == "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
}

// NoProfile reports whether EC2 does not know the instance profile, or no role
// in it.
func (r Refusal) NoProfile() bool {
	return strings.HasPrefix(r.Code, "InvalidParameter") && strings.Contains(r.Message, "iamInstanceProfile")
}

// OtherRequestHelps reports whether a request for other offerings could
// succeed after this refusal.
func (r Refusal) OtherRequestHelps() bool {
	return r.NoCapacity() || r.NoAddress() || r.NoSpot() || r.Code == TemplateGoneCode
}
