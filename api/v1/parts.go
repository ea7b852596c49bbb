package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Never is the value of a DurationOrNever that never comes.
const Never = "Never"

// Duration is a length of time in hours, minutes and seconds, such as 1h30m.
//
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+[smh])+$') && duration(self) >= duration('0s')",message="must be a duration in hours, minutes and seconds, such as 1h30m"
type Duration string

// DurationOrNever is a length of time in hours, minutes and seconds, or Never.
//
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="self == 'Never' || (self.matches('^([0-9]+[smh])+$') && duration(self) >= duration('0s'))",message="must be a duration in hours, minutes and seconds, such as 1h30m, or Never"
type DurationOrNever string

// LabelValue is the value of a label.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
type LabelValue string

// Taint keeps pods off a node unless they tolerate it. It converts to and from
// the core type.
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

// Requirement limits the values that one label of the node may have.
//
// +kubebuilder:validation:XValidation:rule="self.key.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]$') && self.key.indexOf('/') <= 253",message="key must be a qualified name: an optional DNS subdomain and '/', then at most 63 letters, digits, '-', '_' or '.', with a letter or digit at both ends",fieldPath=".key"
// +kubebuilder:validation:XValidation:rule="self.operator != 'In' || (has(self.values) && size(self.values) > 0)",message="operator In needs at least one value",fieldPath=".values"
// +kubebuilder:validation:XValidation:rule="!(self.operator in ['Gt', 'Lt', 'Gte', 'Lte']) || (has(self.values) && size(self.values) == 1 && self.values[0].matches('^[0-9]{1,18}$'))",messageExpression="'operator ' + self.operator + ' needs exactly one value, and it must be an integer of 0 or more'",fieldPath=".values"
// +kubebuilder:validation:XValidation:rule="self.operator != 'In' || !has(self.minValues) || (has(self.values) && size(self.values) >= self.minValues)",message="minValues must not be greater than the number of values",fieldPath=".minValues"
type Requirement struct {
	// Key of the label.
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key"`
	// Operator: In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte or Lte.
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist;Gt;Lt;Gte;Lte
	Operator corev1.NodeSelectorOperator `json:"operator"`
	// Values may be many: a claim lists every instance type that would do.
	// +kubebuilder:validation:MaxItems=2000
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
	// +listType=atomic
	// +optional
	Values []string `json:"values,omitempty"`
	// MinValues is the least number of different values that the instance types
	// to choose from must have.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=50
	// +optional
	MinValues *int `json:"minValues,omitempty"`
}

// NodeClassRef names the object with the cloud settings.
type NodeClassRef struct {
	// +kubebuilder:validation:Pattern=`^[^/]+$`
	Group string `json:"group"`
	// +kubebuilder:validation:MinLength=1
	Kind string `json:"kind"`
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}
