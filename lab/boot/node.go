package boot

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Machine is an instance as its own operating system sees it.
type Machine struct {
	ID         string
	Type       string
	Region     string
	Zone       string
	PrivateDNS string
	PrivateIP  string
	UserData   string // decoded
	Arch       string // amd64 or arm64
	VCPU       int64
	MemoryMiB  int64
	MaxENIs    int64
	IPv4PerENI int64
	// Disks has the size in GiB of each volume, by device.
	Disks map[string]int64
	// LocalGB is the size, in GB, of the disks that belong to the machine's type.
	LocalGB int64
	// Devices are extended resources that a device plugin announces once it
	// runs, such as nvidia.com/gpu.
	Devices map[string]int64
}

// DefaultMemoryPercent is how much of its type's memory a machine really has:
// firmware and kernel take the rest.
const DefaultMemoryPercent = 95

// defaultGiB is the size of a volume that nobody has told.
const defaultGiB = 20

// uninitialized is the taint that stays until the cloud controller has labelled
// the node.
var uninitialized = corev1.Taint{Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true", Effect: corev1.TaintEffectNoSchedule}

// NewNode is the Node that the machine's kubelet registers, before the cloud
// controller has seen it.
func NewNode(m Machine, memoryPercent int64, version string) (*corev1.Node, error) {
	system, err := Boot(m)
	if err != nil {
		return nil, err
	}
	kubelet := system.Kubelet
	capacity := m.capacity(kubelet.MaxPods, memoryPercent, system)
	allocatable, err := kubelet.allocatable(capacity)
	if err != nil {
		return nil, err
	}
	name := strings.ToLower(m.PrivateDNS)
	labels := maps.Clone(kubelet.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, map[string]string{
		corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: m.Arch,
	})
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: corev1.NodeSpec{
			ProviderID: fmt.Sprintf("aws:///%s/%s", m.Zone, m.ID),
			Taints:     append(slices.Clone(kubelet.Taints), uninitialized),
		},
		Status: corev1.NodeStatus{
			Capacity:    capacity,
			Allocatable: allocatable,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: m.PrivateIP},
				{Type: corev1.NodeHostName, Address: name},
				{Type: corev1.NodeInternalDNS, Address: name},
			},
			Conditions: []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionFalse,
				Reason: "KubeletNotReady", Message: "container runtime network not ready: cni plugin not initialized",
				LastTransitionTime: metav1.Now(), LastHeartbeatTime: metav1.Now(),
			}},
			NodeInfo: corev1.NodeSystemInfo{
				MachineID: m.ID, SystemUUID: m.ID, BootID: m.ID,
				Architecture: m.Arch, OperatingSystem: "linux", OSImage: system.Name,
				KernelVersion: "6.1.0-lab", KubeletVersion: version, KubeProxyVersion: version,
				ContainerRuntimeVersion: system.Runtime + "://1.7",
			},
		},
	}, nil
}

func (m Machine) capacity(pods, memoryPercent int64, s System) corev1.ResourceList {
	memory := m.MemoryMiB << 20 * memoryPercent / 100
	storage := int64(defaultGiB) << 30
	if size := m.Disks[s.Storage]; size > 0 {
		storage = size << 30
	}
	if s.JoinsDisks && m.LocalGB > 0 {
		storage = m.LocalGB * 1e9
	}
	return corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(m.VCPU, resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(memory>>10<<10, resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(storage, resource.BinarySI),
		corev1.ResourcePods:             *resource.NewQuantity(pods, resource.DecimalSI),
		"hugepages-1Gi":                 *resource.NewQuantity(0, resource.BinarySI),
		"hugepages-2Mi":                 *resource.NewQuantity(0, resource.BinarySI),
	}
}

// cloudLabels are the labels that the cloud controller puts on the node.
func (m Machine) cloudLabels() map[string]string {
	return map[string]string{
		corev1.LabelInstanceTypeStable: m.Type,
		corev1.LabelTopologyZone:       m.Zone,
		corev1.LabelTopologyRegion:     m.Region,
	}
}
