package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kind of an AWSNodeTemplate.
const Kind = "AWSNodeTemplate"

// ConditionReady of an AWSNodeTemplate: its selectors find something and it
// can be launched from. Reason and message say why not.
const ConditionReady = "Ready"

// SelectorIDs is the key of a selector whose value is a comma-separated list
// of ids instead of a tag value.
const SelectorIDs = "aws-ids"

// Values of AMIFamily.
const (
	AMIFamilyAL2          = "AL2"
	AMIFamilyAL2023       = "AL2023"
	AMIFamilyBottlerocket = "Bottlerocket"
	AMIFamilyUbuntu       = "Ubuntu"
	AMIFamilyCustom       = "Custom"
)

// AWSNodeTemplate says how machines are made in AWS: where, behind which
// security groups, from which image and with which disks.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=karpenter
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether machines can be made from it"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$')",message="metadata.name must start with a lower-case letter, hold only lower-case letters, digits and '-', not end in '-', and be at most 63 characters long",fieldPath=".metadata"
// +kubebuilder:validation:XValidation:rule="has(self.spec)",message="spec is required; it needs subnetSelector and securityGroupSelector",fieldPath=".spec"
type AWSNodeTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec AWSNodeTemplateSpec `json:"spec,omitempty"`
	// +optional
	Status AWSNodeTemplateStatus `json:"status,omitempty"`
}

// AWSNodeTemplateList is a list of AWSNodeTemplates.
//
// +kubebuilder:object:root=true
type AWSNodeTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AWSNodeTemplate `json:"items"`
}

// AWSNodeTemplateSpec is what the user wants.
//
// +kubebuilder:validation:XValidation:rule="has(self.securityGroupSelector) || has(self.launchTemplate)",message="securityGroupSelector is required (unless launchTemplate is used), for example {Name: my-group} or {aws-ids: sg-0123456789abcdef0}",fieldPath=".securityGroupSelector"
// +kubebuilder:validation:XValidation:rule="!has(self.launchTemplate) || !has(self.amiFamily)",message="amiFamily and launchTemplate exclude each other: the launch template says what is started",fieldPath=".amiFamily"
// +kubebuilder:validation:XValidation:rule="!has(self.launchTemplate) || !has(self.amiSelector)",message="amiSelector and launchTemplate exclude each other: the launch template says what is started",fieldPath=".amiSelector"
// +kubebuilder:validation:XValidation:rule="!has(self.launchTemplate) || !has(self.instanceProfile)",message="instanceProfile and launchTemplate exclude each other: the launch template says what is started",fieldPath=".instanceProfile"
// +kubebuilder:validation:XValidation:rule="!has(self.launchTemplate) || !has(self.userData)",message="userData and launchTemplate exclude each other: the launch template says what is started",fieldPath=".userData"
// +kubebuilder:validation:XValidation:rule="!has(self.launchTemplate) || !has(self.metadataOptions)",message="metadataOptions and launchTemplate exclude each other: the launch template says what is started",fieldPath=".metadataOptions"
// +kubebuilder:validation:XValidation:rule="!has(self.launchTemplate) || !has(self.blockDeviceMappings)",message="blockDeviceMappings and launchTemplate exclude each other: the launch template says what is started",fieldPath=".blockDeviceMappings"
// +kubebuilder:validation:XValidation:rule="!has(self.amiFamily) || self.amiFamily != 'Custom' || has(self.amiSelector)",message="amiFamily Custom needs amiSelector, for example {Name: my-image} or {aws-ids: ami-0123456789abcdef0}",fieldPath=".amiSelector"
type AWSNodeTemplateSpec struct {
	AWS `json:",inline"`

	// UserData is merged into, or replaces, what the machine runs at boot.
	// +optional
	UserData *string `json:"userData,omitempty"`
	// AMISelector finds images by tags or ids. Unset: the newest one that AWS
	// publishes for the family and the version of the cluster.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=50
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) > 0 && size(self[k]) > 0)",message="amiSelector must not hold an empty key or value; use '*' for any value"
	// +kubebuilder:validation:XValidation:rule="!('aws-ids' in self) || self['aws-ids'].matches('^[^,]*ami-[0-9a-z]+[^,]*(,[^,]*ami-[0-9a-z]+[^,]*)*$')",message="aws-ids must be a comma-separated list of ids that match ami-[0-9a-z]+"
	// +optional
	AMISelector map[string]string `json:"amiSelector,omitempty"`
	// DetailedMonitoring turns on EC2's one-minute metrics.
	// +optional
	DetailedMonitoring *bool `json:"detailedMonitoring,omitempty"`
}

