package v1alpha5

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Kind of a Provisioner.
const Kind = "Provisioner"

// ConditionReady of a Provisioner: it can buy nodes. Reason and message say
// why not.
const ConditionReady = "Ready"

// Provisioner says which nodes may be bought for pods that find no place, and
// when they are removed.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=karpenter
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Template",type=string,JSONPath=`.spec.providerRef.name`,description="AWSNodeTemplate that nodes are made from"
// +kubebuilder:printcolumn:name="Weight",type=integer,JSONPath=`.spec.weight`,description="Greatest weight is tried first"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether nodes can be bought"
// +kubebuilder:printcolumn:name="CPU",type=string,JSONPath=`.status.resources.cpu`,description="CPU of all nodes together"
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.status.resources.memory`,description="Memory of all nodes together"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="CPU Limit",type=string,JSONPath=`.spec.limits.resources.cpu`,priority=1
// +kubebuilder:printcolumn:name="Memory Limit",type=string,JSONPath=`.spec.limits.resources.memory`,priority=1
// +kubebuilder:printcolumn:name="Empty TTL",type=integer,JSONPath=`.spec.ttlSecondsAfterEmpty`,priority=1
// +kubebuilder:printcolumn:name="Expiry TTL",type=integer,JSONPath=`.spec.ttlSecondsUntilExpired`,priority=1
// +kubebuilder:printcolumn:name="Consolidation",type=boolean,JSONPath=`.spec.consolidation.enabled`,priority=1
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$')",message="metadata.name must start with a lower-case letter, hold only lower-case letters, digits and '-', not end in '-', and be at most 63 characters long",fieldPath=".metadata"
type Provisioner struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec ProvisionerSpec `json:"spec,omitempty"`
	// +optional
	Status ProvisionerStatus `json:"status,omitempty"`
}

// ProvisionerList is a list of Provisioners.
//
// +kubebuilder:object:root=true
type ProvisionerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Provisioner `json:"items"`
}

// ProvisionerSpec is what the user wants.
//
// +kubebuilder:validation:XValidation:rule="!has(self.provider) || !has(self.providerRef)",message="provider and providerRef exclude each other: set exactly one, preferably providerRef",fieldPath=".provider"
// +kubebuilder:validation:XValidation:rule="!has(self.ttlSecondsAfterEmpty) || !has(self.consolidation) || !has(self.consolidation.enabled) || !self.consolidation.enabled",message="ttlSecondsAfterEmpty and consolidation.enabled exclude each other: consolidation removes empty nodes already, so drop one of the two",fieldPath=".ttlSecondsAfterEmpty"
// +kubebuilder:validation:XValidation:rule="!has(self.taints) || !has(self.startupTaints) || self.taints.all(t, !self.startupTaints.exists(s, s.key == t.key && s.effect == t.effect))",message="taints and startupTaints must not hold the same pair of key and effect",fieldPath=".startupTaints"
type ProvisionerSpec struct {
	// Annotations are copied to each node. Of the domain karpenter.sh only those
	// that keep a node from being moved are for users.
	// +kubebuilder:validation:MaxProperties=100
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^([A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?([.][A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]$') && k.indexOf('/') <= 253)",message="every annotation key must be a qualified name: an optional DNS subdomain and '/', then at most 63 letters, digits, '-', '_' or '.', with a letter or digit at both ends"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['karpenter.sh/do-not-consolidate', 'karpenter.sh/do-not-evict', 'karpenter.sh/do-not-disrupt'] || !k.matches('^([^/]*[.])?karpenter[.]sh/'))",messageExpression="'annotation ' + self.filter(k, !(k in ['karpenter.sh/do-not-consolidate', 'karpenter.sh/do-not-evict', 'karpenter.sh/do-not-disrupt'] || !k.matches('^([^/]*[.])?karpenter[.]sh/')))[0] + ' is restricted: with annotations of the domain karpenter.sh the controller keeps its own state on nodes; allowed are karpenter.sh/do-not-consolidate, do-not-evict and do-not-disrupt; remove it'"
	// +kubebuilder:validation:XValidation:rule="self.map(k, size(k) + size(self[k])).sum() <= 32768",message="annotations must not be longer than 32768 characters, all keys and values together"
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// Labels are copied to each node; pods can select them.
	// +kubebuilder:validation:MaxProperties=100
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]$') && k.indexOf('/') <= 253)",message="every label key must be a qualified name: an optional DNS subdomain and '/', then at most 63 letters, digits, '-', '_' or '.', with a letter or digit at both ends"
	// +kubebuilder:validation:XValidation:rule="!('karpenter.sh/provisioner-name' in self) && !('karpenter.sh/nodepool' in self)",message="labels karpenter.sh/provisioner-name and karpenter.sh/nodepool are not for users: every node is labelled with the name of its Provisioner anyway; remove them"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['karpenter.sh/provisioner-name', 'karpenter.sh/nodepool'] || k in ['karpenter.sh/capacity-type','topology.kubernetes.io/zone','topology.kubernetes.io/region','node.kubernetes.io/instance-type','kubernetes.io/arch','kubernetes.io/os','karpenter.k8s.aws/instance-hypervisor','karpenter.k8s.aws/instance-encryption-in-transit-supported','karpenter.k8s.aws/instance-category','karpenter.k8s.aws/instance-generation','karpenter.k8s.aws/instance-family','karpenter.k8s.aws/instance-size','karpenter.k8s.aws/instance-cpu','karpenter.k8s.aws/instance-cpu-manufacturer','karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz','karpenter.k8s.aws/instance-capability-flex','karpenter.k8s.aws/instance-memory','karpenter.k8s.aws/instance-pods','karpenter.k8s.aws/instance-local-nvme','karpenter.k8s.aws/instance-network-bandwidth','karpenter.k8s.aws/instance-ebs-bandwidth','karpenter.k8s.aws/instance-gpu-name','karpenter.k8s.aws/instance-gpu-manufacturer','karpenter.k8s.aws/instance-gpu-count','karpenter.k8s.aws/instance-gpu-memory','karpenter.k8s.aws/instance-accelerator-name','karpenter.k8s.aws/instance-accelerator-manufacturer','karpenter.k8s.aws/instance-accelerator-count'] || k.matches('^(kops[.]k8s[.]io|node[.]kubernetes[.]io|node-restriction[.]kubernetes[.]io|testing[.]karpenter[.]sh)/') || !k.matches('^([^/]*[.])?(kubernetes[.]io|k8s[.]io|karpenter[.]sh|karpenter[.]k8s[.]aws)/'))",messageExpression="'label ' + self.filter(k, !(k in ['karpenter.sh/provisioner-name', 'karpenter.sh/nodepool'] || k in ['karpenter.sh/capacity-type','topology.kubernetes.io/zone','topology.kubernetes.io/region','node.kubernetes.io/instance-type','kubernetes.io/arch','kubernetes.io/os','karpenter.k8s.aws/instance-hypervisor','karpenter.k8s.aws/instance-encryption-in-transit-supported','karpenter.k8s.aws/instance-category','karpenter.k8s.aws/instance-generation','karpenter.k8s.aws/instance-family','karpenter.k8s.aws/instance-size','karpenter.k8s.aws/instance-cpu','karpenter.k8s.aws/instance-cpu-manufacturer','karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz','karpenter.k8s.aws/instance-capability-flex','karpenter.k8s.aws/instance-memory','karpenter.k8s.aws/instance-pods','karpenter.k8s.aws/instance-local-nvme','karpenter.k8s.aws/instance-network-bandwidth','karpenter.k8s.aws/instance-ebs-bandwidth','karpenter.k8s.aws/instance-gpu-name','karpenter.k8s.aws/instance-gpu-manufacturer','karpenter.k8s.aws/instance-gpu-count','karpenter.k8s.aws/instance-gpu-memory','karpenter.k8s.aws/instance-accelerator-name','karpenter.k8s.aws/instance-accelerator-manufacturer','karpenter.k8s.aws/instance-accelerator-count'] || k.matches('^(kops[.]k8s[.]io|node[.]kubernetes[.]io|node-restriction[.]kubernetes[.]io|testing[.]karpenter[.]sh)/') || !k.matches('^([^/]*[.])?(kubernetes[.]io|k8s[.]io|karpenter[.]sh|karpenter[.]k8s[.]aws)/')))[0] + ' is restricted: the domains kubernetes.io, k8s.io, karpenter.sh and karpenter.k8s.aws are reserved; allowed are their well-known labels (zone, region, arch, os, instance-type, capacity-type, karpenter.k8s.aws/instance-*), the domains kops.k8s.io, node.kubernetes.io, node-restriction.kubernetes.io and testing.karpenter.sh, and any other domain'"
	// +optional
	Labels map[string]LabelValue `json:"labels,omitempty"`

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

	// Requirements limit which nodes may be bought. Where os, arch, capacity
	// type or everything about the instance type is left open, these hold:
	// linux, amd64, on-demand, categories c, m and r of generation 3 or later.
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +optional
	Requirements []Requirement `json:"requirements,omitempty"`

	// KubeletConfiguration are settings of the kubelet on each node.
	// +optional
	KubeletConfiguration *KubeletConfiguration `json:"kubeletConfiguration,omitempty"`

	// Provider holds the cloud settings inline. Deprecated: use providerRef.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	// +optional
	Provider *runtime.RawExtension `json:"provider,omitempty"`

	// ProviderRef names the AWSNodeTemplate with the cloud settings.
	// +optional
	ProviderRef *ProviderRef `json:"providerRef,omitempty"`

	// TTLSecondsAfterEmpty: a node is removed after it has held no pods (other
	// than those of DaemonSets) for this long. Unset: never.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TTLSecondsAfterEmpty *int64 `json:"ttlSecondsAfterEmpty,omitempty"`

	// TTLSecondsUntilExpired: a node is replaced at this age; 0 means at once.
	// Unset: never.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TTLSecondsUntilExpired *int64 `json:"ttlSecondsUntilExpired,omitempty"`

	// Limits cap what all nodes of this Provisioner have together.
	// +optional
	Limits *Limits `json:"limits,omitempty"`

	// Weight orders Provisioners: the greatest is tried first. Unset: 0.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	Weight *int32 `json:"weight,omitempty"`

	// Consolidation removes and replaces nodes to lower the price.
	// +optional
	Consolidation *Consolidation `json:"consolidation,omitempty"`
}

// LabelValue is the value of a label.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
type LabelValue string

// Taint keeps pods off a node unless they tolerate it.
//
// +kubebuilder:validation:XValidation:rule="self.key.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]$') && self.key.indexOf('/') <= 253",message="key must be a qualified name: an optional DNS subdomain and '/', then at most 63 letters, digits, '-', '_' or '.', with a letter or digit at both ends",fieldPath=".key"
// +kubebuilder:validation:XValidation:rule="!(self.key in ['karpenter.sh/unregistered', 'karpenter.sh/disrupted'])",messageExpression="'taint ' + self.key + ' is not for users: the controller puts it on nodes and takes it off itself; remove it'",fieldPath=".key"
type Taint struct {
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key"`
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
	// +optional
	Value string `json:"value,omitempty"`
	// Effect is NoSchedule, PreferNoSchedule or NoExecute; an empty one is
	// accepted and has no effect.
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute;""
	Effect corev1.TaintEffect `json:"effect"`
	// +optional
	TimeAdded *metav1.Time `json:"timeAdded,omitempty"`
}

