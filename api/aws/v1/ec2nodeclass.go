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
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name must not be longer than 63 characters, because it becomes the value of a label",fieldPath=".metadata"
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
//
// +kubebuilder:validation:XValidation:rule="has(self.role) != has(self.instanceProfile)",message="set exactly one of role and instanceProfile: a role, for which an instance profile is made, or the name of a profile that exists",fieldPath=".role"
// +kubebuilder:validation:XValidation:rule="has(self.amiFamily) || self.amiSelectorTerms.exists(t, has(t.alias))",message="amiFamily is required where no alias says it, for example AL2023",fieldPath=".amiFamily"
// +kubebuilder:validation:XValidation:rule="!self.amiSelectorTerms.exists(t, has(t.alias)) || size(self.amiSelectorTerms) == 1",message="an alias must be the only one of amiSelectorTerms",fieldPath=".amiSelectorTerms"
// +kubebuilder:validation:XValidation:rule="!has(self.amiFamily) || self.amiFamily == 'Custom' || self.amiSelectorTerms.all(t, !has(t.alias) || self.amiFamily.lowerAscii() == t.alias.split('@')[0])",message="amiFamily must be that of the alias, or Custom, or left out",fieldPath=".amiFamily"
// +kubebuilder:validation:XValidation:rule="!((has(self.amiFamily) && self.amiFamily == 'Bottlerocket') || (!has(self.amiFamily) && self.amiSelectorTerms.exists(t, has(t.alias) && t.alias.startsWith('bottlerocket@')))) || !has(self.kubelet) || !has(self.kubelet.podsPerCore)",message="kubelet.podsPerCore does not exist in Bottlerocket; remove it",fieldPath=".kubelet.podsPerCore"
// +kubebuilder:validation:XValidation:rule="!((has(self.amiFamily) && self.amiFamily == 'Bottlerocket') || (!has(self.amiFamily) && self.amiSelectorTerms.exists(t, has(t.alias) && t.alias.startsWith('bottlerocket@')))) || !has(self.kubelet) || !has(self.kubelet.clusterDNS) || size(self.kubelet.clusterDNS) <= 1",message="Bottlerocket takes one address in kubelet.clusterDNS",fieldPath=".kubelet.clusterDNS"
// +kubebuilder:validation:XValidation:rule="!has(self.capacityReservationSelectorTerms)",message="capacityReservationSelectorTerms: reserved capacity is not supported yet; remove it",fieldPath=".capacityReservationSelectorTerms"
// +kubebuilder:validation:XValidation:rule="!has(self.placementGroupSelector)",message="placementGroupSelector: placement groups are not supported yet; remove it",fieldPath=".placementGroupSelector"
// +kubebuilder:validation:XValidation:rule="!has(self.ipPrefixCount)",message="ipPrefixCount: prefixes of addresses are not supported yet; remove it",fieldPath=".ipPrefixCount"
// +kubebuilder:validation:XValidation:rule="!has(self.networkInterfaces)",message="networkInterfaces: network interfaces of one's own, EFA among them, are not supported yet; remove it",fieldPath=".networkInterfaces"
// +kubebuilder:validation:XValidation:rule="!has(self.connectionTracking)",message="connectionTracking: connection tracking is not supported yet; remove it",fieldPath=".connectionTracking"
// +kubebuilder:validation:XValidation:rule="!has(self.cpuOptions)",message="cpuOptions: CPU options are not supported yet; remove it",fieldPath=".cpuOptions"
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
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) > 0)",message="tags must not hold an empty key"
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 128 && size(self[k]) <= 256)",message="a tag must not have more than 128 characters in its key and 256 in its value"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.matches('^[aA][wW][sS]:'))",message="the key of a tag must not begin with aws:, which is for AWS only"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k in ['eks:eks-cluster-name', 'karpenter.sh/nodepool', 'karpenter.sh/nodeclaim', 'karpenter.k8s.aws/ec2nodeclass'] || k.startsWith('kubernetes.io/cluster/')))",messageExpression="'tag ' + self.filter(k, k in ['eks:eks-cluster-name', 'karpenter.sh/nodepool', 'karpenter.sh/nodeclaim', 'karpenter.k8s.aws/ec2nodeclass'] || k.startsWith('kubernetes.io/cluster/'))[0] + ' is not for users: the controller knows its machines by it; remove it'"
	// +optional
	Tags map[string]string `json:"tags,omitempty"`

	// Kubelet are settings of the kubelet on each machine.
	// +optional
	Kubelet *KubeletConfiguration `json:"kubelet,omitempty"`

	// BlockDeviceMappings are the disks of the machine. Unset: those of the
	// family. More than 30 would make the rules on them too dear.
	// +kubebuilder:validation:MaxItems=30
	// +kubebuilder:validation:XValidation:rule="self.all(d, self.exists_one(o, o.deviceName == d.deviceName))",message="blockDeviceMappings must not hold the same deviceName twice"
	// +kubebuilder:validation:XValidation:rule="size(self.filter(d, has(d.rootVolume) && d.rootVolume)) <= 1",message="at most one of blockDeviceMappings may be the rootVolume"
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
