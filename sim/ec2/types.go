package ec2

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"karpenter/internal/aws/catalog"
)

// DescribeInstanceTypesInput asks for instance types.
type DescribeInstanceTypesInput struct {
	Common
	Page
	Types   []string `query:"InstanceType"`
	Filters []Filter `query:"Filter"`
}

// DescribeInstanceTypesOutput lists instance types.
type DescribeInstanceTypesOutput struct {
	Response
	Types     Set[TypeInfo] `xml:"instanceTypeSet"`
	NextToken string        `xml:"nextToken,omitempty"`
}

// TypeInfo is an instance type.
type TypeInfo struct {
	Name              string       `xml:"instanceType"`
	CurrentGeneration bool         `xml:"currentGeneration"`
	FreeTier          bool         `xml:"freeTierEligible"`
	Markets           Set[string]  `xml:"supportedUsageClasses"`
	RootDevices       Set[string]  `xml:"supportedRootDeviceTypes"`
	Virtualization    Set[string]  `xml:"supportedVirtualizationTypes"`
	BareMetal         bool         `xml:"bareMetal"`
	Hypervisor        string       `xml:"hypervisor,omitempty"`
	Arch              Set[string]  `xml:"processorInfo>supportedArchitectures"`
	GHz               string       `xml:"processorInfo>sustainedClockSpeedInGhz,omitempty"`
	Manufacturer      string       `xml:"processorInfo>manufacturer,omitempty"`
	VCPU              int64        `xml:"vCpuInfo>defaultVCpus"`
	Memory            int64        `xml:"memoryInfo>sizeInMiB"`
	StorageSupported  bool         `xml:"instanceStorageSupported"`
	Storage           *StorageInfo `xml:"instanceStorageInfo"`
	EBS               EBSInfo      `xml:"ebsInfo"`
	Network           NetworkInfo  `xml:"networkInfo"`
	GPUs              *GPUInfo     `xml:"gpuInfo"`
	FPGAs             *FPGAInfo    `xml:"fpgaInfo"`
	Inference         *Inference   `xml:"inferenceAcceleratorInfo"`
	Neuron            *NeuronInfo  `xml:"neuronInfo"`
	Burstable         bool         `xml:"burstablePerformanceSupported"`

	// Row is the same as plain facts, for callers in process.
	Row *catalog.Row `xml:"-"`
}

// StorageInfo is the local storage of a type.
type StorageInfo struct {
	TotalGB    int64       `xml:"totalSizeInGB"`
	Disks      *Set[Disks] `xml:"disks"`
	NVMe       string      `xml:"nvmeSupport"`
	Encryption string      `xml:"encryptionSupport"`
}

// Disks are local disks of one kind.
type Disks struct {
	Count  int64  `xml:"count"`
	SizeGB int64  `xml:"sizeInGB"`
	Type   string `xml:"type"`
}

// EBSInfo is the connection of a type to volumes.
type EBSInfo struct {
	Optimized  string        `xml:"ebsOptimizedSupport"`
	Encryption string        `xml:"encryptionSupport"`
	Bandwidth  *EBSBandwidth `xml:"ebsOptimizedInfo"`
	NVMe       string        `xml:"nvmeSupport"`
	Volumes    int64         `xml:"maximumEbsAttachments,omitempty"`
	VolumeType string        `xml:"attachmentLimitType,omitempty"`
}

// EBSBandwidth is in Mbit/s.
type EBSBandwidth struct {
	Baseline int64 `xml:"baselineBandwidthInMbps"`
	Maximum  int64 `xml:"maximumBandwidthInMbps"`
}

// NetworkInfo is the network of a type.
type NetworkInfo struct {
	Performance         string           `xml:"networkPerformance"`
	MaxENIs             int64            `xml:"maximumNetworkInterfaces"`
	MaxCards            int64            `xml:"maximumNetworkCards"`
	DefaultCard         int64            `xml:"defaultNetworkCardIndex"`
	Cards               Set[NetworkCard] `xml:"networkCards"`
	IPv4PerENI          int64            `xml:"ipv4AddressesPerInterface"`
	IPv6PerENI          int64            `xml:"ipv6AddressesPerInterface"`
	IPv6                bool             `xml:"ipv6Supported"`
	ENA                 string           `xml:"enaSupport"`
	EFA                 bool             `xml:"efaSupported"`
	EncryptionInTransit bool             `xml:"encryptionInTransitSupported"`
}

// NetworkCard is a network card; bandwidth is in Gbit/s.
type NetworkCard struct {
	Index       int64  `xml:"networkCardIndex"`
	Performance string `xml:"networkPerformance"`
	MaxENIs     int64  `xml:"maximumNetworkInterfaces"`
	Baseline    string `xml:"baselineBandwidthInGbps,omitempty"`
	Peak        string `xml:"peakBandwidthInGbps,omitempty"`
}

