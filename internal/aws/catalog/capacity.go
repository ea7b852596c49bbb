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
		MemoryBytes:    visibleMemory(r, in.VMMemoryOverheadPercent),
		EphemeralBytes: volume(in.Family, in.BlockDevices),
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

// visibleMemory is the memory that the operating system sees, in bytes: what
// the hypervisor keeps is rounded up to whole MiB.
func visibleMemory(r *Row, overhead float64) int64 {
	// Millionths keep floating-point noise from costing a MiB.
	micros := int64(math.Round(overhead * 1e6))
	kept := (r.MemoryMiB*micros + 999_999) / 1e6
	return max(0, r.MemoryMiB-kept) * mebi
}

// volume is the size of the volume that holds pods' files.
func volume(f Family, devices []BlockDevice) int64 {
	size := int64(0)
	for _, d := range devices {
		if f.EphemeralDevice == "" || (d.Name == f.EphemeralDevice && size == 0) {
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
func eniPods(r *Row) int64 { return r.MaxENIs*(r.IPv4PerENI-1) + 2 }

func pods(r *Row, in Input, k kubelet) int64 {
	n := int64(defaultPods)
	switch {
	case k.maxPods != nil:
		n = *k.maxPods
	case in.ENILimitedPodDensity:
		n = eniPods(r)
	}
	if k.podsPerCore > 0 && in.Family.PodsPerCore {
		n = min(n, k.podsPerCore*r.VCPU)
	}
	return n
}

// allocatable is the capacity less what kubelet keeps: for itself, for the
// system, and below the eviction threshold. It is never less than nothing.
func allocatable(r *Row, f Family, k kubelet, capacity quantity.Resources) quantity.Resources {
	memoryPods := capacity.Pods
	if f.ENIMemory {
		memoryPods = eniPods(r)
	}
	a := capacity
	for _, kept := range [...]quantity.Resources{
		k.kubeReserved.over(quantity.Resources{
			MilliCPU:       kubeCPU(r.VCPU * 1000),
			MemoryBytes:    (11*memoryPods + 255) * mebi,
			EphemeralBytes: gibi,
		}),
		k.systemReserved.over(quantity.Resources{MilliCPU: 100, MemoryBytes: 100 * mebi, EphemeralBytes: gibi}),
		{MemoryBytes: k.eviction(f, capacity.MemoryBytes)},
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
