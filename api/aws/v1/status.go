package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Types of the conditions of an EC2NodeClass.
const (
	ConditionSubnetsReady              = "SubnetsReady"              // the terms find subnets
	ConditionSecurityGroupsReady       = "SecurityGroupsReady"       // the terms find security groups
	ConditionAMIsReady                 = "AMIsReady"                 // the terms find images
	ConditionInstanceProfileReady      = "InstanceProfileReady"      // the profile exists
	ConditionPlacementGroupReady       = "PlacementGroupReady"       // the placement group exists
	ConditionCapacityReservationsReady = "CapacityReservationsReady" // the terms were looked up
	ConditionValidationSucceeded       = "ValidationSucceeded"       // nothing is wrong with the object
	ConditionReady                     = "Ready"                     // all of these
)

// Reasons of the conditions of an EC2NodeClass.
const (
	ReasonSubnetsNotFound                 = "SubnetsNotFound"
	ReasonSecurityGroupsNotFound          = "SecurityGroupsNotFound"
	ReasonAMINotFound                     = "AMINotFound"
	ReasonUnsupportedAlias                = "UnsupportedAlias"
	ReasonPlacementGroupNotFound          = "PlacementGroupNotFound"
	ReasonPlacementGroupResolutionFailed  = "PlacementGroupResolutionFailed"
	ReasonInstanceProfileNotFound         = "InstanceProfileNotFound"
	ReasonTagValidationFailed             = "TagValidationFailed"
	ReasonInvalidKubeletConfiguration     = "InvalidKubeletConfiguration"
	ReasonUnsupportedKubeletConfiguration = "UnsupportedKubeletConfiguration"
	ReasonUserDataSizeLimitExceeded       = "UserDataSizeLimitExceeded"
	ReasonClusterCIDRResolutionFailed     = "ClusterCIDRResolutionFailed"
	ReasonDependenciesNotReady            = "DependenciesNotReady"
	ReasonCreateLaunchTemplateAuthFailed  = "CreateLaunchTemplateAuthCheckFailed"
	ReasonCreateFleetAuthFailed           = "CreateFleetAuthCheckFailed"
	ReasonRunInstancesAuthFailed          = "RunInstancesAuthCheckFailed"
	ReasonEC2NodeClassValidationFailed    = "EC2NodeClassValidationFailed"
)

// EC2NodeClassStatus is what was found.
type EC2NodeClassStatus struct {
	// Subnets that the terms find, most free addresses first.
	// +listType=atomic
	// +optional
	Subnets []Subnet `json:"subnets,omitempty"`
	// SecurityGroups that the terms find.
	// +listType=atomic
	// +optional
	SecurityGroups []SecurityGroup `json:"securityGroups,omitempty"`
	// CapacityReservations that the terms find.
	// +listType=atomic
	// +optional
	CapacityReservations []CapacityReservation `json:"capacityReservations,omitempty"`
	// AMIs that would be started now.
	// +listType=atomic
	// +optional
	AMIs []AMI `json:"amis,omitempty"`
	// InstanceProfile is the name of the profile in use.
	// +optional
	InstanceProfile string `json:"instanceProfile,omitempty"`
	// Conditions: Ready says whether machines can be made from it.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Subnet is a subnet that a term found.
type Subnet struct {
	ID string `json:"id"`
	// +optional
	Zone string `json:"zone,omitempty"`
	// +optional
	ZoneID string `json:"zoneID,omitempty"`
}

// SecurityGroup is a security group that a term found.
type SecurityGroup struct {
	ID string `json:"id"`
	// +optional
	Name string `json:"name,omitempty"`
}

// AMI is an image, and the instance types that it is for.
type AMI struct {
	ID string `json:"id"`
	// +optional
	Name string `json:"name,omitempty"`
	// Deprecated: the owner wants it to be used no more.
	// +optional
	Deprecated bool `json:"deprecated,omitempty"`
	// Requirements that an instance type must satisfy.
	// +listType=atomic
	Requirements []corev1.NodeSelectorRequirement `json:"requirements"`
}

// CapacityReservation is a capacity reservation that a term found.
type CapacityReservation struct {
	ID               string `json:"id"`
	InstanceType     string `json:"instanceType"`
	AvailabilityZone string `json:"availabilityZone"`
	OwnerID          string `json:"ownerID"`
	// +kubebuilder:validation:Enum=open;targeted
	InstanceMatchCriteria string `json:"instanceMatchCriteria"`
	// +kubebuilder:validation:Enum=default;capacity-block
	// +kubebuilder:default=default
	ReservationType string `json:"reservationType"`
	// +kubebuilder:validation:Enum=active;expiring
	// +kubebuilder:default=active
	State string `json:"state"`
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
	// +optional
	Interruptible bool `json:"interruptible,omitempty"`
}
