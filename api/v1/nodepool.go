package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KindNodePool is the kind of a NodePool.
const KindNodePool = "NodePool"

// Types of the conditions of a NodePool; ConditionReady holds where the first
// two do.
const (
	ConditionValidationSucceeded     = "ValidationSucceeded"     // nothing is wrong with the object
	ConditionNodeClassReady          = "NodeClassReady"          // its class exists and is ready
	ConditionNodeRegistrationHealthy = "NodeRegistrationHealthy" // its machines join; says nothing about Ready
)

// Reasons of the conditions of a NodePool.
const (
	ReasonNodePoolValidationFailed  = "NodePoolValidationFailed"
	ReasonNodeClassNotFound         = "NodeClassNotFound"
	ReasonNodeClassTerminating      = "NodeClassTerminating"
	ReasonNodeClassReadinessUnknown = "NodeClassReadinessUnknown"
	ReasonRegistrationFailed        = "RegistrationFailed"
)

// NodePool says which nodes may be bought for pods that find no place, and when
// they are removed.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=karpenter
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.nodes
// +kubebuilder:printcolumn:name="NodeClass",type=string,JSONPath=`.spec.template.spec.nodeClassRef.name`,description="Class that nodes are made from"
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodes`,description="Number of nodes"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether nodes can be bought"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Weight",type=integer,JSONPath=`.spec.weight`,priority=1,description="Greatest weight is tried first"
// +kubebuilder:printcolumn:name="CPU",type=string,JSONPath=`.status.resources.cpu`,priority=1,description="CPU of all nodes together"
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.status.resources.memory`,priority=1,description="Memory of all nodes together"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
type NodePool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec NodePoolSpec `json:"spec"`
	// +optional
	Status NodePoolStatus `json:"status,omitempty"`
}

// NodePoolList is a list of NodePools.
//
// +kubebuilder:object:root=true
type NodePoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodePool `json:"items"`
}

// NodePoolSpec is what the user wants.
type NodePoolSpec struct {
	// Template is what each node is made from. Changing it, requirements aside,
	// makes the nodes that exist drift.
	Template Template `json:"template"`

	// Disruption says when nodes are removed or replaced, and how many at once.
	// +kubebuilder:default={consolidateAfter: "0s"}
	// +optional
	Disruption Disruption `json:"disruption,omitempty"`

	// Limits cap what all nodes of this pool have together, by resource; nodes
	// caps their number. Unset: no limit.
	// +optional
	Limits corev1.ResourceList `json:"limits,omitempty"`

	// Weight orders pools: the greatest is tried first. Unset: 0.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	Weight *int32 `json:"weight,omitempty"`

	// Replicas makes the pool a static one, of this many nodes whatever pods
	// there are.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Replicas *int64 `json:"replicas,omitempty"`
}

// Template is what each node of a pool is made from.
type Template struct {
	// +optional
	Metadata TemplateMetadata `json:"metadata,omitempty"`
	Spec     TemplateSpec     `json:"spec"`
}

// TemplateMetadata is copied to each NodeClaim and node.
type TemplateMetadata struct {
	// Labels of each node; pods can select them. They count as requirements.
	// +kubebuilder:validation:MaxProperties=100
	// +mapType=atomic
	// +optional
	Labels map[string]LabelValue `json:"labels,omitempty"`

	// Annotations of each node.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// TemplateSpec is what each machine of a pool must be.
type TemplateSpec struct {
	// Taints are put on each node; pods must tolerate all of them.
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +optional
	Taints []Taint `json:"taints,omitempty"`

	// StartupTaints are put on each node and are taken off by somebody else
	// once the node is prepared; pods need not tolerate them.
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +optional
	StartupTaints []Taint `json:"startupTaints,omitempty"`

	// Requirements limit instance type, zone, capacity type and labels. Nothing
	// is added to them.
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	Requirements []Requirement `json:"requirements"`

	// NodeClassRef names the object with the cloud settings.
	NodeClassRef NodeClassRef `json:"nodeClassRef"`

	// TerminationGracePeriod bounds how long draining a node may take. Unset:
	// it may take for ever.
	// +optional
	TerminationGracePeriod *Duration `json:"terminationGracePeriod,omitempty"`

	// ExpireAfter is the age at which a node is removed, or Never.
	// +kubebuilder:default="720h"
	// +optional
	ExpireAfter DurationOrNever `json:"expireAfter,omitempty"`
}

// NodePoolStatus is what was found.
type NodePoolStatus struct {
	// Resources are the capacity of all nodes of this pool together.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`
	// Nodes is their number.
	// +optional
	Nodes *int64 `json:"nodes,omitempty"`
	// NodeClassObservedGeneration is the generation of the class when the health
	// of registration was last reset.
	// +optional
	NodeClassObservedGeneration int64 `json:"nodeClassObservedGeneration,omitempty"`
	// Conditions: Ready says whether nodes can be bought.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
