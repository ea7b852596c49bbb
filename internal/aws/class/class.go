// Package class turns an AWSNodeTemplate (and the inline form of it that a
// Provisioner may carry) or an EC2NodeClass into one Class: plain values that
// say how machines of a pool are launched.
//
// It may import api/aws, aws/family, aws/catalog, cloud and core; never the AWS
// SDK or Kubernetes clients. What always holds: a Class that was returned
// without an error is complete and consistent, as far as that can be told
// without asking AWS; and two objects that mean the same give the same Class,
// but for Ref and UID.
package class

import (
	"karpenter/internal/aws/family"
	"karpenter/internal/core/world"
)

// Class says how machines are launched.
type Class struct {
	Ref world.ClassRef
	// UID of the object; empty where it has none of its own.
	UID string

	// Family decides about user data and volumes.
	Family         string
	Subnets        Selector
	SecurityGroups Selector
	// Release are the published images that are wanted; the zero value where
	// Images, or the user's own launch template, says it.
	Release Release
	Images  Selector

	// InstanceProfile and Role are empty where the setting of the cluster
	// rules. For Role a profile is looked after.
	InstanceProfile string
	Role            string
	UserData        string
	// Kubelet is nil where the pool says it.
	Kubelet      *world.Kubelet
	Tags         map[string]string
	Metadata     Metadata
	BlockDevices []BlockDevice
	// RAID0 joins the disks that belong to the instance type into one that
	// holds pods' files.
	RAID0              bool
	DetailedMonitoring bool
	// PublicIP gives machines a public address, or none; nil leaves it to the
	// subnet.
	PublicIP *bool
	// Context is passed to EC2 Fleet as it is.
	Context string
	// LaunchTemplate names a template of the user, used unchanged; then none of
	// Family, Images, InstanceProfile, UserData, Metadata and BlockDevices says
	// anything.
	LaunchTemplate string
}

// Release is a version of the images that AWS publishes for a family.
type Release struct {
	Family string
	// Version is [family.Latest] or one of the family, such as v20240807.
	Version string
}

// IsZero reports whether no published image is wanted.
func (r Release) IsZero() bool { return r == Release{} }

// latest is the release that follows what AWS recommends.
func latest(name string) Release { return Release{name, family.Latest} }

// KubeletOf returns the settings of the kubelet for a pool with the given ones:
// the class wins where it has any.
func (c *Class) KubeletOf(pool world.Kubelet) world.Kubelet {
	if c.Kubelet != nil {
		return *c.Kubelet
	}
	return pool
}

// Metadata are the options of the instance metadata service. Empty and zero
// leave EC2's own default.
type Metadata struct {
	Endpoint string // enabled, disabled
	IPv6     string // enabled, disabled, or AsCluster
	HopLimit int64
	Tokens   string // required, optional
}

// AsCluster enables IPv6 in an IPv6 cluster, and disables it elsewhere.
const AsCluster = "as-cluster"

// generation is how the objects of one API generation are read.
type generation struct {
	// fields are the names of fields, where they are not those of an
	// AWSNodeTemplate.
	fields map[string]string
	// newer are the rules of v1 for capacity and names.
	newer bool
}

var generations = map[string]generation{
	"AWSNodeTemplate": {},
	"EC2NodeClass": {newer: true, fields: map[string]string{
		"subnetSelector":        "subnetSelectorTerms",
		"securityGroupSelector": "securityGroupSelectorTerms",
		"amiSelector":           "amiSelectorTerms",
	}},
}

// Newer reports whether the object is one of v1, whose machines are counted and
// named by other rules.
func (c *Class) Newer() bool { return generations[c.Ref.Kind].newer }

// Field is the path of a field of the object, given its name in an
// AWSNodeTemplate.
func (c *Class) Field(name string) string {
	if own, ok := generations[c.Ref.Kind].fields[name]; ok {
		name = own
	}
	return prefix(c.Ref) + name
}

// prefix is the path of the settings in the object.
func prefix(ref world.ClassRef) string {
	if ref.Inline != "" {
		return "spec.provider."
	}
	return "spec."
}
