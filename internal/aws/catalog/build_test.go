package catalog

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"karpenter/internal/aws/family"
	"karpenter/internal/cloud"
	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

// usual is a pool of AL2 nodes in us-west-2 with default settings.
func usual(change ...func(*Input)) Input {
	al2, _ := family.Named("")
	in := Input{
		Region:                  "us-west-2",
		Offered:                 ZoneOfferings("us-west-2"),
		Prices:                  EmbeddedPrices("us-west-2"),
		Family:                  al2,
		VMMemoryOverheadPercent: 0.075,
		ENILimitedPodDensity:    true,
		Rules:                   OldRules,
	}
	for _, c := range change {
		c(&in)
	}
	return in
}

func ofFamily(name string) func(*Input) {
	return func(in *Input) { in.Family, _ = family.Named(name) }
}

func kubeletOf(k world.Kubelet) func(*Input) { return func(in *Input) { in.Kubelet = k } }

func row(t *testing.T, name string) Row {
	t.Helper()
	rows := Embedded()
	i := slices.IndexFunc(rows, func(r Row) bool { return r.Name == name })
	if i < 0 {
		t.Fatalf("no embedded row %s", name)
	}
	return rows[i]
}

func buildOne(t *testing.T, name string, in Input) world.InstanceType {
	t.Helper()
	types, err := Build([]Row{row(t, name)}, in)
	if err != nil {
		t.Fatal(err)
	}
	if len(types) != 1 {
		t.Fatalf("%s: %d types", name, len(types))
	}
	return types[0]
}

