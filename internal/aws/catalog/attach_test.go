package catalog

import "testing"

func TestEBSVolumes(t *testing.T) {
	tests := []struct {
		name    string
		row     Row
		devices int
		want    int64
	}{
		{"nitro", Row{Name: "m6a.large", Hypervisor: "nitro", MaxENIs: 3}, 0, 27 - 1 - 2},
		{"with two devices of the class", Row{Name: "m6a.large", Hypervisor: "nitro", MaxENIs: 3}, 2, 27 - 2 - 2},
		{"told, shared", Row{Name: "x.large", Hypervisor: "nitro", MaxENIs: 3, EBSVolumes: 28}, 1, 28 - 1 - 2},
		{"told, for volumes alone", Row{Name: "m7i.large", Hypervisor: "nitro", MaxENIs: 3, EBSVolumes: 32, EBSDedicated: true, LocalNVMeGB: 900}, 1, 31},
		{"xen", Row{Name: "m4.large", Hypervisor: "xen", MaxENIs: 2, EBSVolumes: 39}, 1, 38},
		{"one local disk or two", Row{Name: "m5d.large", Hypervisor: "nitro", MaxENIs: 3, LocalNVMeGB: 75}, 1, 27 - 1 - 2 - 2},
		{"known local disks", Row{Name: "m5d.24xlarge", Hypervisor: "nitro", MaxENIs: 15, LocalNVMeGB: 3600, LocalDisks: 4}, 1, 27 - 1 - 2 - 4},
		{"many local disks", Row{Name: "i3en.24xlarge", Hypervisor: "nitro", MaxENIs: 15, LocalNVMeGB: 60000}, 1, 27 - 1 - 2 - 16},
		{"GPUs", Row{Name: "g4dn.12xlarge", Hypervisor: "nitro", MaxENIs: 8, GPUs: []Accelerator{{Count: 4}}}, 1, 27 - 1 - 2 - 8},
		{"nothing is left", Row{Name: "p4d.24xlarge", Hypervisor: "nitro", MaxENIs: 60, LocalNVMeGB: 8000, GPUs: []Accelerator{{Count: 8}}}, 1, 1},
		{"chips", Row{Name: "inf1.6xlarge", Hypervisor: "nitro", MaxENIs: 8, Neuron: []Accelerator{{Count: 4}}}, 1, 27 - 1 - 2 - 4},
		{"dense storage", Row{Name: "d3.8xlarge", Hypervisor: "nitro", MaxENIs: 3, LocalNVMeGB: 47520}, 1, 2},
		{"high memory", Row{Name: "u-6tb1.metal", BareMetal: true, MaxENIs: 5}, 1, 18},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := ebsVolumes(&tt.row, tt.devices); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}