// Requirement limits the values that one label of a node may have.
//
// +kubebuilder:validation:XValidation:rule="self.key.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]$') && self.key.indexOf('/') <= 253",message="key must be a qualified name: an optional DNS subdomain and '/', then at most 63 letters, digits, '-', '_' or '.', with a letter or digit at both ends",fieldPath=".key"
// +kubebuilder:validation:XValidation:rule="!(self.key in ['karpenter.sh/provisioner-name', 'karpenter.sh/nodepool'])",message="karpenter.sh/provisioner-name and karpenter.sh/nodepool are not for users: every node is labelled with the name of its Provisioner anyway; remove this requirement",fieldPath=".key"
// +kubebuilder:validation:XValidation:rule="self.key in ['karpenter.sh/provisioner-name', 'karpenter.sh/nodepool'] || self.key in ['karpenter.sh/capacity-type','topology.kubernetes.io/zone','topology.kubernetes.io/region','node.kubernetes.io/instance-type','kubernetes.io/arch','kubernetes.io/os','karpenter.k8s.aws/instance-hypervisor','karpenter.k8s.aws/instance-encryption-in-transit-supported','karpenter.k8s.aws/instance-category','karpenter.k8s.aws/instance-generation','karpenter.k8s.aws/instance-family','karpenter.k8s.aws/instance-size','karpenter.k8s.aws/instance-cpu','karpenter.k8s.aws/instance-cpu-manufacturer','karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz','karpenter.k8s.aws/instance-capability-flex','karpenter.k8s.aws/instance-memory','karpenter.k8s.aws/instance-pods','karpenter.k8s.aws/instance-local-nvme','karpenter.k8s.aws/instance-network-bandwidth','karpenter.k8s.aws/instance-ebs-bandwidth','karpenter.k8s.aws/instance-gpu-name','karpenter.k8s.aws/instance-gpu-manufacturer','karpenter.k8s.aws/instance-gpu-count','karpenter.k8s.aws/instance-gpu-memory','karpenter.k8s.aws/instance-accelerator-name','karpenter.k8s.aws/instance-accelerator-manufacturer','karpenter.k8s.aws/instance-accelerator-count','failure-domain.beta.kubernetes.io/zone','failure-domain.beta.kubernetes.io/region','beta.kubernetes.io/arch','beta.kubernetes.io/os','beta.kubernetes.io/instance-type'] || self.key.matches('^(kops[.]k8s[.]io|node[.]kubernetes[.]io|node-restriction[.]kubernetes[.]io|testing[.]karpenter[.]sh)/') || !self.key.matches('^([^/]*[.])?(kubernetes[.]io|k8s[.]io|karpenter[.]sh|karpenter[.]k8s[.]aws)/')",messageExpression="'label ' + self.key + ' is restricted: the domains kubernetes.io, k8s.io, karpenter.sh and karpenter.k8s.aws are reserved; allowed are their well-known labels (zone, region, arch, os, instance-type, capacity-type, karpenter.k8s.aws/instance-*), the domains kops.k8s.io, node.kubernetes.io, node-restriction.kubernetes.io and testing.karpenter.sh, and any other domain'",fieldPath=".key"
// +kubebuilder:validation:XValidation:rule="self.operator != 'In' || (has(self.values) && size(self.values) > 0)",message="operator In needs at least one value",fieldPath=".values"
// +kubebuilder:validation:XValidation:rule="!(self.operator in ['Gt', 'Lt']) || (has(self.values) && size(self.values) == 1 && self.values[0].matches('^[0-9]{1,18}$'))",messageExpression="'operator ' + self.operator + ' needs exactly one value, and it must be an integer of 0 or more'",fieldPath=".values"
type Requirement struct {
	// Key of the label.
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key"`
	// Operator: In, NotIn, Exists, DoesNotExist, Gt or Lt.
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist;Gt;Lt
	Operator corev1.NodeSelectorOperator `json:"operator"`
	// Values: at least one for In, exactly one integer of 0 or more for Gt and
	// Lt; they mean nothing for Exists and DoesNotExist.
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
	// +listType=atomic
	// +optional
	Values []string `json:"values,omitempty"`
}

// ProviderRef names an AWSNodeTemplate. Only the name is looked at.
type ProviderRef struct {
	// +optional
	Kind string `json:"kind,omitempty"`
	// +optional
	Name string `json:"name,omitempty"`
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
}

// Limits cap a sum of resources.
type Limits struct {
	// Resources by name: cpu, memory, nvidia.com/gpu, …
	// +kubebuilder:validation:MaxProperties=30
	// +kubebuilder:validation:XValidation:rule="self.all(k, type(self[k]) == int || isQuantity(self[k]))",message="every limit must be a quantity, such as 100 or 400Gi"
	// +kubebuilder:validation:XValidation:rule="self.all(k, type(self[k]) == int ? self[k] >= 0 : !self[k].startsWith('-'))",message="limits must be 0 or more"
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`
}

// Consolidation removes and replaces nodes to lower the price.
type Consolidation struct {
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
}

// ProvisionerStatus is what was found.
type ProvisionerStatus struct {
	// LastScaleTime is when a node was last bought.
	// +optional
	LastScaleTime *metav1.Time `json:"lastScaleTime,omitempty"`
	// Resources are the capacity of all nodes of this Provisioner together.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`
	// Conditions: Ready says whether nodes can be bought.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
