// Package class turns AWSNodeTemplate (and the inline form of it that a
// Provisioner may carry) into one Class: plain values that say how machines of
// a pool are launched.
//
// It may import api/aws, cloud and core; never the AWS SDK or Kubernetes
// clients. What always holds: a Class that was returned without an error is
// complete and consistent, as far as that can be told without asking AWS.
package class

import (
	"strings"

	"karpenter/internal/core/world"
)

// AL2 is the default image family, Amazon Linux 2.
const AL2 = "AL2"

// Class says how machines are launched.
type Class struct {
	Ref world.ClassRef

	// Family decides about image, user data and devices.
	Family         string
	Subnets        Selector
	SecurityGroups Selector
	// Images is empty where the family's own image is wanted.
	Images Selector

	// InstanceProfile is empty where the setting of the cluster rules.
	InstanceProfile    string
	UserData           string
	Tags               map[string]string
	Metadata           Metadata
	BlockDevices       []BlockDevice
	DetailedMonitoring bool
	// Context is passed to EC2 Fleet as it is.
	Context string
	// LaunchTemplate names a template of the user, used unchanged; then none of
	// Family, Images, InstanceProfile, UserData, Metadata and BlockDevices says
	// anything.
	LaunchTemplate string
}

// Selector finds EC2 objects: all filters must match.
type Selector struct {
	// Field is where the selector was written, e.g. spec.subnetSelector.
	Field   string
	Filters []Filter
}

// IsZero reports whether nothing is selected.
func (s Selector) IsZero() bool { return len(s.Filters) == 0 }

// String writes the filters in words for messages.
func (s Selector) String() string {
	words := make([]string, 0, len(s.Filters))
	for _, f := range s.Filters {
		words = append(words, f.String())
	}
	return strings.Join(words, " and ")
}

// Filter is a filter of an EC2 Describe call: one of the values must match.
type Filter struct {
	Name   string
	Values []string
}

// String writes name=value,value.
func (f Filter) String() string { return f.Name + "=" + strings.Join(f.Values, ",") }

// Owner is the name of a filter of images that EC2 takes as a list of owners:
// account ids, self, amazon.
const Owner = "owner"

// Metadata are the options of the instance metadata service. Empty and zero
// mean that EC2's own default holds.
type Metadata struct {
	// Default: the object says nothing at all about the service, so that our
	// defaults hold.
	Default  bool
	Endpoint string // enabled, disabled
	IPv6     string // enabled, disabled
	HopLimit int64
	Tokens   string // required, optional
}
