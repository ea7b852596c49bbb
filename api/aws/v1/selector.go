package v1

// TagSelector is what tags must be; the value * stands for any.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=20
type TagSelector map[string]string

// SubnetSelectorTerm finds subnets by tags or by id.
type SubnetSelectorTerm struct {
	// +optional
	Tags TagSelector `json:"tags,omitempty"`
	// +kubebuilder:validation:Pattern=`^subnet-[0-9a-z]+$`
	// +optional
	ID string `json:"id,omitempty"`
}

// SecurityGroupSelectorTerm finds security groups by tags, by id or by name.
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
type AMISelectorTerm struct {
	// Alias is a family and a version of it, such as al2023@latest or
	// bottlerocket@v1.20.5.
	// +kubebuilder:validation:MaxLength=30
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
