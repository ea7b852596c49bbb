package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kind of an EC2NodeClass.
const Kind = "EC2NodeClass"

// EC2NodeClass says how machines are made in AWS: where, behind which security
// groups, from which image, with which disks and settings of the kubelet.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=karpenter,shortName={ec2nc,ec2ncs}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether machines can be made from it"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Role",type=string,JSONPath=`.spec.role`,priority=1
// +kubebuilder:printcolumn:name="Profile",type=string,JSONPath=`.status.instanceProfile`,priority=1
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
type EC2NodeClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec EC2NodeClassSpec `json:"spec"`
	// +optional
	Status EC2NodeClassStatus `json:"status,omitempty"`
}

// EC2NodeClassList is a list of EC2NodeClasses.
//
// +kubebuilder:object:root=true
type EC2NodeClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EC2NodeClass `json:"items"`
}

// EC2NodeClassSpec is what the user wants. Of a list of terms one must fit; of
// one term everything must.
type EC2NodeClassSpec struct {
	// SubnetSelectorTerms find subnets.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=30
	// +listType=atomic
	SubnetSelectorTerms []SubnetSelectorTerm `json:"subnetSelectorTerms"`

	// SecurityGroupSelectorTerms find security groups.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=30
	// +listType=atomic
	SecurityGroupSelectorTerms []SecurityGroupSelectorTerm `json:"securityGroupSelectorTerms"`

	// CapacityReservationSelectorTerms find capacity reservations.
	// +kubebuilder:validation:MaxItems=30
	// +listType=atomic
	// +optional
	CapacityReservationSelectorTerms []CapacityReservationSelectorTerm `json:"capacityReservationSelectorTerms,omitempty"`

	// PlacementGroupSelector names the placement group of all machines.
	// +optional
	PlacementGroupSelector *PlacementGroupSelector `json:"placementGroupSelector,omitempty"`

	// AMISelectorTerms find images, for example {alias: al2023@latest}.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=30
	// +listType=atomic
	AMISelectorTerms []AMISelectorTerm `json:"amiSelectorTerms"`

	// AMIFamily is the kind of operating system, which decides how user data is
	// written. Required where no alias says it.
	// +optional
	AMIFamily *AMIFamily `json:"amiFamily,omitempty"`

	// AssociatePublicIPAddress gives machines a public address, or none. Unset:
	// as the subnet says.
	// +optional
	AssociatePublicIPAddress *bool `json:"associatePublicIPAddress,omitempty"`

	// IPPrefixCount is how many prefixes the primary network interface gets.
	// +kubebuilder:validation:Minimum=0
	// +optional
	IPPrefixCount *int32 `json:"ipPrefixCount,omitempty"`

	// UserData is merged into what the machine runs at boot.
	// +optional
	UserData *string `json:"userData,omitempty"`

	// Role is the name of the IAM role of the machines; an instance profile is
	// made for it.
	// +kubebuilder:validation:MinLength=1
	// +optional
	Role *string `json:"role,omitempty"`

	// InstanceProfile is the name of a profile that somebody else looks after.
	// +kubebuilder:validation:MinLength=1
	// +optional
	InstanceProfile *string `json:"instanceProfile,omitempty"`

	// Tags go on everything that is made in AWS.
	// +kubebuilder:validation:MaxProperties=40
	// +optional
	Tags map[string]string `json:"tags,omitempty"`

	// Kubelet are settings of the kubelet on each machine.
	// +optional
	Kubelet *KubeletConfiguration `json:"kubelet,omitempty"`

	// BlockDeviceMappings are the disks of the machine. Unset: those of the
	// family.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	BlockDeviceMappings []BlockDeviceMapping `json:"blockDeviceMappings,omitempty"`

	// InstanceStorePolicy says what becomes of the disks that belong to the
	// instance type. Unset: nothing.
	// +optional
	InstanceStorePolicy *InstanceStorePolicy `json:"instanceStorePolicy,omitempty"`

	// NetworkInterfaces of each machine.
	// +kubebuilder:validation:MaxItems=150
	// +listType=atomic
	// +optional
	NetworkInterfaces []NetworkInterface `json:"networkInterfaces,omitempty"`

	// DetailedMonitoring turns on EC2's one-minute metrics.
	// +optional
	DetailedMonitoring *bool `json:"detailedMonitoring,omitempty"`

	// MetadataOptions of the machine's metadata service.
	// +kubebuilder:default={httpEndpoint: enabled, httpProtocolIPv6: disabled, httpPutResponseHopLimit: 1, httpTokens: required}
	// +optional
	MetadataOptions *MetadataOptions `json:"metadataOptions,omitempty"`

	// ConnectionTracking says when idle connections are forgotten.
	// +optional
	ConnectionTracking *ConnectionTracking `json:"connectionTracking,omitempty"`

	// CPUOptions of each machine.
	// +optional
	CPUOptions *CPUOptions `json:"cpuOptions,omitempty"`

	// Context is handed to EC2 as it is.
	// +optional
	Context *string `json:"context,omitempty"`
}
