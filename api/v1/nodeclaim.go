package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kind of a NodeClaim.
const Kind = "NodeClaim"

// Types of the conditions of a NodeClaim.
const (
	ConditionLaunched             = "Launched"             // the provider made the instance
	ConditionRegistered           = "Registered"           // its node joined, labels and taints were put right
	ConditionInitialized          = "Initialized"          // the node is fully usable
	ConditionReady                = "Ready"                // all three of the above
	ConditionConsolidatable       = "Consolidatable"       // quiet for long enough
	ConditionDrifted              = "Drifted"              // differs from its pool or class
	ConditionDisruptionReason     = "DisruptionReason"     // chosen to go; the reason names the method
	ConditionInstanceTerminating  = "InstanceTerminating"  // the provider was asked to terminate it
	ConditionDrained              = "Drained"              // its pods are gone
	ConditionVolumesDetached      = "VolumesDetached"      // their volumes are detached
	ConditionConsistentStateFound = "ConsistentStateFound" // the node is what was promised
)

// NodeClaim asks for one machine and records what became of it. Deleting it
// drains the node and terminates the machine.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=karpenter
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.metadata.labels.node\.kubernetes\.io/instance-type`
// +kubebuilder:printcolumn:name="Capacity",type=string,JSONPath=`.metadata.labels.karpenter\.sh/capacity-type`
// +kubebuilder:printcolumn:name="Zone",type=string,JSONPath=`.metadata.labels.topology\.kubernetes\.io/zone`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.status.nodeName`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="ImageID",type=string,JSONPath=`.status.imageID`,priority=1
// +kubebuilder:printcolumn:name="ID",type=string,JSONPath=`.status.providerID`,priority=1
// +kubebuilder:printcolumn:name="Provisioner",type=string,JSONPath=`.metadata.labels.karpenter\.sh/provisioner-name`,priority=1
// +kubebuilder:printcolumn:name="NodePool",type=string,JSONPath=`.metadata.labels.karpenter\.sh/nodepool`,priority=1
// +kubebuilder:printcolumn:name="NodeClass",type=string,JSONPath=`.spec.nodeClassRef.name`,priority=1
// +kubebuilder:printcolumn:name="Drifted",type=string,JSONPath=`.status.conditions[?(@.type=="Drifted")].status`,priority=1
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
type NodeClaim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec NodeClaimSpec `json:"spec"`
	// +optional
	Status NodeClaimStatus `json:"status,omitempty"`
}

// NodeClaimList is a list of NodeClaims.
//
// +kubebuilder:object:root=true
type NodeClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeClaim `json:"items"`
}

// NodeClaimSpec is what the machine must be. It never changes.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable: delete the NodeClaim and make another one"
// +kubebuilder:validation:XValidation:rule="!has(self.taints) || !has(self.startupTaints) || self.taints.all(t, !self.startupTaints.exists(s, s.key == t.key && s.effect == t.effect))",message="taints and startupTaints must not hold the same pair of key and effect",fieldPath=".startupTaints"
type NodeClaimSpec struct {
	// Requirements limit instance type, zone, capacity type and labels.
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	Requirements []Requirement `json:"requirements"`
	// Resources are the least that the node must offer.
	// +optional
	Resources Resources `json:"resources,omitempty"`
	// Taints are put on the node.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(t, self.exists_one(o, o.key == t.key && o.effect == t.effect))",message="taints must not hold the same pair of key and effect twice"
	// +listType=atomic
	// +optional
	Taints []Taint `json:"taints,omitempty"`
	// StartupTaints are put on the node and taken off by somebody else.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(t, self.exists_one(o, o.key == t.key && o.effect == t.effect))",message="startupTaints must not hold the same pair of key and effect twice"
	// +listType=atomic
	// +optional
	StartupTaints []Taint `json:"startupTaints,omitempty"`
	// NodeClassRef names the object with the cloud settings.
	NodeClassRef NodeClassRef `json:"nodeClassRef"`
	// ExpireAfter is the age at which the machine is removed, or Never.
	// +kubebuilder:default="720h"
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self == 'Never' || (self.matches('^([0-9]+[smh])+$') && duration(self) >= duration('0s'))",message="must be a duration in hours, minutes and seconds, such as 1h30m, or Never"
	// +optional
	ExpireAfter string `json:"expireAfter,omitempty"`
	// TerminationGracePeriod bounds how long draining may take.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+[smh])+$') && duration(self) >= duration('0s')",message="must be a duration in hours, minutes and seconds, such as 1h30m"
	// +optional
	TerminationGracePeriod *metav1.Duration `json:"terminationGracePeriod,omitempty"`
}

// Resources are the least that a node must offer.
type Resources struct {
	// +kubebuilder:validation:MaxProperties=30
	// +kubebuilder:validation:XValidation:rule="self.all(k, type(self[k]) == int || isQuantity(self[k]))",message="every request must be a quantity, such as 100 or 400Gi"
	// +kubebuilder:validation:XValidation:rule="self.all(k, type(self[k]) == int ? self[k] >= 0 : !self[k].startsWith('-'))",message="requests must be 0 or more"
	// +optional
	Requests corev1.ResourceList `json:"requests,omitempty"`
}

// NodeClaimStatus is what became of the machine.
type NodeClaimStatus struct {
	// NodeName is the name of its Node.
	// +optional
	NodeName string `json:"nodeName,omitempty"`
	// ProviderID of the instance, as the Node has it in its spec.
	// +optional
	ProviderID string `json:"providerID,omitempty"`
	// ImageID of the image that was started.
	// +optional
	ImageID string `json:"imageID,omitempty"`
	// Capacity that the instance type promises.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	// Allocatable that the instance type promises.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
	// LastPodEventTime is when a pod last came or went.
	// +optional
	LastPodEventTime *metav1.Time `json:"lastPodEventTime,omitempty"`
	// Conditions: Launched, Registered, Initialized, Ready and those of the way
	// out.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
