package v1

// TagSelector is what tags must be; the value * stands for any.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=20
// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) > 0 && size(self[k]) > 0)",message="tags must not hold an empty key or value; use '*' for any value"
type TagSelector map[string]string

// SubnetSelectorTerm finds subnets by tags or by id.
//
// +kubebuilder:validation:XValidation:rule="has(self.tags) != has(self.id)",message="a term must have exactly one of tags and id"
type SubnetSelectorTerm struct {
	// +optional
	Tags TagSelector `json:"tags,omitempty"`
	// +kubebuilder:validation:Pattern=`^subnet-[0-9a-z]+$`
	// +optional
	ID string `json:"id,omitempty"`
}

// SecurityGroupSelectorTerm finds security groups by tags, by id or by name.
//
// +kubebuilder:validation:XValidation:rule="[has(self.tags), has(self.id), has(self.name)].exists_one(x, x)",message="a term must have exactly one of tags, id and name"
type SecurityGroupSelectorTerm struct {
	// +optional
	Tags TagSelector `json:"tags,omitempty"`
	// +kubebuilder:validation:Pattern=`^sg-[0-9a-z]+$`
	// +optional
	ID string `json:"id,omitempty"`
	// Name of the group itself, which is not its tag Name.
	// +optional
	Name string `json:"name,omitempty"`
}

// AMISelectorTerm finds images.
//
// +kubebuilder:validation:XValidation:rule="has(self.alias) || has(self.id) || has(self.name) || has(self.tags) || has(self.ssmParameter)",message="a term needs one of alias, id, name, tags and ssmParameter; owner alone is not enough"
// +kubebuilder:validation:XValidation:rule="!has(self.alias) || !(has(self.id) || has(self.name) || has(self.owner) || has(self.tags) || has(self.ssmParameter))",message="alias must be the only field of its term",fieldPath=".alias"
// +kubebuilder:validation:XValidation:rule="!has(self.id) || !(has(self.alias) || has(self.name) || has(self.owner) || has(self.tags) || has(self.ssmParameter))",message="id must be the only field of its term",fieldPath=".id"
// +kubebuilder:validation:XValidation:rule="!has(self.ssmParameter) || !(has(self.alias) || has(self.id) || has(self.name) || has(self.owner) || has(self.tags))",message="ssmParameter must be the only field of its term",fieldPath=".ssmParameter"
type AMISelectorTerm struct {
	// Alias is a family and a version of it, such as al2023@latest or
	// bottlerocket@v1.20.5.
	// +kubebuilder:validation:MaxLength=30
	// +kubebuilder:validation:XValidation:rule="!self.matches('^windows[0-9]*@')",message="Windows is not supported yet; use an alias of al2, al2023 or bottlerocket"
	// +kubebuilder:validation:XValidation:rule="self.matches('^windows[0-9]*@') || self.matches('^((al2|al2023)@(latest|v[0-9]{8})|bottlerocket@(latest|v?[0-9]+[.][0-9]+[.][0-9]+))$')",message="alias must be a family (al2, al2023, bottlerocket), '@' and a version: latest, or one such as v20240807 (al2, al2023) or v1.20.5 (bottlerocket)"
	// +optional
	Alias string `json:"alias,omitempty"`
	// +optional
	Tags TagSelector `json:"tags,omitempty"`
	// +kubebuilder:validation:Pattern=`^ami-[0-9a-z]+$`
	// +optional
	ID string `json:"id,omitempty"`
	// Name of the image; * and ? stand for any characters.
	// +optional
	Name string `json:"name,omitempty"`
	// Owner is an account, self or amazon. Unset: self and amazon.
	// +optional
	Owner string `json:"owner,omitempty"`
	// SSMParameter is the name or ARN of a parameter that holds an image id.
	// +optional
	SSMParameter string `json:"ssmParameter,omitempty"`
}

// CapacityReservationSelectorTerm finds capacity reservations by id, or by tags
// and matching criteria.
type CapacityReservationSelectorTerm struct {
	// +optional
	Tags TagSelector `json:"tags,omitempty"`
	// +kubebuilder:validation:Pattern=`^cr-[0-9a-z]+$`
	// +optional
	ID string `json:"id,omitempty"`
	// +kubebuilder:validation:Pattern=`^[0-9]{12}$`
	// +optional
	OwnerID string `json:"ownerID,omitempty"`
	// +kubebuilder:validation:Enum=open;targeted
	// +optional
	InstanceMatchCriteria string `json:"instanceMatchCriteria,omitempty"`
}

// PlacementGroupSelector names a placement group.
type PlacementGroupSelector struct {
	// +optional
	Name string `json:"name,omitempty"`
	// +kubebuilder:validation:Pattern=`^pg-[0-9a-z]+$`
	// +optional
	ID string `json:"id,omitempty"`
}
