package ec2

import (
	"fmt"
	"net/http"
)

// Error is an answer of the service that is not a success.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

func errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// status is the HTTP status that goes with a code.
func (e *Error) status() int {
	switch e.Code {
	case "RequestLimitExceeded", "ServiceUnavailable", "Unavailable":
		return http.StatusServiceUnavailable
	case "NoSuchEntity":
		return http.StatusNotFound
	case "EntityAlreadyExists", "DeleteConflict", "LimitExceeded":
		return http.StatusConflict
	case "InternalError", "InternalFailure":
		return http.StatusInternalServerError
	case "UnauthorizedOperation", "AccessDenied", "AuthFailure", "OptInRequired":
		return http.StatusForbidden
	case "DryRunOperation":
		return http.StatusPreconditionFailed
	}
	return http.StatusBadRequest
}

// unauthorized is the code of a refusal for lack of rights.
func unauthorized(service string) string {
	switch service {
	case "ec2":
		return "UnauthorizedOperation"
	case "sts", "iam":
		return "AccessDenied"
	}
	return "AccessDeniedException"
}

// throttling is the code of a refusal for too many calls.
func throttling(service string) string {
	switch service {
	case "ec2":
		return "RequestLimitExceeded"
	case "sts", "iam":
		return "Throttling"
	}
	return "ThrottlingException"
}

// Throttled reports whether a code asks the caller to be slower.
func Throttled(code string) bool {
	switch code {
	case "RequestLimitExceeded", "Throttling", "ThrottlingException", "ThrottledException", "RequestThrottled", "RequestThrottledException",
		"TooManyRequestsException", "EC2ThrottledException", "SlowDown", "BandwidthLimitExceeded", "LimitExceededException", "PriorRequestNotComplete":
		return true
	}
	return false
}

func missing(parameter string) *Error {
	return errorf("MissingParameter", "The request must contain the parameter %s", parameter)
}

func invalid(parameter, value, why string) *Error {
	return errorf("InvalidParameterValue", "Value (%s) for parameter %s is invalid. %s", value, parameter, why)
}

// messages are the usual words of errors that faults ask for by code alone.
var messages = map[string]string{
	"InsufficientInstanceCapacity":                "We currently do not have sufficient capacity in the Availability Zone you requested. Our system will be working on provisioning additional capacity.",
	"MaxSpotInstanceCountExceeded":                "Max spot instance count exceeded",
	"VcpuLimitExceeded":                           "You have requested more vCPU capacity than your current vCPU limit allows for the instance bucket that the specified instance type belongs to.",
	"UnfulfillableCapacity":                       "Unable to fulfill capacity due to your request configuration. Please adjust your request and try again.",
	"Unsupported":                                 "Your requested instance type is not supported in your requested Availability Zone.",
	"InsufficientFreeAddressesInSubnet":           "There are not enough free addresses in the subnet to satisfy the requested number of instances.",
	"RequestLimitExceeded":                        "Request limit exceeded.",
	"InternalError":                               "An internal error has occurred",
	"UnauthorizedOperation":                       "You are not authorized to perform this operation.",
	"InstanceLimitExceeded":                       "You have requested more instances than your current instance limit allows for the specified instance type.",
	"SpotMaxPriceTooLow":                          "Your Spot request price is lower than the minimum required Spot request fulfillment price.",
	"InvalidLaunchTemplateName.NotFoundException": "The specified launch template does not exist.",
}