func TestAllocatableOfDefaultSettings(t *testing.T) {
	for name, want := range map[string]quantity.Resources{
		"m5.xlarge":    {MilliCPU: 3820, MemoryBytes: 14062 * mebi, EphemeralBytes: 18 * gibi, Pods: 58},
		"m6a.xlarge":   {MilliCPU: 3820, MemoryBytes: 14062 * mebi, EphemeralBytes: 18 * gibi, Pods: 58},
		"a1.medium":    {MilliCPU: 840, MemoryBytes: 1351 * mebi, EphemeralBytes: 18 * gibi, Pods: 8},
		"t3.large":     {MilliCPU: 1830, MemoryBytes: 6737 * mebi, EphemeralBytes: 18 * gibi, Pods: 35},
		"g4dn.8xlarge": quantity.Resources{MilliCPU: 31750, MemoryBytes: 120148 * mebi, EphemeralBytes: 18 * gibi, Pods: 58}.With(nvidiaGPU, 1),
	} {
		if got := buildOne(t, name, usual()).Allocatable; !got.Equal(want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

func TestCapacity(t *testing.T) {
	cores := func(n int32) world.Kubelet { return world.Kubelet{PodsPerCore: &n} }
	limit := func(n int32) world.Kubelet { return world.Kubelet{MaxPods: &n} }
	noDensity := func(in *Input) { in.ENILimitedPodDensity = false }
	eni := func(in *Input) { in.PodENI = true }
	disks := func(d ...BlockDevice) func(*Input) { return func(in *Input) { in.BlockDevices = d } }
	const pods, disk = quantity.Pods, quantity.EphemeralStorage
	for _, c := range []struct {
		what     string
		typ      string
		in       Input
		resource string
		want     int64
	}{
		{"memory less 7.5 %", "m5.xlarge", usual(), quantity.Memory, 15155 * mebi},
		{"cpu", "m5.xlarge", usual(), quantity.CPU, 4000},
		{"pods by interfaces", "m5.xlarge", usual(), pods, 58},
		{"pods without density", "m5.xlarge", usual(noDensity), pods, 110},
		{"maxPods wins", "m5.xlarge", usual(kubeletOf(limit(20)), noDensity), pods, 20},
		{"podsPerCore", "m5.xlarge", usual(kubeletOf(cores(5))), pods, 20},
		{"podsPerCore above", "m5.xlarge", usual(kubeletOf(cores(50))), pods, 58},
		{"podsPerCore 0", "m5.xlarge", usual(kubeletOf(cores(0))), pods, 58},
		{"podsPerCore unknown to Bottlerocket", "m5.xlarge", usual(ofFamily("Bottlerocket"), kubeletOf(cores(5))), pods, 58},
		{"branch interfaces", "m5.xlarge", usual(eni), podENI, 18},
		{"branch interfaces off", "m5.xlarge", usual(), podENI, 0},
		{"no trunking", "t3.large", usual(eni), podENI, 0},
		{"amd", "g4ad.16xlarge", usual(), amdGPU, 4},
		{"habana", "dl1.24xlarge", usual(), gaudi, 8},
		{"part of a GPU", "g6f.large", usual(), nvidiaGPU, 1},
		{"inferentia", "inf1.24xlarge", usual(), neuron, 16},
		{"trainium", "trn1.32xlarge", usual(), neuron, 16},
		{"not a neuron chip", "dl2q.24xlarge", usual(), neuron, 0},

		{"no devices", "m5.xlarge", usual(), disk, 20 * gibi},
		{"ephemeral device", "m5.xlarge", usual(disks(BlockDevice{Name: "/dev/xvda", Bytes: 30 * gibi}, BlockDevice{Name: "/dev/xvdb", Bytes: 50 * gibi})), disk, 30 * gibi},
		{"ephemeral device not named", "m5.xlarge", usual(disks(BlockDevice{Name: "/dev/sdb", Bytes: 50 * gibi})), disk, 20 * gibi},
		{"snapshot decides", "m5.xlarge", usual(disks(BlockDevice{Name: "/dev/xvda"})), disk, 20 * gibi},
		{"Bottlerocket data volume", "m5.xlarge", usual(ofFamily("Bottlerocket"), disks(BlockDevice{Name: "/dev/xvda", Bytes: 4 * gibi}, BlockDevice{Name: "/dev/xvdb", Bytes: 50 * gibi})), disk, 50 * gibi},
		{"Ubuntu", "m5.xlarge", usual(ofFamily("Ubuntu"), disks(BlockDevice{Name: "/dev/sda1", Bytes: 40 * gibi})), disk, 40 * gibi},
		{"Custom takes the last", "m5.xlarge", usual(ofFamily("Custom"), disks(BlockDevice{Name: "/dev/a", Bytes: 30 * gibi}, BlockDevice{Name: "/dev/b", Bytes: 50 * gibi})), disk, 50 * gibi},
		{"Custom, last from snapshot", "m5.xlarge", usual(ofFamily("Custom"), disks(BlockDevice{Name: "/dev/a", Bytes: 30 * gibi}, BlockDevice{Name: "/dev/b"})), disk, 20 * gibi},
	} {
		if got := buildOne(t, c.typ, c.in).Capacity.Get(c.resource); got != c.want {
			t.Errorf("%s: got %d, want %d", c.what, got, c.want)
		}
	}
}

func TestMemoryOverheadIsExact(t *testing.T) {
	// 7.5 % of 8000 MiB is 600 MiB; floating point makes it a little more,
	// which must not cost one MiB.
	for overhead, want := range map[float64]int64{0.075: 7400, 0: 8000, 0.07: 7440, 1: 0} {
		if got := visibleMemory(&Row{MemoryMiB: 8000}, Input{VMMemoryOverheadPercent: overhead}); got != want*mebi {
			t.Errorf("%v: got %d MiB, want %d", overhead, got/mebi, want)
		}
	}
}

func TestReservedMemoryCountsPodsByFamily(t *testing.T) {
	twenty := int32(20)
	k := kubeletOf(world.Kubelet{MaxPods: &twenty})
	for name, pods := range map[string]int64{"AL2": 58, "Ubuntu": 58, "Custom": 58, "Bottlerocket": 20, "AL2023": 20} {
		got := buildOne(t, "m5.xlarge", usual(ofFamily(name), k)).Allocatable.MemoryBytes / mebi
		if want := 15155 - (11*pods + 255) - 100 - 100; got != want {
			t.Errorf("%s: got %d MiB, want %d", name, got, want)
		}
	}
}

func TestKubeletSettings(t *testing.T) {
	const memory, base = quantity.Memory, 15155 * mebi
	kept := int64(893+100) * mebi // kubelet and system, by default
	signal := func(s string) map[string]string { return map[string]string{memoryAvailable: s} }
	for _, c := range []struct {
		what     string
		in       Input
		resource string
		want     int64
	}{
		{"kubeReserved cpu only", usual(kubeletOf(world.Kubelet{KubeReserved: map[string]string{"cpu": "2"}})), quantity.CPU, 1900},
		{"… leaves memory", usual(kubeletOf(world.Kubelet{KubeReserved: map[string]string{"cpu": "2"}})), memory, 14062 * mebi},
		{"systemReserved memory", usual(kubeletOf(world.Kubelet{SystemReserved: map[string]string{"memory": "1Gi", "pid": "100"}})), memory, 14062*mebi + 100*mebi - gibi},
		{"systemReserved storage", usual(kubeletOf(world.Kubelet{SystemReserved: map[string]string{"ephemeral-storage": "0"}})), quantity.EphemeralStorage, 19 * gibi},
		{"more than there is", usual(kubeletOf(world.Kubelet{SystemReserved: map[string]string{"memory": "900T"}, KubeReserved: map[string]string{"memory": "900T"}})), memory, 0},
		{"other signals", usual(kubeletOf(world.Kubelet{EvictionHard: map[string]string{"nodefs.available": "10%"}})), memory, 14062 * mebi},
		{"hard", usual(kubeletOf(world.Kubelet{EvictionHard: signal("500Mi")})), memory, base - kept - 500*mebi},
		{"hard less than default", usual(kubeletOf(world.Kubelet{EvictionHard: signal("50Mi")})), memory, base - kept - 50*mebi},
		{"hard percentage", usual(kubeletOf(world.Kubelet{EvictionHard: signal("10%")})), memory, base - kept - (base+9)/10},
		{"hard off", usual(kubeletOf(world.Kubelet{EvictionHard: signal("100%")})), memory, base - kept},
		{"soft", usual(kubeletOf(world.Kubelet{EvictionSoft: signal("500Mi")})), memory, base - kept - 500*mebi},
		{"soft greater", usual(kubeletOf(world.Kubelet{EvictionHard: signal("200Mi"), EvictionSoft: signal("500Mi")})), memory, base - kept - 500*mebi},
		{"hard greater", usual(kubeletOf(world.Kubelet{EvictionHard: signal("700Mi"), EvictionSoft: signal("500Mi")})), memory, base - kept - 700*mebi},
		{"soft unknown to Bottlerocket", usual(ofFamily("Bottlerocket"), kubeletOf(world.Kubelet{EvictionSoft: signal("500Mi")})), memory, 14062 * mebi},
	} {
		if got := buildOne(t, "m5.xlarge", c.in).Allocatable.Get(c.resource); got != c.want {
			t.Errorf("%s: got %d, want %d", c.what, got, c.want)
		}
	}
}

func TestMalformedKubeletSettingsNameTheField(t *testing.T) {
	minus, none := int32(-1), int32(0)
	for want, k := range map[string]world.Kubelet{
		`kubeletConfiguration.maxPods: -1 is negative: set 0 or more, or leave it out`:                                                          {MaxPods: &minus},
		`kubeletConfiguration.maxPods: 0 leaves no room for pods: set 1 or more, or leave it out`:                                               {MaxPods: &none},
		`kubeletConfiguration.podsPerCore: -1 is negative: set 0 or more, or leave it out`:                                                      {PodsPerCore: &minus},
		`kubeletConfiguration.kubeReserved[memory]: "12x" is not a quantity: write a number with a unit, such as 500m, 200Mi or 1Gi`:            {KubeReserved: map[string]string{"memory": "12x"}},
		`kubeletConfiguration.systemReserved[cpu]: "-1" is negative: set 0 or more`:                                                             {SystemReserved: map[string]string{"cpu": "-1"}},
		`kubeletConfiguration.kubeReserved[cpu]: "1e-99999999" is not a quantity: write a number with a unit, such as 500m, 200Mi or 1Gi`:       {KubeReserved: map[string]string{"cpu": "1e-99999999"}},
		`kubeletConfiguration.kubeReserved[memory]: "1e99" is more than any machine has: set a smaller amount`:                                  {KubeReserved: map[string]string{"memory": "1e99"}},
		`kubeletConfiguration.systemReserved[disk]: not a resource that can be reserved: use cpu, memory, ephemeral-storage or pid`:             {SystemReserved: map[string]string{"disk": "1Gi"}},
		`kubeletConfiguration.evictionHard[memory.available]: "120%" is not a percentage: write a number from 0% to 100%`:                       {EvictionHard: map[string]string{memoryAvailable: "120%"}},
		`kubeletConfiguration.evictionSoft[memory.available]: "NaN%" is not a percentage: write a number from 0% to 100%`:                       {EvictionSoft: map[string]string{memoryAvailable: "NaN%"}},
		`kubeletConfiguration.evictionSoft[memory.available]: "lots" is not a quantity: write a number with a unit, such as 500m, 200Mi or 1Gi`: {EvictionSoft: map[string]string{memoryAvailable: "lots"}},
	} {
		_, err := Build(nil, usual(kubeletOf(k)))
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

func TestLabels(t *testing.T) {
	got := buildOne(t, "m6a.xlarge", usual()).Labels
	want := map[string]string{
		"node.kubernetes.io/instance-type":                           "m6a.xlarge",
		"kubernetes.io/arch":                                         "amd64",
		"kubernetes.io/os":                                           "linux",
		"topology.kubernetes.io/region":                              "us-west-2",
		"karpenter.k8s.aws/instance-category":                        "m",
		"karpenter.k8s.aws/instance-generation":                      "6",
		"karpenter.k8s.aws/instance-family":                          "m6a",
		"karpenter.k8s.aws/instance-size":                            "xlarge",
		"karpenter.k8s.aws/instance-hypervisor":                      "nitro",
		"karpenter.k8s.aws/instance-encryption-in-transit-supported": "true",
		"karpenter.k8s.aws/instance-capability-flex":                 "false",
		"karpenter.k8s.aws/instance-cpu":                             "4",
		"karpenter.k8s.aws/instance-cpu-manufacturer":                "amd",
		"karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz":   "3600",
		"karpenter.k8s.aws/instance-memory":                          "16384",
		"karpenter.k8s.aws/instance-pods":                            "58",
		"karpenter.k8s.aws/instance-ebs-bandwidth":                   "1250",
		"karpenter.k8s.aws/instance-network-bandwidth":               "1562",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestLabelsOfSpecialTypes(t *testing.T) {
	for name, want := range map[string]map[string]string{
		"m5.metal":       {"hypervisor": "", "size": "metal", "pods": "737"},
		"m5.large":       {"local-nvme": absent, "gpu-name": absent, "gpu-count": absent},
		"m5d.large":      {"local-nvme": "75"},
		"h1.2xlarge":     {"local-nvme": absent}, // disks, but not NVMe
		"g4dn.12xlarge":  {"gpu-name": "t4", "gpu-manufacturer": "nvidia", "gpu-count": "4", "gpu-memory": "16384", "local-nvme": "900"},
		"g7e.2xlarge":    {"gpu-name": "rtx-pro-server-6000"},
		"dl1.24xlarge":   {"gpu-name": "gaudi-hl-205", "gpu-manufacturer": "habana", "gpu-count": "8", "gpu-memory": "32768"},
		"inf2.24xlarge":  {"gpu-name": absent, "accelerator-name": "inferentia2", "accelerator-manufacturer": "aws", "accelerator-count": "6"},
		"m7i-flex.large": {"capability-flex": "true", "family": "m7i-flex", "generation": "7"},
	} {
		got := buildOne(t, name, usual()).Labels
		for key, v := range want {
			have, ok := got["karpenter.k8s.aws/instance-"+key]
			if !ok {
				have = absent
			}
			if have != v {
				t.Errorf("%s: %s = %q, want %q", name, key, have, v)
			}
		}
	}
}

const absent = "(absent)"

func TestTwoKindsOfGPUHaveNoGPULabels(t *testing.T) {
	r := row(t, "g4dn.xlarge")
	r.GPUs = []Accelerator{{Manufacturer: "NVIDIA", Name: "T4", Count: 1}, {Manufacturer: "NVIDIA", Name: "A10G", Count: 2}}
	types, err := Build([]Row{r}, usual())
	if err != nil {
		t.Fatal(err)
	}
	if n, ok := types[0].Labels["karpenter.k8s.aws/instance-gpu-name"]; ok {
		t.Errorf("gpu-name %q", n)
	}
	if n := types[0].Capacity.Get(nvidiaGPU); n != 3 {
		t.Errorf("%d GPUs, want 3", n)
	}
}

func TestTypeNames(t *testing.T) {
	for name, want := range map[string]typeName{
		"m6a.xlarge":         {"m", "6", "m6a", "xlarge"},
		"u-6tb1.metal":       {"u", "1", "u-6tb1", "metal"},
		"u7i-12tb.224xlarge": {"u", "7", "u7i-12tb", "224xlarge"},
		"p6-b200.48xlarge":   {"p", "6", "p6-b200", "48xlarge"},
		"inf1.xlarge":        {"inf", "1", "inf1", "xlarge"},
		"hpc7a.96xlarge":     {"hpc", "7", "hpc7a", "96xlarge"},
		"mac-m4.metal":       {"", "", "mac-m4", "metal"},
		"m5":                 {},
		"":                   {},
	} {
		if got := parseName(name); got != want {
			t.Errorf("%q: got %+v, want %+v", name, got, want)
		}
	}
}

func TestOfferings(t *testing.T) {
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	r := Row{Name: "m9.large", Arch: []string{"arm64"}, VCPU: 2, MemoryMiB: 8192, Markets: []string{"spot", "capacity-block", "on-demand"}, MaxENIs: 3, IPv4PerENI: 10}
	in := usual(func(in *Input) {
		in.Offered = map[string][]string{"m9.large": {"z-b", "z-a", "z-c"}}
		in.Zones = []string{"z-a", "z-b", "z-d"}
		in.Prices = Prices{}.WithOnDemand(map[string]quantity.Price{"m9.large": 90_000}, now).
			WithSpot(map[TypeZone]quantity.Price{{"m9.large", "z-a"}: 30_000}, now)
		in.Unavailable = func(k cloud.OfferingKey) bool {
			return k == cloud.OfferingKey{Type: "m9.large", Zone: "z-b", CapacityType: label.OnDemand}
		}
	})
	types, err := Build([]Row{r}, in)
	if err != nil {
		t.Fatal(err)
	}
	want := []world.Offering{
		{Zone: "z-a", CapacityType: "on-demand", Price: 90_000, Available: true},
		{Zone: "z-a", CapacityType: "spot", Price: 30_000, Available: true},
		{Zone: "z-b", CapacityType: "on-demand", Price: 90_000},
		{Zone: "z-b", CapacityType: "spot", Price: quantity.PriceUnknown},
	}
	if d := cmp.Diff(want, types[0].Offerings); d != "" {
		t.Error(d)
	}
}

func TestTypesWithoutOfferingsStay(t *testing.T) {
	got := buildOne(t, "m5.large", usual(func(in *Input) { in.Zones = []string{} }))
	if len(got.Offerings) != 0 {
		t.Errorf("offerings %v", got.Offerings)
	}
}

func TestDroppedTypes(t *testing.T) {
	types, err := Build([]Row{row(t, "m5.large"), {Name: "g2.2xlarge"}, {Name: "f1.2xlarge", FPGA: true}}, usual())
	if err != nil {
		t.Fatal(err)
	}
	if len(types) != 1 || types[0].Name != "m5.large" {
		t.Errorf("got %v", types)
	}
}

// TestEveryEmbeddedTypeHasRoom builds all types; the smallest have no memory
// left for pods after what the formulas take.
func TestEveryEmbeddedTypeHasRoom(t *testing.T) {
	tooSmall := map[string]bool{"t2.nano": true, "t3.nano": true, "t3a.nano": true, "t4g.nano": true}
	for _, name := range family.Names() {
		types, err := Build(Embedded(), usual(ofFamily(name)))
		if err != nil {
			t.Fatal(err)
		}
		for _, typ := range types {
			a := typ.Allocatable
			if a.MilliCPU <= 0 || a.EphemeralBytes <= 0 || a.Pods <= 2 {
				t.Errorf("%s %s: allocatable %v", name, typ.Name, a)
			}
			if (a.MemoryBytes <= 0) != tooSmall[typ.Name] {
				t.Errorf("%s %s: allocatable memory %d", name, typ.Name, a.MemoryBytes)
			}
		}
	}
}

func TestBuildDoesNotDependOnOrder(t *testing.T) {
	rows := Embedded()
	a, _ := Build(rows, usual())
	slices.Reverse(rows)
	b, _ := Build(rows, usual())
	if d := cmp.Diff(a, b); d != "" {
		t.Error(d)
	}
}

func FuzzReadKubelet(f *testing.F) {
	for _, s := range []string{"", "0", "100Mi", "5%", "100%", "1e3", "-1", "0x1p-2%", "1e-99999999", "1e99", ".5Gi", "Inf%"} {
		f.Add(s, s, int32(10), int32(3))
	}
	rows, base := Embedded()[:3], usual()
	f.Fuzz(func(t *testing.T, reserved, signal string, maxPods, perCore int32) {
		for _, name := range family.Names() {
			in := base
			in.Family, _ = family.Named(name)
			in.Kubelet = world.Kubelet{
				MaxPods: &maxPods, PodsPerCore: &perCore,
				KubeReserved:   map[string]string{"cpu": reserved, "memory": reserved},
				SystemReserved: map[string]string{"ephemeral-storage": reserved, "memory": reserved},
				EvictionHard:   map[string]string{memoryAvailable: signal},
				EvictionSoft:   map[string]string{memoryAvailable: signal},
			}
			types, err := Build(rows, in)
			if err != nil {
				continue
			}
			for _, typ := range types {
				a, c := typ.Allocatable, typ.Capacity
				if a.MilliCPU < 0 || a.MemoryBytes < 0 || a.EphemeralBytes < 0 || a.Pods < 0 ||
					a.MilliCPU > c.MilliCPU || a.MemoryBytes > c.MemoryBytes || a.EphemeralBytes > c.EphemeralBytes {
					t.Fatalf("reserved %q, signal %q: allocatable %v of %v", reserved, signal, a, c)
				}
			}
		}
	})
}

func BenchmarkBuild(b *testing.B) {
	rows := Embedded()
	in := usual(func(in *Input) { in.Zones = RegionZones("us-west-2")[:3] })
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Build(rows, in); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeEmbedded(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		f, err := decodeFile(embeddedGzip)
		if err != nil {
			b.Fatal(err)
		}
		_ = newIndex(f)
	}
}