// AWS are the settings that an AWSNodeTemplate and a Provisioner's inline
// provider have in common.
type AWS struct {
	// APIVersion is not looked at; it is allowed because the inline form has it.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind is not looked at; it is allowed because the inline form has it.
	// +optional
	Kind string `json:"kind,omitempty"`

	// AMIFamily is the kind of operating system. Unset: AL2.
	// +kubebuilder:validation:Enum=AL2;AL2023;Bottlerocket;Ubuntu;Custom
	// +optional
	AMIFamily *string `json:"amiFamily,omitempty"`
	// Context is handed to EC2 as it is.
	// +optional
	Context *string `json:"context,omitempty"`
	// InstanceProfile is the name of the profile that machines run as. Unset:
	// the setting aws.defaultInstanceProfile.
	// +optional
	InstanceProfile *string `json:"instanceProfile,omitempty"`
	// SubnetSelector finds subnets by tags or ids; all entries must hold.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=50
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) > 0 && size(self[k]) > 0)",message="subnetSelector must not hold an empty key or value; use '*' for any value"
	// +kubebuilder:validation:XValidation:rule="!('aws-ids' in self) || self['aws-ids'].matches('^[^,]*subnet-[0-9a-z]+[^,]*(,[^,]*subnet-[0-9a-z]+[^,]*)*$')",message="aws-ids must be a comma-separated list of ids that match subnet-[0-9a-z]+"
	SubnetSelector map[string]string `json:"subnetSelector"`
	// SecurityGroupSelector finds security groups by tags or ids; all entries
	// must hold. Required unless launchTemplate is used.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=50
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) > 0 && size(self[k]) > 0)",message="securityGroupSelector must not hold an empty key or value; use '*' for any value"
	// +kubebuilder:validation:XValidation:rule="!('aws-ids' in self) || self['aws-ids'].matches('^[^,]*sg-[0-9a-z]+[^,]*(,[^,]*sg-[0-9a-z]+[^,]*)*$')",message="aws-ids must be a comma-separated list of ids that match sg-[0-9a-z]+"
	// +optional
	SecurityGroupSelector map[string]string `json:"securityGroupSelector,omitempty"`
	// Tags go on everything that is made in AWS. EC2 takes 50 on one thing; the
	// others are for the settings and for us.
	// +kubebuilder:validation:MaxProperties=40
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) > 0)",message="tags must not hold an empty key"
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 128 && size(self[k]) <= 256)",message="a tag must not have more than 128 characters in its key and 256 in its value"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.matches('^[aA][wW][sS]:'))",message="the key of a tag must not begin with aws:, which is for AWS only"
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
	// LaunchTemplate is the name of a launch template to use unchanged.
	// Deprecated: describe the machine here instead.
	// +optional
	LaunchTemplate *string `json:"launchTemplate,omitempty"`
	// MetadataOptions of the machine's metadata service.
	// +optional
	MetadataOptions *MetadataOptions `json:"metadataOptions,omitempty"`
	// BlockDeviceMappings are the disks of the machine.
	// +kubebuilder:validation:MaxItems=30
	// +kubebuilder:validation:XValidation:rule="self.all(d, self.exists_one(o, o.deviceName == d.deviceName))",message="blockDeviceMappings must not hold the same deviceName twice"
	// +listType=atomic
	// +optional
	BlockDeviceMappings []BlockDeviceMapping `json:"blockDeviceMappings,omitempty"`
}

// MetadataOptions of a machine's metadata service. Where the whole object is
// left out: enabled, no IPv6, hop limit 2, tokens required.
type MetadataOptions struct {
	// +kubebuilder:validation:Enum=enabled;disabled
	// +optional
	HTTPEndpoint *string `json:"httpEndpoint,omitempty"`
	// +kubebuilder:validation:Enum=enabled;disabled
	// +optional
	HTTPProtocolIPv6 *string `json:"httpProtocolIPv6,omitempty"`
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	// +optional
	HTTPPutResponseHopLimit *int64 `json:"httpPutResponseHopLimit,omitempty"`
	// +kubebuilder:validation:Enum=optional;required
	// +optional
	HTTPTokens *string `json:"httpTokens,omitempty"`
}

// BlockDeviceMapping is one disk.
type BlockDeviceMapping struct {
	// DeviceName as the image knows it, e.g. /dev/xvda.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=127
	DeviceName *string `json:"deviceName"`
	EBS        *EBS    `json:"ebs"`
}

// EBS is a volume.
//
// +kubebuilder:validation:XValidation:rule="has(self.volumeSize) || (has(self.snapshotID) && size(self.snapshotID) > 0)",message="volumeSize is required (unless snapshotID is set), for example 20Gi",fieldPath=".volumeSize"
// +kubebuilder:validation:XValidation:rule="!has(self.volumeSize) || (type(self.volumeSize) == int ? self.volumeSize >= 1000000000 && self.volumeSize <= 64000000000000 : [quantity(self.volumeSize)].all(q, q.compareTo(quantity('1G')) >= 0 && q.compareTo(quantity('64T')) <= 0))",message="volumeSize must be between 1G and 64T, for example 20Gi",fieldPath=".volumeSize"
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
	// VolumeSize is rounded up to whole GiB.
	// +optional
	VolumeSize *resource.Quantity `json:"volumeSize,omitempty"`
	// +kubebuilder:validation:Enum=standard;io1;io2;gp2;sc1;st1;gp3
	// +optional
	VolumeType *string `json:"volumeType,omitempty"`
}

// AWSNodeTemplateStatus is what was found.
type AWSNodeTemplateStatus struct {
	// Subnets that the selector finds, most free addresses first.
	// +listType=atomic
	// +optional
	Subnets []Subnet `json:"subnets,omitempty"`
	// SecurityGroups that the selector finds.
	// +listType=atomic
	// +optional
	SecurityGroups []SecurityGroup `json:"securityGroups,omitempty"`
	// AMIs that would be started now.
	// +listType=atomic
	// +optional
	AMIs []AMI `json:"amis,omitempty"`
	// Conditions: Ready says whether machines can be made from it.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Subnet is a subnet that a selector found.
type Subnet struct {
	ID string `json:"id"`
	// +optional
	Zone string `json:"zone,omitempty"`
}

// SecurityGroup is a security group that a selector found.
type SecurityGroup struct {
	ID string `json:"id"`
	// +optional
	Name string `json:"name,omitempty"`
}

// AMI is an image, and the architecture it is for.
type AMI struct {
	ID string `json:"id"`
	// +optional
	Name string `json:"name,omitempty"`
	// +optional
	Arch string `json:"arch,omitempty"`
}
