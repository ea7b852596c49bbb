// Package catalog turns facts about EC2 instance types into
// world.InstanceType: labels, capacity, overhead, offerings and prices. It also
// holds the embedded facts and prices that serve offline use.
//
// It is pure and knows neither the AWS SDK nor Kubernetes clients.
package catalog

import "karpenter/internal/core/quantity"

// Row holds the facts about one instance type, as DescribeInstanceTypes tells
// them. It is also the form of the embedded catalogue.
type Row struct {
	Name string `json:"name"`
	// Arch is the EC2 name: x86_64 or arm64.
	Arch       []string `json:"arch"`
	VCPU       int64    `json:"vcpu"`
	MemoryMiB  int64    `json:"memoryMiB"`
	Hypervisor string   `json:"hypervisor,omitempty"` // nitro, xen; empty on metal
	BareMetal  bool     `json:"bareMetal,omitempty"`
	// Markets are the supported usage classes: spot, on-demand.
	Markets []string `json:"markets"`

	// MaxENIs is how many network interfaces the default network card takes; the
	// network plug-in uses no other one for pods.
	MaxENIs     int64 `json:"maxENIs"`
	IPv4PerENI  int64 `json:"ipv4PerENI"`
	BranchENIs  int64 `json:"branchENIs,omitempty"` // 0 = no trunking
	NetworkMbps int64 `json:"networkMbps,omitempty"`
	EBSMbps     int64 `json:"ebsMbps,omitempty"`

	// EBSVolumes is how many EBS volumes can be attached; 0 if EC2 did not
	// tell. EBSDedicated: they do not share their number with other devices.
	EBSVolumes   int64 `json:"ebsVolumes,omitempty"`
	EBSDedicated bool  `json:"ebsDedicated,omitempty"`

	LocalNVMeGB         int64  `json:"localNVMeGB,omitempty"`
	LocalDisks          int64  `json:"localDisks,omitempty"` // 0 = not known
	EncryptionInTransit bool   `json:"encryptionInTransit,omitempty"`
	FPGA                bool   `json:"fpga,omitempty"`
	CPUManufacturer     string `json:"cpuManufacturer,omitempty"`
	SustainedGHzMilli   int64  `json:"sustainedGHzMilli,omitempty"`

	GPUs []Accelerator `json:"gpus,omitempty"`
	// Neuron are inference and training chips.
	Neuron []Accelerator `json:"neuron,omitempty"`

	// Stated takes the place of what is computed from the above, where somebody
	// knows better; nil: nobody does.
	Stated *Stated `json:"-"`
}

// Stated is what nodes of a type are known to offer. What kubelet settings say
// about the number of pods holds all the same.
type Stated struct {
	Capacity, Allocatable []quantity.Amount
	// Labels are further labels of the type.
	Labels map[string]string
	// Prices by market and zone; nil: the price lists hold. What has none is not
	// sold.
	Prices map[string]map[string]quantity.Price
}

// Accelerator is one kind of device of an instance type.
type Accelerator struct {
	Manufacturer string `json:"manufacturer,omitempty"` // as EC2 writes it: NVIDIA, AMD, Habana, AWS
	Name         string `json:"name,omitempty"`
	Count        int64  `json:"count"`
	MemoryMiB    int64  `json:"memoryMiB,omitempty"` // of one device
}