// Accelerator is a GPU, an inference chip or a Neuron device.
type Accelerator struct {
	Name         string `xml:"name,omitempty"`
	Manufacturer string `xml:"manufacturer,omitempty"`
	Count        int64  `xml:"count"`
	MemoryMiB    int64  `xml:"memoryInfo>sizeInMiB"`
}

// GPUInfo lists the GPUs of a type.
type GPUInfo struct {
	GPUs  Set[Accelerator] `xml:"gpus"`
	Total int64            `xml:"totalGpuMemoryInMiB"`
}

// FPGAInfo lists the FPGAs of a type.
type FPGAInfo struct {
	FPGAs Set[Accelerator] `xml:"fpgas"`
}

// Inference lists the inference chips of a type. Its items are called member.
type Inference struct {
	Accelerators []Accelerator `xml:"accelerators>member"`
}

// NeuronInfo lists the Neuron devices of a type.
type NeuronInfo struct {
	Devices Set[Accelerator] `xml:"neuronDevices"`
	Total   int64            `xml:"totalNeuronDeviceMemoryInMiB"`
}

var typeFilters = attributes[*catalog.Row]{
	"instance-type":                                one(func(r *catalog.Row) string { return r.Name }),
	"processor-info.supported-architecture":        func(r *catalog.Row) []string { return r.Arch },
	"supported-virtualization-type":                one(func(*catalog.Row) string { return "hvm" }),
	"supported-usage-class":                        func(r *catalog.Row) []string { return r.Markets },
	"supported-root-device-type":                   one(func(*catalog.Row) string { return "ebs" }),
	"bare-metal":                                   one(func(r *catalog.Row) string { return strconv.FormatBool(r.BareMetal) }),
	"hypervisor":                                   one(func(r *catalog.Row) string { return r.Hypervisor }),
	"current-generation":                           one(func(*catalog.Row) string { return "true" }),
	"instance-storage-supported":                   one(func(r *catalog.Row) string { return strconv.FormatBool(r.LocalNVMeGB > 0) }),
	"vcpu-info.default-vcpus":                      one(func(r *catalog.Row) string { return strconv.FormatInt(r.VCPU, 10) }),
	"memory-info.size-in-mib":                      one(func(r *catalog.Row) string { return strconv.FormatInt(r.MemoryMiB, 10) }),
	"processor-info.manufacturer":                  one(func(r *catalog.Row) string { return r.CPUManufacturer }),
	"network-info.encryption-in-transit-supported": one(func(r *catalog.Row) string { return strconv.FormatBool(r.EncryptionInTransit) }),
}

func (in *DescribeInstanceTypesInput) do(c *Cloud) (*DescribeInstanceTypesOutput, error) {
	name := func(r *catalog.Row) string { return r.Name }
	if len(in.Types) > 0 && in.MaxResults != nil {
		return nil, errorf("InvalidParameterCombination", "The parameter instanceTypes cannot be used with the parameter maxResults")
	}
	if len(in.Types) > 100 {
		return nil, errorf("InvalidParameterValue", "The number of instance types (%d) exceeds the limit of 100.", len(in.Types))
	}
	part, next, err := listing[*catalog.Row]{
		items: pointers(c.world.Types), key: name, inOrder: true, filters: in.Filters, attributes: typeFilters, bounds: bounds{least: 5, most: 100, size: 100},
		named: []named[*catalog.Row]{{in.Types, name, "InvalidInstanceType", "following supplied instance type"}},
	}.page(in.Page)
	return &DescribeInstanceTypesOutput{NextToken: next, Types: each(part, typeInfo)}, err
}

