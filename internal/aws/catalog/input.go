package catalog

import (
	"karpenter/internal/cloud"
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

	Family Family
	// BlockDevices are those of the class; empty means the family's defaults.
	BlockDevices []BlockDevice
	Kubelet      world.Kubelet

	// VMMemoryOverheadPercent is the fraction (0.075 = 7.5 %) of a type's
	// memory that its operating system does not see.
	VMMemoryOverheadPercent float64
	// PodENI adds branch network interfaces to the capacity.
	PodENI bool
	// ENILimitedPodDensity counts pods by network interfaces; otherwise a node
	// takes 110.
	ENILimitedPodDensity bool
}

// BlockDevice is a volume of a node.
type BlockDevice struct {
	Name string
	// Bytes is the size; 0 if the snapshot decides.
	Bytes int64
}
