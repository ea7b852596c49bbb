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
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name must not be longer than 63 characters, because it becomes the value of a label",fieldPath=".metadata"
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
//
// +kubebuilder:validation:XValidation:rule="!has(self.replicas)",message="replicas: static pools are not supported yet; remove it, and the pool is sized by the pods that wait",fieldPath=".replicas"
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
	// +kubebuilder:validation:MaxProperties=30
	// +kubebuilder:validation:XValidation:rule="self.all(k, type(self[k]) == int || isQuantity(self[k]))",message="every limit must be a quantity, such as 100 or 400Gi"
	// +kubebuilder:validation:XValidation:rule="self.all(k, type(self[k]) == int ? self[k] >= 0 : !self[k].startsWith('-'))",message="limits must be 0 or more"
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
//
// +kubebuilder:validation:XValidation:rule="size(self.spec.requirements) + (has(self.metadata) && has(self.metadata.labels) ? size(self.metadata.labels) : 0) <= 100",message="labels and requirements together must not be more than 100",fieldPath=".spec.requirements"
type Template struct {
	// +optional
	Metadata TemplateMetadata `json:"metadata,omitempty"`
	Spec     TemplateSpec     `json:"spec"`
}

// TemplateMetadata is copied to each NodeClaim and node.
type TemplateMetadata struct {
	// Labels of each node; pods can select them. They count as requirements.
	// +kubebuilder:validation:MaxProperties=100
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]$') && k.indexOf('/') <= 253)",message="every label key must be a qualified name: an optional DNS subdomain and '/', then at most 63 letters, digits, '-', '_' or '.', with a letter or digit at both ends"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k in ['karpenter.sh/nodepool', 'karpenter.sh/provisioner-name']))",message="labels karpenter.sh/nodepool and karpenter.sh/provisioner-name are not for users: every node is labelled with the name of its pool anyway; remove them"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['karpenter.sh/nodepool', 'karpenter.sh/provisioner-name'] || k in ['karpenter.sh/capacity-type','karpenter.k8s.aws/instance-hypervisor','karpenter.k8s.aws/instance-encryption-in-transit-supported','karpenter.k8s.aws/instance-category','karpenter.k8s.aws/instance-generation','karpenter.k8s.aws/instance-family','karpenter.k8s.aws/instance-size','karpenter.k8s.aws/instance-cpu','karpenter.k8s.aws/instance-cpu-manufacturer','karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz','karpenter.k8s.aws/instance-capability-flex','karpenter.k8s.aws/instance-memory','karpenter.k8s.aws/instance-pods','karpenter.k8s.aws/instance-local-nvme','karpenter.k8s.aws/instance-network-bandwidth','karpenter.k8s.aws/instance-ebs-bandwidth','karpenter.k8s.aws/instance-gpu-name','karpenter.k8s.aws/instance-gpu-manufacturer','karpenter.k8s.aws/instance-gpu-count','karpenter.k8s.aws/instance-gpu-memory','karpenter.k8s.aws/instance-accelerator-name','karpenter.k8s.aws/instance-accelerator-manufacturer','karpenter.k8s.aws/instance-accelerator-count'] || (k != 'kubernetes.io/hostname' && !k.matches('^([^/]*[.])?karpenter[.](sh|k8s[.]aws)/')))",messageExpression="'label ' + self.filter(k, !(k in ['karpenter.sh/nodepool', 'karpenter.sh/provisioner-name'] || k in ['karpenter.sh/capacity-type','karpenter.k8s.aws/instance-hypervisor','karpenter.k8s.aws/instance-encryption-in-transit-supported','karpenter.k8s.aws/instance-category','karpenter.k8s.aws/instance-generation','karpenter.k8s.aws/instance-family','karpenter.k8s.aws/instance-size','karpenter.k8s.aws/instance-cpu','karpenter.k8s.aws/instance-cpu-manufacturer','karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz','karpenter.k8s.aws/instance-capability-flex','karpenter.k8s.aws/instance-memory','karpenter.k8s.aws/instance-pods','karpenter.k8s.aws/instance-local-nvme','karpenter.k8s.aws/instance-network-bandwidth','karpenter.k8s.aws/instance-ebs-bandwidth','karpenter.k8s.aws/instance-gpu-name','karpenter.k8s.aws/instance-gpu-manufacturer','karpenter.k8s.aws/instance-gpu-count','karpenter.k8s.aws/instance-gpu-memory','karpenter.k8s.aws/instance-accelerator-name','karpenter.k8s.aws/instance-accelerator-manufacturer','karpenter.k8s.aws/instance-accelerator-count'] || (k != 'kubernetes.io/hostname' && !k.matches('^([^/]*[.])?karpenter[.](sh|k8s[.]aws)/'))))[0] + ' is restricted: kubernetes.io/hostname and the domains karpenter.sh and karpenter.k8s.aws are reserved; allowed are their well-known labels (karpenter.sh/capacity-type, karpenter.k8s.aws/instance-*) and any other domain'"
	// +mapType=atomic
	// +optional
	Labels map[string]LabelValue `json:"labels,omitempty"`

	// Annotations of each node.
	// +kubebuilder:validation:MaxProperties=100
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^([A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?([.][A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]$') && k.indexOf('/') <= 253)",message="every annotation key must be a qualified name: an optional DNS subdomain and '/', then at most 63 letters, digits, '-', '_' or '.', with a letter or digit at both ends"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['karpenter.sh/do-not-consolidate', 'karpenter.sh/do-not-evict', 'karpenter.sh/do-not-disrupt'] || !k.matches('^([^/]*[.])?karpenter[.]sh/'))",messageExpression="'annotation ' + self.filter(k, !(k in ['karpenter.sh/do-not-consolidate', 'karpenter.sh/do-not-evict', 'karpenter.sh/do-not-disrupt'] || !k.matches('^([^/]*[.])?karpenter[.]sh/')))[0] + ' is restricted: with annotations of the domain karpenter.sh the controller keeps its own state on nodes; allowed are karpenter.sh/do-not-consolidate, do-not-evict and do-not-disrupt; remove it'"
	// +kubebuilder:validation:XValidation:rule="self.map(k, size(k) + size(self[k])).sum() <= 32768",message="annotations must not be longer than 32768 characters, all keys and values together"
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// TemplateSpec is what each machine of a pool must be.
//
// +kubebuilder:validation:XValidation:rule="!has(self.taints) || !has(self.startupTaints) || self.taints.all(t, !self.startupTaints.exists(s, s.key == t.key && s.effect == t.effect))",message="taints and startupTaints must not hold the same pair of key and effect",fieldPath=".startupTaints"
type TemplateSpec struct {
	// Taints are put on each node; pods must tolerate all of them.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(t, self.exists_one(o, o.key == t.key && o.effect == t.effect))",message="taints must not hold the same pair of key and effect twice"
	// +listType=atomic
	// +optional
	Taints []Taint `json:"taints,omitempty"`

	// StartupTaints are put on each node and are taken off by somebody else
	// once the node is prepared; pods need not tolerate them.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(t, self.exists_one(o, o.key == t.key && o.effect == t.effect))",message="startupTaints must not hold the same pair of key and effect twice"
	// +listType=atomic
	// +optional
	StartupTaints []Taint `json:"startupTaints,omitempty"`

	// Requirements limit instance type, zone, capacity type and labels. Nothing
	// is added to them.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:XValidation:rule="!(self.key in ['karpenter.sh/nodepool', 'karpenter.sh/provisioner-name'])",message="karpenter.sh/nodepool and karpenter.sh/provisioner-name are not for users: every node is labelled with the name of its pool anyway; remove the requirement",fieldPath=".key"
	// +kubebuilder:validation:items:XValidation:rule="self.key in ['karpenter.sh/nodepool', 'karpenter.sh/provisioner-name'] || self.key in ['karpenter.sh/capacity-type','karpenter.k8s.aws/instance-hypervisor','karpenter.k8s.aws/instance-encryption-in-transit-supported','karpenter.k8s.aws/instance-category','karpenter.k8s.aws/instance-generation','karpenter.k8s.aws/instance-family','karpenter.k8s.aws/instance-size','karpenter.k8s.aws/instance-cpu','karpenter.k8s.aws/instance-cpu-manufacturer','karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz','karpenter.k8s.aws/instance-capability-flex','karpenter.k8s.aws/instance-memory','karpenter.k8s.aws/instance-pods','karpenter.k8s.aws/instance-local-nvme','karpenter.k8s.aws/instance-network-bandwidth','karpenter.k8s.aws/instance-ebs-bandwidth','karpenter.k8s.aws/instance-gpu-name','karpenter.k8s.aws/instance-gpu-manufacturer','karpenter.k8s.aws/instance-gpu-count','karpenter.k8s.aws/instance-gpu-memory','karpenter.k8s.aws/instance-accelerator-name','karpenter.k8s.aws/instance-accelerator-manufacturer','karpenter.k8s.aws/instance-accelerator-count'] || (self.key != 'kubernetes.io/hostname' && !self.key.matches('^([^/]*[.])?karpenter[.](sh|k8s[.]aws)/'))",messageExpression="'label ' + self.key + ' is restricted: kubernetes.io/hostname and the domains karpenter.sh and karpenter.k8s.aws are reserved; allowed are their well-known labels (karpenter.sh/capacity-type, karpenter.k8s.aws/instance-*) and any other domain'",fieldPath=".key"
	// +kubebuilder:validation:items:XValidation:rule="self.key != 'karpenter.sh/capacity-type' || self.operator != 'In' || !has(self.values) || self.values.exists(v, v in ['spot', 'on-demand'])",message="the values of karpenter.sh/capacity-type must hold spot or on-demand; reserved capacity is not supported yet",fieldPath=".values"
	// +kubebuilder:validation:items:XValidation:rule="self.key != 'karpenter.sh/capacity-type' || self.operator != 'In' || !has(self.values) || !has(self.minValues) || size(self.values.filter(v, v in ['spot', 'on-demand'])) >= self.minValues",message="minValues of karpenter.sh/capacity-type must not be greater than the number of its values that are known: spot and on-demand",fieldPath=".minValues"
	// +listType=atomic
	Requirements []Requirement `json:"requirements"`

	// NodeClassRef names the object with the cloud settings.
	// +kubebuilder:validation:XValidation:rule="self.group == oldSelf.group",message="group cannot be changed: make another NodePool",fieldPath=".group"
	// +kubebuilder:validation:XValidation:rule="self.kind == oldSelf.kind",message="kind cannot be changed: make another NodePool",fieldPath=".kind"
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
