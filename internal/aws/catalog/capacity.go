package catalog

import (
	"math"

	"karpenter/internal/core/quantity"
)

// Names of devices in the capacity of a node.
const (
	nvidiaGPU = "nvidia.com/gpu"
	amdGPU    = "amd.com/gpu"
	gaudi     = "habana.ai/gaudi"
	neuron    = "aws.amazon.com/neuron"
	podENI    = "vpc.amazonaws.com/pod-eni"
)

const (
	mebi = 1 << 20
	gibi = 1 << 30

	// defaultVolume holds pods' files where the class does not say a size.
	defaultVolume = 20 * gibi
	// defaultPods is kubelet's own limit.
	defaultPods = 110
)

func capacityOf(r *Row, in Input, k kubelet) quantity.Resources {
	c := quantity.Resources{
		MilliCPU:       r.VCPU * 1000,
		MemoryBytes:    visibleMemory(r, in),
		EphemeralBytes: storage(r, in),
		Pods:           pods(r, in, k),
	}
	for _, g := range r.GPUs {
		switch g.Manufacturer {
		case "NVIDIA":
			c = c.With(nvidiaGPU, c.Get(nvidiaGPU)+g.Count)
		case "AMD":
			c = c.With(amdGPU, c.Get(amdGPU)+g.Count)
		case "Habana":
			c = c.With(gaudi, c.Get(gaudi)+g.Count)
		}
	}
	for _, a := range r.Neuron {
		// EC2 lists chips of others among the inference accelerators.
		if a.Manufacturer == "" || a.Manufacturer == "AWS" {
			c = c.With(neuron, c.Get(neuron)+a.Count)
		}
	}
	if in.PodENI {
		// The API does not tell, so rows that come from it say 0.
		c = c.With(podENI, max(r.BranchENIs, BranchENIs(r.Name)))
	}
	return c
}

// visibleMemory estimates the memory that the operating system sees, in bytes:
// what the hypervisor keeps is rounded up to whole MiB.
func visibleMemory(r *Row, in Input) int64 {
	size := r.MemoryMiB
	if arch(r.Arch) == "arm64" {
		size -= in.Rules.ArmMiB
	}
	// Millionths keep floating-point noise from costing a MiB.
	micros := int64(math.Round(in.VMMemoryOverheadPercent * 1e6))
	kept := (size*micros + 999_999) / 1e6
	return max(0, size-kept) * mebi
}

// storage is the size, in bytes, of the volume that holds pods' files.
func storage(r *Row, in Input) int64 {
	const gigabyte = 1e9
	if in.RAID0 && r.LocalNVMeGB > 0 {
		return r.LocalNVMeGB * gigabyte
	}
	size, device := int64(0), in.Family.Storage
	for _, d := range in.BlockDevices {
		switch {
		case d.Root && d.Bytes > 0:
			return d.Bytes
		case device == "" || (d.Name == device && size == 0):
			size = d.Bytes
		}
	}
	if size == 0 {
		return defaultVolume
	}
	return size
}

// eniPods is how many pods the network interfaces have addresses for: each
// interface keeps one address for itself, and two pods (kube-proxy and the
// network plug-in) use the host's.
func eniPods(r *Row, in Input) int64 {
	return max(0, r.MaxENIs-in.ReservedENIs)*(r.IPv4PerENI-1) + 2
}

func pods(r *Row, in Input, k kubelet) int64 {
	n := int64(defaultPods)
	switch {
	case k.maxPods != nil:
		n = *k.maxPods
	case in.ENILimitedPodDensity:
		n = eniPods(r, in)
	}
	if k.podsPerCore > 0 && in.Family.PodsPerCore {
		n = min(n, k.podsPerCore*r.VCPU)
	}
	return n
}

// allocatable is the capacity less what kubelet keeps: for itself, for the
// system, and below the eviction threshold. It is never less than nothing.
func allocatable(r *Row, in Input, k kubelet, capacity quantity.Resources) quantity.Resources {
	memoryPods := capacity.Pods
	if in.Family.ENIMemory {
		memoryPods = eniPods(r, in)
	}
	a := capacity
	for _, kept := range [...]quantity.Resources{
		k.kubeReserved.over(quantity.Resources{
			MilliCPU:       kubeCPU(r.VCPU * 1000),
			MemoryBytes:    (11*memoryPods + 255) * mebi,
			EphemeralBytes: gibi,
		}),
		k.systemReserved.over(in.Rules.System),
		k.eviction(in, capacity),
	} {
		a.MilliCPU = max(0, a.MilliCPU-kept.MilliCPU)
		a.MemoryBytes = max(0, a.MemoryBytes-kept.MemoryBytes)
		a.EphemeralBytes = max(0, a.EphemeralBytes-kept.EphemeralBytes)
	}
	return a
}

// state puts what is known in the place of what was computed.
func (k kubelet) state(computed quantity.Resources, known []quantity.Amount) quantity.Resources {
	for _, a := range known {
		if a.Name == quantity.Pods && (k.maxPods != nil || k.podsPerCore > 0) {
			continue
		}
		computed = computed.With(a.Name, a.Value)
	}
	return computed
}

// correct puts the memory that nodes of the type were seen to have in the place
// of the estimate.
func (in *Input) correct(r *Row, capacity, allocatable *quantity.Resources) {
	if in.Observed == nil {
		return
	}
	seen, ok := in.Observed(r.Name)
	if !ok {
		return
	}
	if more := seen.CapacityBytes - capacity.MemoryBytes; more < 0 || in.Rules.ObservedRaises {
		capacity.MemoryBytes += more
		allocatable.MemoryBytes += more
	}
	allocatable.MemoryBytes = max(0, min(allocatable.MemoryBytes, seen.AllocatableBytes))
}

// kubeCPU is the milli-CPU kept for kubelet, in falling steps: 6 % of the first
// core, 1 % of the second, 0.5 % of the next two, 0.25 % of the others.
func kubeCPU(milli int64) int64 {
	kept, from := int64(0), int64(0)
	for _, step := range [...]struct{ upTo, perMyriad int64 }{
		{1000, 600}, {2000, 100}, {4000, 50}, {math.MaxInt64, 25},
	} {
		kept += max(0, min(milli, step.upTo)-from) * step.perMyriad / 10_000
		from = step.upTo
	}
	return kept
}
