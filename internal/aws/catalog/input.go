package catalog

import (
	"karpenter/internal/aws/family"
	"karpenter/internal/cloud"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

// Input is everything besides the rows that shapes the instance types of one
// pool.
type Input struct {
	Region string
	// Offered tells in which zones each type is offered, sorted by zone; from
	// DescribeInstanceTypeOfferings or [ZoneOfferings].
	Offered map[string][]string
	// Zones limits the offerings to these zones (those of the class's
	// subnets); nil means all.
	Zones  []string
	Prices Prices
	// Unavailable reports offerings that the cloud has refused lately; nil
	// means none.
	Unavailable func(cloud.OfferingKey) bool

	Family family.Family
	// BlockDevices are those of the class; empty means the family's defaults.
	BlockDevices []BlockDevice
	// RAID0: the disks of the type, joined, hold pods' files.
	RAID0   bool
	Kubelet world.Kubelet
	Rules   Rules

	// VMMemoryOverheadPercent is the fraction (0.075 = 7.5 %) of a type's
	// memory that its operating system does not see.
	VMMemoryOverheadPercent float64
	// PodENI adds branch network interfaces to the capacity.
	PodENI bool
	// ENILimitedPodDensity counts pods by network interfaces; otherwise a node
	// takes 110.
	ENILimitedPodDensity bool
	// ReservedENIs are network interfaces that do not carry pods.
	ReservedENIs int64
	// Observed tells how much memory nodes of a type were seen to have; nil
	// means that none was seen.
	Observed func(instanceType string) (Seen, bool)
}

// Seen is the least memory that a node of a type had.
type Seen struct{ CapacityBytes, AllocatableBytes int64 }

// BlockDevice is a volume of a node.
type BlockDevice struct {
	Name string
	// Bytes is the size; 0 if the snapshot decides.
	Bytes int64
	// Root: this one holds pods' files.
	Root bool
}

// Rules are what the generations of the API estimate differently.
type Rules struct {
	// System is kept for the system where the settings of the kubelet do not
	// say it.
	System quantity.Resources
	// SoftEviction: the soft threshold of memory lowers what pods can use,
	// where the family knows it. DiskEviction: that of the disk does.
	SoftEviction bool
	DiskEviction bool
	// ArmMiB of memory are not seen on arm64.
	ArmMiB int64
	// HidesOddTypes: types with programmable chips, and the family g2, whose GPUs
	// no current driver supports, are left out.
	HidesOddTypes bool
	// ObservedRaises: memory that was observed replaces the estimate also where
	// it is more.
	ObservedRaises bool
}

// Rules of the two generations.
var (
	OldRules = Rules{System: quantity.Resources{MilliCPU: 100, MemoryBytes: 100 * mebi, EphemeralBytes: gibi}, SoftEviction: true, HidesOddTypes: true}
	NewRules = Rules{DiskEviction: true, ArmMiB: 64, ObservedRaises: true}
)
