package main

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/aws/amazon-vpc-resource-controller-k8s/pkg/aws/vpc"

	"karpenter/internal/aws/catalog"
)

// motoFacts is what moto knows.
type motoFacts struct {
	version string
	rows    []catalog.Row
	// zones maps a region to its zones, and those to the types offered there.
	zones map[string]map[string][]string
}

// instanceType is the part of a DescribeInstanceTypes answer that we use.
type instanceType struct {
	InstanceType          string
	BareMetal             bool
	Hypervisor            string
	SupportedUsageClasses []string
	VCpuInfo              struct{ DefaultVCpus int64 }
	MemoryInfo            memory
	ProcessorInfo         struct {
		Manufacturer             string
		SupportedArchitectures   []string
		SustainedClockSpeedInGhz float64
	}
	NetworkInfo struct {
		MaximumNetworkInterfaces     int64
		Ipv4AddressesPerInterface    int64
		EncryptionInTransitSupported bool
		DefaultNetworkCardIndex      int64
		NetworkCards                 []struct {
			NetworkCardIndex         int64
			MaximumNetworkInterfaces int64
			BaselineBandwidthInGbps  float64
		}
	}
	EbsInfo struct {
		EbsOptimizedInfo      struct{ BaselineBandwidthInMbps int64 }
		AttachmentLimitType   string
		MaximumEbsAttachments int64
	}
	InstanceStorageInfo struct {
		NvmeSupport   string
		TotalSizeInGB int64
		Disks         []struct{ Count int64 }
	}
	FpgaInfo                     *struct{}
	GpuInfo                      struct{ Gpus []device }
	NeuronInfo                   struct{ NeuronDevices []device }
	InferenceAcceleratorInfo     struct{ Accelerators []device }
	SupportedVirtualizationTypes []string
}

type memory struct{ SizeInMiB int64 }

type device struct {
	Manufacturer string
	Name         string
	Count        int64
	// LogicalGpuCount is what the machine sees: 1 for a part of a GPU, whose
	// Count is 0.
	LogicalGpuCount int64
	MemoryInfo      memory
}

func readMoto(dir string) (motoFacts, error) {
	f := motoFacts{zones: map[string]map[string][]string{}}
	init, err := os.ReadFile(filepath.Join(dir, "__init__.py"))
	if err != nil {
		return f, err
	}
	version := regexp.MustCompile(`__version__ = "([^"]+)"`).FindSubmatch(init)
	if version == nil {
		return f, fmt.Errorf("%s: no __version__", dir)
	}
	f.version = string(version[1])

	resources := filepath.Join(dir, "ec2", "resources")
	var types map[string]instanceType
	if err := readGzip(filepath.Join(resources, "instance_types.json.gz"), &types); err != nil {
		return f, err
	}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		if t := types[name]; ours(t) {
			f.rows = append(f.rows, row(t))
		}
	}
	files, err := filepath.Glob(filepath.Join(resources, "instance_type_offerings", "availability-zone", "*.json.gz"))
	if err != nil || len(files) == 0 {
		return f, fmt.Errorf("no offerings in %s", resources)
	}
	for _, file := range files {
		var offers []struct{ InstanceType, Location string }
		if err := readGzip(file, &offers); err != nil {
			return f, err
		}
		zones := map[string][]string{}
		for _, o := range offers {
			zones[o.Location] = append(zones[o.Location], o.InstanceType)
		}
		f.zones[strings.TrimSuffix(filepath.Base(file), ".json.gz")] = zones
	}
	return f, nil
}

// ours is the filter that a controller puts on DescribeInstanceTypes.
func ours(t instanceType) bool {
	return slices.Contains(t.SupportedVirtualizationTypes, "hvm") &&
		slices.ContainsFunc(t.ProcessorInfo.SupportedArchitectures, isArch)
}

func isArch(a string) bool { return a == "x86_64" || a == "arm64" }

func row(t instanceType) catalog.Row {
	r := catalog.Row{
		Name:                t.InstanceType,
		Arch:                t.ProcessorInfo.SupportedArchitectures,
		VCPU:                t.VCpuInfo.DefaultVCpus,
		MemoryMiB:           t.MemoryInfo.SizeInMiB,
		Hypervisor:          t.Hypervisor,
		BareMetal:           t.BareMetal,
		Markets:             slices.Sorted(slices.Values(t.SupportedUsageClasses)),
		MaxENIs:             t.NetworkInfo.MaximumNetworkInterfaces,
		IPv4PerENI:          t.NetworkInfo.Ipv4AddressesPerInterface,
		EBSMbps:             t.EbsInfo.EbsOptimizedInfo.BaselineBandwidthInMbps,
		EBSVolumes:          t.EbsInfo.MaximumEbsAttachments,
		EBSDedicated:        t.EbsInfo.AttachmentLimitType == "dedicated",
		EncryptionInTransit: t.NetworkInfo.EncryptionInTransitSupported,
		FPGA:                t.FpgaInfo != nil,
		CPUManufacturer:     t.ProcessorInfo.Manufacturer,
		SustainedGHzMilli:   int64(math.Round(t.ProcessorInfo.SustainedClockSpeedInGhz * 1000)),
		GPUs:                accelerators(t.GpuInfo.Gpus),
		Neuron:              accelerators(t.NeuronInfo.NeuronDevices),
	}
	for _, c := range t.NetworkInfo.NetworkCards {
		r.NetworkMbps += int64(math.Round(c.BaselineBandwidthInGbps * 1000))
		if c.NetworkCardIndex == t.NetworkInfo.DefaultNetworkCardIndex && c.MaximumNetworkInterfaces > 0 {
			r.MaxENIs = c.MaximumNetworkInterfaces
		}
	}
	if s := t.InstanceStorageInfo; s.NvmeSupport == "required" || s.NvmeSupport == "supported" {
		r.LocalNVMeGB = s.TotalSizeInGB
		for _, d := range s.Disks {
			r.LocalDisks += d.Count
		}
	}
	// The first chips are described as inference accelerators only.
	if len(r.Neuron) == 0 {
		r.Neuron = accelerators(t.InferenceAcceleratorInfo.Accelerators)
	}
	return r
}

func accelerators(devices []device) []catalog.Accelerator {
	var out []catalog.Accelerator
	for _, d := range devices {
		out = append(out, catalog.Accelerator{Manufacturer: d.Manufacturer, Name: d.Name, Count: max(d.Count, d.LogicalGpuCount), MemoryMiB: d.MemoryInfo.SizeInMiB})
	}
	return out
}

// addBranchENIs fills in the branch interfaces of the rows and returns those of
// types that have no row.
func addBranchENIs(rows []catalog.Row) map[string]int64 {
	others := map[string]int64{}
	for name, l := range vpc.Limits {
		if l.IsTrunkingCompatible && l.BranchInterface > 0 {
			others[name] = int64(l.BranchInterface)
		}
	}
	for i := range rows {
		rows[i].BranchENIs = others[rows[i].Name]
		delete(others, rows[i].Name)
	}
	return others
}

// limitsVersion is the version of the module that holds the branch interfaces.
func limitsVersion() string {
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		if strings.HasSuffix(m.Path, "/amazon-vpc-resource-controller-k8s") {
			return m.Version
		}
	}
	return ""
}

func readGzip(file string, into any) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if err := json.NewDecoder(z).Decode(into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}
