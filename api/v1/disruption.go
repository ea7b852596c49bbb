package v1

// ConsolidationPolicy says which nodes are removed to save money.
//
// +kubebuilder:validation:Enum=WhenEmpty;WhenEmptyOrUnderutilized;Balanced
type ConsolidationPolicy string

// Values of a ConsolidationPolicy.
const (
	ConsolidationWhenEmpty                ConsolidationPolicy = "WhenEmpty"                // nodes without pods that would have to move
	ConsolidationWhenEmptyOrUnderutilized ConsolidationPolicy = "WhenEmptyOrUnderutilized" // also nodes that are worth less than they cost
	ConsolidationBalanced                 ConsolidationPolicy = "Balanced"                 // the same, where the saving earns the disturbance
)

// DisruptionReason is a reason to remove a node that a budget can limit.
//
// +kubebuilder:validation:Enum=Underutilized;Empty;Drifted
type DisruptionReason string

// Values of a DisruptionReason.
const (
	ReasonUnderutilized DisruptionReason = "Underutilized"
	ReasonEmpty         DisruptionReason = "Empty"
	ReasonDrifted       DisruptionReason = "Drifted"
)

// Values where a disruption block says nothing.
const (
	DefaultConsolidationPolicy                 = ConsolidationWhenEmptyOrUnderutilized
	DefaultConsolidateAfter    DurationOrNever = "0s"
	DefaultExpireAfter         DurationOrNever = "720h"
	DefaultBudgetNodes                         = "10%"
)

// Disruption says when nodes are removed or replaced, and how many at once.
type Disruption struct {
	// ConsolidateAfter is how long after the last pod came or went a node may be
	// consolidated; Never turns consolidation off.
	// +kubebuilder:default="0s"
	// +optional
	ConsolidateAfter DurationOrNever `json:"consolidateAfter,omitempty"`

	// ConsolidationPolicy says which nodes are removed to save money.
	// +kubebuilder:default=WhenEmptyOrUnderutilized
	// +optional
	ConsolidationPolicy ConsolidationPolicy `json:"consolidationPolicy,omitempty"`

	// Budgets cap how many nodes are disrupted at once; the least of those that
	// hold now counts. Unset: 10% of the nodes.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:default={{nodes: "10%"}}
	// +listType=atomic
	// +optional
	Budgets []Budget `json:"budgets,omitempty"`
}

// Budget caps how many nodes are disrupted at once.
type Budget struct {
	// Reasons that the budget holds for. Unset: every reason.
	// +kubebuilder:validation:MaxItems=50
	// +listType=set
	// +optional
	Reasons []DisruptionReason `json:"reasons,omitempty"`

	// Nodes is a number, or a percentage of the nodes of the pool, which is
	// rounded up.
	// +kubebuilder:validation:Pattern=`^((100|[0-9]{1,2})%|[0-9]{1,9})$`
	// +kubebuilder:default="10%"
	Nodes string `json:"nodes"`

	// Schedule is when the budget begins to hold, as five cron fields or as
	// @hourly, @daily and the like, in UTC. Unset: it always holds.
	// +optional
	Schedule *string `json:"schedule,omitempty"`

	// Duration is how long it holds from then on, in hours and minutes.
	// +optional
	Duration *string `json:"duration,omitempty"`
}
