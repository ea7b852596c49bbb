package awsapi

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"karpenter/internal/aws/catalog"
	"karpenter/internal/aws/class"
)

// InstanceTypes returns the facts about all types that a node can be, sorted
// by name.
func (a *API) InstanceTypes(ctx context.Context) ([]catalog.Row, error) {
	pages := ec2.NewDescribeInstanceTypesPaginator(a.ec2, &ec2.DescribeInstanceTypesInput{
		MaxResults: aws.Int32(100),
		Filters: filters([]class.Filter{
			{Name: "supported-virtualization-type", Values: []string{"hvm"}},
			{Name: "processor-info.supported-architecture", Values: []string{"x86_64", "arm64"}},
		}),
	})
	var rows []catalog.Row
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, kind("asking EC2 for instance types", err)
		}
		for i := range page.InstanceTypes {
			rows = append(rows, row(&page.InstanceTypes[i]))
		}
	}
	slices.SortFunc(rows, func(a, b catalog.Row) int { return strings.Compare(a.Name, b.Name) })
	return rows, nil
}

// Offerings tells in which zones of the region each instance type is offered,
// sorted.
func (a *API) Offerings(ctx context.Context) (map[string][]string, error) {
	pages := ec2.NewDescribeInstanceTypeOfferingsPaginator(a.ec2, &ec2.DescribeInstanceTypeOfferingsInput{
		LocationType: types.LocationTypeAvailabilityZone,
		MaxResults:   aws.Int32(1000),
	})
	zones := map[string][]string{}
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, kind("asking EC2 where instance types are offered", err)
		}
		for _, o := range page.InstanceTypeOfferings {
			zones[string(o.InstanceType)] = append(zones[string(o.InstanceType)], aws.ToString(o.Location))
		}
	}
	for _, z := range zones {
		slices.Sort(z)
	}
	return zones, nil
}

func row(t *types.InstanceTypeInfo) catalog.Row {
	r := catalog.Row{
		Name:       string(t.InstanceType),
		Hypervisor: string(t.Hypervisor),
		BareMetal:  aws.ToBool(t.BareMetal),
		Markets:    texts(t.SupportedUsageClasses),
		BranchENIs: catalog.BranchENIs(string(t.InstanceType)),
		FPGA:       t.FpgaInfo != nil,
	}
	slices.Sort(r.Markets)
	if p := t.ProcessorInfo; p != nil {
		r.Arch = texts(p.SupportedArchitectures)
		r.CPUManufacturer = aws.ToString(p.Manufacturer)
		r.SustainedGHzMilli = int64(math.Round(aws.ToFloat64(p.SustainedClockSpeedInGhz) * 1000))
	}
	if t.VCpuInfo != nil {
		r.VCPU = int64(aws.ToInt32(t.VCpuInfo.DefaultVCpus))
	}
	if t.MemoryInfo != nil {
		r.MemoryMiB = aws.ToInt64(t.MemoryInfo.SizeInMiB)
	}
	if s := t.InstanceStorageInfo; s != nil && s.NvmeSupport != types.EphemeralNvmeSupportUnsupported && s.NvmeSupport != "" {
		r.LocalNVMeGB = aws.ToInt64(s.TotalSizeInGB)
		for _, d := range s.Disks {
			r.LocalDisks += int64(aws.ToInt32(d.Count))
		}
	}
	if e := t.EbsInfo; e != nil {
		if e.EbsOptimizedInfo != nil {
			r.EBSMbps = int64(aws.ToInt32(e.EbsOptimizedInfo.BaselineBandwidthInMbps))
		}
		r.EBSVolumes, r.EBSDedicated = int64(aws.ToInt32(e.MaximumEbsAttachments)), e.AttachmentLimitType == types.AttachmentLimitTypeDedicated
	}
	network(&r, t.NetworkInfo)
	devices(&r, t)
	return r
}

func network(r *catalog.Row, n *types.NetworkInfo) {
	if n == nil {
		return
	}
	r.MaxENIs = int64(aws.ToInt32(n.MaximumNetworkInterfaces))
	r.IPv4PerENI = int64(aws.ToInt32(n.Ipv4AddressesPerInterface))
	r.EncryptionInTransit = aws.ToBool(n.EncryptionInTransitSupported)
	for _, c := range n.NetworkCards {
		r.NetworkMbps += int64(math.Round(aws.ToFloat64(c.BaselineBandwidthInGbps) * 1000))
		if most := aws.ToInt32(c.MaximumNetworkInterfaces); most > 0 && aws.ToInt32(c.NetworkCardIndex) == aws.ToInt32(n.DefaultNetworkCardIndex) {
			r.MaxENIs = int64(most)
		}
	}
}

func devices(r *catalog.Row, t *types.InstanceTypeInfo) {
	if t.GpuInfo != nil {
		for _, g := range t.GpuInfo.Gpus {
			d := catalog.Accelerator{Manufacturer: aws.ToString(g.Manufacturer), Name: aws.ToString(g.Name)}
			d.Count = int64(max(aws.ToInt32(g.Count), aws.ToInt32(g.LogicalGpuCount)))
			if g.MemoryInfo != nil {
				d.MemoryMiB = int64(aws.ToInt32(g.MemoryInfo.SizeInMiB))
			}
			r.GPUs = append(r.GPUs, d)
		}
	}
	if t.NeuronInfo != nil {
		for _, n := range t.NeuronInfo.NeuronDevices {
			d := catalog.Accelerator{Name: aws.ToString(n.Name), Count: int64(aws.ToInt32(n.Count))}
			if n.MemoryInfo != nil {
				d.MemoryMiB = int64(aws.ToInt32(n.MemoryInfo.SizeInMiB))
			}
			r.Neuron = append(r.Neuron, d)
		}
	}
	// The first chips are described as inference accelerators only.
	if len(r.Neuron) == 0 && t.InferenceAcceleratorInfo != nil {
		for _, n := range t.InferenceAcceleratorInfo.Accelerators {
			d := catalog.Accelerator{Manufacturer: aws.ToString(n.Manufacturer), Name: aws.ToString(n.Name), Count: int64(aws.ToInt32(n.Count))}
			if n.MemoryInfo != nil {
				d.MemoryMiB = int64(aws.ToInt32(n.MemoryInfo.SizeInMiB))
			}
			r.Neuron = append(r.Neuron, d)
		}
	}
}

func texts[T ~string](list []T) []string {
	out := make([]string, 0, len(list))
	for _, v := range list {
		out = append(out, string(v))
	}
	return out
}

func filters(list []class.Filter) []types.Filter {
	out := make([]types.Filter, 0, len(list))
	for _, f := range list {
		out = append(out, types.Filter{Name: aws.String(f.Name), Values: f.Values})
	}
	return out
}
