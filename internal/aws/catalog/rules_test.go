package catalog

import (
	"testing"

	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

// modern is a pool of nodes of an EC2NodeClass.
func modern(change ...func(*Input)) Input {
	in := usual(ofFamily("AL2023"))
	in.Rules = NewRules
	for _, c := range change {
		c(&in)
	}
	return in
}

func TestAllocatableByTheNewerRules(t *testing.T) {
	soft := world.Kubelet{EvictionSoft: map[string]string{"memory.available": "1Gi"}, EvictionSoftGracePeriod: map[string]string{"memory.available": "1m"}}
	hard := world.Kubelet{EvictionHard: map[string]string{"memory.available": "5%", "nodefs.available": "1Gi"}}
	system := world.Kubelet{SystemReserved: map[string]string{"cpu": "100m", "memory": "100Mi", "ephemeral-storage": "1Gi"}}
	base := quantity.Resources{MilliCPU: 3920, MemoryBytes: 14162 * mebi, EphemeralBytes: 17 * gibi, Pods: 58}
	for _, tt := range []struct {
		what, typ string
		in        Input
		want      quantity.Resources
	}{
		{"nothing is kept for the system; a tenth of the disk is", "m5.xlarge", modern(), base},
		{"unless it is asked for", "m5.xlarge", modern(kubeletOf(system)), quantity.Resources{MilliCPU: 3820, MemoryBytes: 14062 * mebi, EphemeralBytes: 16 * gibi, Pods: 58}},
		{"a soft threshold takes nothing", "m5.xlarge", modern(kubeletOf(soft)), base},
		{"hard ones do", "m5.xlarge", modern(kubeletOf(hard)), quantity.Resources{MilliCPU: 3920, MemoryBytes: (15155-893)*mebi - 794558464, EphemeralBytes: 18 * gibi, Pods: 58}},
		// (16384 − 64) less 7.5 %, 893 and 100 MiB.
		{"firmware of arm64", "m6g.xlarge", modern(), quantity.Resources{MilliCPU: 3920, MemoryBytes: (16320 - 1224 - 893 - 100) * mebi, EphemeralBytes: 17 * gibi, Pods: 58}},
	} {
		if got := buildOne(t, tt.typ, tt.in).Allocatable; !got.Equal(tt.want) {
			t.Errorf("%s: got %v, want %v", tt.what, got, tt.want)
		}
	}
}

func TestStorageOfNodes(t *testing.T) {
	raid := func(in *Input) { in.RAID0 = true }
	disks := func(d ...BlockDevice) func(*Input) { return func(in *Input) { in.BlockDevices = d } }
	root := BlockDevice{Name: "/dev/xvda", Bytes: 30 * gibi}
	data := BlockDevice{Name: "/dev/xvdb", Bytes: 50 * gibi}
	marked := BlockDevice{Name: "/dev/xvdc", Bytes: 70 * gibi, Root: true}
	for _, tt := range []struct {
		what, typ string
		in        Input
		want      int64
	}{
		{"the disks of the type, joined", "m5d.xlarge", modern(raid, disks(root)), 150e9},
		{"a type without disks", "m5.xlarge", modern(raid, disks(root)), 30 * gibi},
		{"disks that nobody joins", "m5d.xlarge", modern(disks(root)), 30 * gibi},
		{"the data volume of Bottlerocket", "m5.xlarge", modern(ofFamily("Bottlerocket"), disks(root, data)), 50 * gibi},
		{"the volume that is marked", "m5.xlarge", modern(ofFamily("Bottlerocket"), disks(root, marked, data)), 70 * gibi},
		{"the last one of Custom", "m5.xlarge", modern(ofFamily("Custom"), disks(root, data)), 50 * gibi},
		{"a snapshot whose size nobody knows", "m5.xlarge", modern(disks(BlockDevice{Name: "/dev/xvda"})), 20 * gibi},
	} {
		if got := buildOne(t, tt.typ, tt.in).Capacity.EphemeralBytes; got != tt.want {
			t.Errorf("%s: %d, want %d", tt.what, got, tt.want)
		}
	}
}

// TestPodsUseOneNetworkCard: the network plug-in gives addresses to interfaces of
// the default card only, however many cards there are.
func TestPodsUseOneNetworkCard(t *testing.T) {
	reserved := func(in *Input) { in.ReservedENIs = 1 }
	for _, tt := range []struct {
		typ  string
		in   Input
		want int64
	}{
		{"p4d.24xlarge", usual(), 737},
		{"trn1.32xlarge", usual(), 247},
		{"p5.48xlarge", usual(), 100},
		{"c6in.32xlarge", usual(), 394},
		{"m5.xlarge", usual(), 58},
		{"m5.xlarge", usual(reserved), 44},
	} {
		if got := buildOne(t, tt.typ, tt.in).Capacity.Pods; got != tt.want {
			t.Errorf("%s: %d pods, want %d", tt.typ, got, tt.want)
		}
	}
}

func TestOddTypesAreHiddenByTheOlderRules(t *testing.T) {
	rows := []Row{{Name: "f9.large", Arch: []string{"x86_64"}, VCPU: 2, MemoryMiB: 4096, FPGA: true}, {Name: "g2.large", Arch: []string{"x86_64"}, VCPU: 2, MemoryMiB: 4096}}
	for _, tt := range []struct {
		in   Input
		want int
	}{{usual(), 0}, {modern(), 2}} {
		if got, err := Build(rows, tt.in); err != nil || len(got) != tt.want {
			t.Errorf("%d types, %v; want %d", len(got), err, tt.want)
		}
	}
}
