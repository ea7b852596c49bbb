// Package label knows label keys and the algebra of requirements on them.
//
// It imports the standard library only. All functions are pure; a requirement
// is a subset of the values that a label may have, including "absent".
package label

// Label keys with a meaning to the scheduler or the cloud.
const (
	Zone         = "topology.kubernetes.io/zone"
	Region       = "topology.kubernetes.io/region"
	InstanceType = "node.kubernetes.io/instance-type"
	Arch         = "kubernetes.io/arch"
	OS           = "kubernetes.io/os"
	Hostname     = "kubernetes.io/hostname"

	CapacityType = "karpenter.sh/capacity-type"
	Provisioner  = "karpenter.sh/provisioner-name"
	NodePool     = "karpenter.sh/nodepool"
	Initialized  = "karpenter.sh/initialized"
	Registered   = "karpenter.sh/registered"
)

// Values of [CapacityType].
const (
	Spot     = "spot"
	OnDemand = "on-demand"
)
