package v1

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"karpenter/api/v1alpha5"
)

// AMIFamily is a kind of operating system.
//
// +kubebuilder:validation:Enum=AL2;AL2023;Bottlerocket;Custom;Windows2019;Windows2022;Windows2025
// +kubebuilder:validation:XValidation:rule="!self.startsWith('Windows')",message="Windows is not supported yet; use AL2, AL2023, Bottlerocket or Custom"
type AMIFamily string

// Values of an AMIFamily.
const (
	AMIFamilyAL2          AMIFamily = "AL2"
	AMIFamilyAL2023       AMIFamily = "AL2023"
	AMIFamilyBottlerocket AMIFamily = "Bottlerocket"
	AMIFamilyCustom       AMIFamily = "Custom"
	AMIFamilyWindows2019  AMIFamily = "Windows2019"
	AMIFamilyWindows2022  AMIFamily = "Windows2022"
	AMIFamilyWindows2025  AMIFamily = "Windows2025"
)

// InstanceStorePolicy says what becomes of an instance type's own disks.
//
// +kubebuilder:validation:Enum=RAID0
type InstanceStorePolicy string

// InstanceStoreRAID0 joins them into one, for the kubelet and containerd.
const InstanceStoreRAID0 InstanceStorePolicy = "RAID0"

// KubeletConfiguration are settings of the kubelet on each machine.
//
// +kubebuilder:validation:XValidation:rule="!has(self.imageGCHighThresholdPercent) || !has(self.imageGCLowThresholdPercent) || self.imageGCHighThresholdPercent > self.imageGCLowThresholdPercent",message="imageGCHighThresholdPercent must be greater than imageGCLowThresholdPercent",fieldPath=".imageGCHighThresholdPercent"
type KubeletConfiguration struct {
	v1alpha5.Kubelet `json:",inline"`

	// ImageGCHighThresholdPercent of the disk in use starts the removal of
	// images.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	ImageGCHighThresholdPercent *int32 `json:"imageGCHighThresholdPercent,omitempty"`
	// ImageGCLowThresholdPercent of the disk in use ends it.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	ImageGCLowThresholdPercent *int32 `json:"imageGCLowThresholdPercent,omitempty"`
	// CPUCFSQuota holds containers to their CPU limits.
	// +optional
	CPUCFSQuota *bool `json:"cpuCFSQuota,omitempty"`
}

// Values where an EC2NodeClass says nothing about the metadata service.
const (
	DefaultHTTPEndpoint                  = "enabled"
	DefaultHTTPProtocolIPv6              = "disabled"
	DefaultHTTPPutResponseHopLimit int64 = 1
	DefaultHTTPTokens                    = "required"
)

// MetadataOptions of a machine's metadata service.
type MetadataOptions struct {
	// +kubebuilder:validation:Enum=enabled;disabled
	// +kubebuilder:default=enabled
	// +optional
	HTTPEndpoint *string `json:"httpEndpoint,omitempty"`
	// +kubebuilder:validation:Enum=enabled;disabled
	// +kubebuilder:default=disabled
	// +optional
	HTTPProtocolIPv6 *string `json:"httpProtocolIPv6,omitempty"`
	// HTTPPutResponseHopLimit of 1 keeps pods away from the service.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	// +kubebuilder:default=1
	// +optional
	HTTPPutResponseHopLimit *int64 `json:"httpPutResponseHopLimit,omitempty"`
	// +kubebuilder:validation:Enum=required;optional
	// +kubebuilder:default=required
	// +optional
	HTTPTokens *string `json:"httpTokens,omitempty"`
}

// BlockDeviceMapping is one disk.
type BlockDeviceMapping struct {
	// DeviceName as the image knows it, e.g. /dev/xvda.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=127
	DeviceName *string `json:"deviceName"`
	// RootVolume marks the disk whose size counts as the node's storage.
	// +optional
	RootVolume bool `json:"rootVolume,omitempty"`
	EBS        *EBS `json:"ebs"`
}

// EBS is a volume.
//
// +kubebuilder:validation:XValidation:rule="has(self.volumeSize) || (has(self.snapshotID) && size(self.snapshotID) > 0)",message="volumeSize is required (unless snapshotID is set), for example 20Gi",fieldPath=".volumeSize"
// +kubebuilder:validation:XValidation:rule="!has(self.volumeSize) || (type(self.volumeSize) == int ? self.volumeSize >= 1000000000 && self.volumeSize <= 64000000000000 : [quantity(self.volumeSize)].all(q, q.compareTo(quantity('1G')) >= 0 && q.compareTo(quantity('64T')) <= 0))",message="volumeSize must be between 1G and 64T, for example 20Gi",fieldPath=".volumeSize"
// +kubebuilder:validation:XValidation:rule="!has(self.volumeInitializationRate) || (has(self.snapshotID) && size(self.snapshotID) > 0)",message="volumeInitializationRate needs snapshotID: an empty volume has nothing to fetch",fieldPath=".volumeInitializationRate"
type EBS struct {
	// +optional
	DeleteOnTermination *bool `json:"deleteOnTermination,omitempty"`
	// +optional
	Encrypted *bool `json:"encrypted,omitempty"`
	// IOPS: gp3 3000–16000, io1 and io2 100–64000.
	// +kubebuilder:validation:Minimum=1
	// +optional
	IOPS *int64 `json:"iops,omitempty"`
	// +optional
	KMSKeyID *string `json:"kmsKeyID,omitempty"`
	// +optional
	SnapshotID *string `json:"snapshotID,omitempty"`
	// Throughput in MiB/s, gp3 only: 125–1000.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Throughput *int64 `json:"throughput,omitempty"`
	// VolumeInitializationRate in MiB/s at which the snapshot is fetched.
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=300
	// +optional
	VolumeInitializationRate *int32 `json:"volumeInitializationRate,omitempty"`
	// VolumeSize is rounded up to whole GiB.
	// +optional
	VolumeSize *resource.Quantity `json:"volumeSize,omitempty"`
	// +kubebuilder:validation:Enum=standard;io1;io2;gp2;sc1;st1;gp3
	// +optional
	VolumeType *string `json:"volumeType,omitempty"`
}

// NetworkInterface is one network interface of a machine.
type NetworkInterface struct {
	// +kubebuilder:validation:Minimum=0
	NetworkCardIndex int32 `json:"networkCardIndex"`
	// +kubebuilder:validation:Minimum=0
	DeviceIndex int32 `json:"deviceIndex"`
	// +kubebuilder:validation:Enum=interface;efa-only
	InterfaceType string `json:"interfaceType"`
}

// ConnectionTracking says, in seconds, when idle connections are forgotten.
type ConnectionTracking struct {
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=432000
	// +optional
	TCPEstablishedTimeout *int32 `json:"tcpEstablishedTimeout,omitempty"`
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=180
	// +optional
	UDPStreamTimeout *int32 `json:"udpStreamTimeout,omitempty"`
	// +kubebuilder:validation:Minimum=30
	// +kubebuilder:validation:Maximum=60
	// +optional
	UDPTimeout *int32 `json:"udpTimeout,omitempty"`
}

// CPUOptions of a machine.
type CPUOptions struct {
	// +kubebuilder:validation:Enum=enabled;disabled
	// +optional
	NestedVirtualization *string `json:"nestedVirtualization,omitempty"`
}