func typeInfo(r *catalog.Row) TypeInfo {
	family, _, _ := strings.Cut(r.Name, ".")
	t := TypeInfo{
		Name: r.Name, CurrentGeneration: true, Markets: r.Markets, RootDevices: []string{"ebs"}, Virtualization: []string{"hvm"},
		BareMetal: r.BareMetal, Hypervisor: r.Hypervisor, Arch: r.Arch, Manufacturer: r.CPUManufacturer,
		VCPU: r.VCPU, Memory: r.MemoryMiB, StorageSupported: r.LocalNVMeGB > 0,
		EBS: EBSInfo{Optimized: "default", Encryption: "supported", NVMe: "required"},
		Network: NetworkInfo{
			Performance: performance(r.NetworkMbps), MaxENIs: r.MaxENIs, MaxCards: 1, IPv4PerENI: r.IPv4PerENI, IPv6PerENI: r.IPv4PerENI,
			Cards: []NetworkCard{{Performance: performance(r.NetworkMbps), MaxENIs: r.MaxENIs, Baseline: milli(r.NetworkMbps), Peak: milli(r.NetworkMbps)}},
			IPv6:  true, ENA: "required", EncryptionInTransit: r.EncryptionInTransit,
		},
		Burstable: strings.HasPrefix(family, "t") && !strings.HasPrefix(family, "trn"),
		Row:       r,
	}
	t.GHz = milli(r.SustainedGHzMilli)
	if r.Hypervisor == "xen" {
		t.EBS.NVMe, t.Network.ENA = "unsupported", "supported"
	}
	if r.EBSMbps > 0 {
		t.EBS.Bandwidth = &EBSBandwidth{Baseline: r.EBSMbps, Maximum: r.EBSMbps}
	}
	if r.LocalNVMeGB > 0 {
		t.Storage = &StorageInfo{TotalGB: r.LocalNVMeGB, NVMe: "required", Encryption: "required"}
		if r.LocalDisks > 0 {
			t.Storage.Disks = &Set[Disks]{{Count: r.LocalDisks, SizeGB: r.LocalNVMeGB / r.LocalDisks, Type: "ssd"}}
		}
	}
	if r.EBSVolumes > 0 {
		t.EBS.Volumes, t.EBS.VolumeType = r.EBSVolumes, "shared"
		if r.EBSDedicated {
			t.EBS.VolumeType = "dedicated"
		}
	}
	if r.FPGA {
		t.FPGAs = &FPGAInfo{FPGAs: []Accelerator{{Name: "Virtex UltraScale (VU9P)", Manufacturer: "Xilinx", Count: 1, MemoryMiB: 65536}}}
	}
	if len(r.GPUs) > 0 {
		list, total := accelerators(r.GPUs)
		t.GPUs = &GPUInfo{GPUs: list, Total: total}
	}
	// Chips of AWS are Neuron devices, whose maker EC2 does not name; those of
	// others are inference accelerators.
	if list, total := accelerators(r.Neuron); len(list) > 0 && list[0].Manufacturer == "" {
		t.Neuron = &NeuronInfo{Devices: list, Total: total}
	} else if len(list) > 0 {
		t.Inference = &Inference{Accelerators: list}
	}
	return t
}

func accelerators(in []catalog.Accelerator) (out Set[Accelerator], totalMiB int64) {
	for _, a := range in {
		out = append(out, Accelerator{Name: a.Name, Manufacturer: a.Manufacturer, Count: a.Count, MemoryMiB: a.MemoryMiB})
		totalMiB += a.Count * a.MemoryMiB
	}
	return out, totalMiB
}

// milli writes thousandths as a decimal number; "" for 0.
func milli(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(n)/1000, 'f', -1, 64)
}

func performance(mbps int64) string {
	if mbps == 0 {
		return "Moderate"
	}
	return fmt.Sprintf("Up to %s Gigabit", milli(mbps))
}

// DescribeInstanceTypeOfferingsInput asks where instance types are sold.
type DescribeInstanceTypeOfferingsInput struct {
	Common
	Page
	// LocationType is region (default), availability-zone or
	// availability-zone-id.
	LocationType string
	Filters      []Filter `query:"Filter"`
}

// Offering is an instance type at a location.
type Offering struct {
	Type         string `xml:"instanceType"`
	LocationType string `xml:"locationType"`
	Location     string `xml:"location"`
}

// DescribeInstanceTypeOfferingsOutput lists offerings.
type DescribeInstanceTypeOfferingsOutput struct {
	Response
	Offerings Set[Offering] `xml:"instanceTypeOfferingSet"`
	NextToken string        `xml:"nextToken,omitempty"`
}

// key is in the order of type and zone.
func (o Offer) key() string { return o.Type + "\x00" + o.Zone }

func (in *DescribeInstanceTypeOfferingsInput) do(c *Cloud) (*DescribeInstanceTypeOfferingsOutput, error) {
	location := map[string]func(string) string{
		"":                     func(string) string { return c.opt.Region },
		"region":               func(string) string { return c.opt.Region },
		"availability-zone":    func(z string) string { return z },
		"availability-zone-id": zoneID,
	}[in.LocationType]
	if location == nil {
		return nil, invalid("locationType", in.LocationType, "Expected region, availability-zone or availability-zone-id.")
	}
	kind := in.LocationType
	if kind == "" {
		kind = "region"
	}
	items := c.sold
	if kind == "region" {
		items = slices.CompactFunc(slices.Clone(items), func(a, b Offer) bool { return a.Type == b.Type })
	}
	part, next, err := listing[Offer]{
		items: items, key: Offer.key, inOrder: true, filters: in.Filters, bounds: bounds{least: 5, most: 1000, size: 1000},
		attributes: attributes[Offer]{
			"instance-type": one(func(o Offer) string { return o.Type }),
			"location":      one(func(o Offer) string { return location(o.Zone) }),
		},
	}.page(in.Page)
	return &DescribeInstanceTypeOfferingsOutput{NextToken: next, Offerings: each(part, func(o Offer) Offering {
		return Offering{Type: o.Type, LocationType: kind, Location: location(o.Zone)}
	})}, err
}
