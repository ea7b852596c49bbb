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
//
// +kubebuilder:validation:XValidation:rule="has(self.schedule) == has(self.duration)",message="schedule and duration belong together: set both, or neither for a budget that always holds"
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
	Schedule *Schedule `json:"schedule,omitempty"`

	// Duration is how long it holds from then on, in hours and minutes.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+h([0-9]+m)?|[0-9]+m)(0s)?$') && duration(self) >= duration('0s')",message="must be a duration in hours and minutes, such as 8h or 1h30m"
	// +optional
	Duration *string `json:"duration,omitempty"`
}

// Schedule is five cron fields, or a word for them.
//
// +kubebuilder:validation:MaxLength=100
// +kubebuilder:validation:XValidation:rule="self.lowerAscii().matches('^(@(annually|yearly|monthly|weekly|daily|midnight|hourly)|([*?]|([0-5]?[0-9])(-([0-5]?[0-9]))?)(/[1-9][0-9]?)?(,([*?]|([0-5]?[0-9])(-([0-5]?[0-9]))?)(/[1-9][0-9]?)?)* +([*?]|([01]?[0-9]|2[0-3])(-([01]?[0-9]|2[0-3]))?)(/[1-9][0-9]?)?(,([*?]|([01]?[0-9]|2[0-3])(-([01]?[0-9]|2[0-3]))?)(/[1-9][0-9]?)?)* +([*?]|(0?[1-9]|[12][0-9]|3[01])(-(0?[1-9]|[12][0-9]|3[01]))?)(/[1-9][0-9]?)?(,([*?]|(0?[1-9]|[12][0-9]|3[01])(-(0?[1-9]|[12][0-9]|3[01]))?)(/[1-9][0-9]?)?)* +([*?]|(0?[1-9]|1[0-2]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)(-(0?[1-9]|1[0-2]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))?)(/[1-9][0-9]?)?(,([*?]|(0?[1-9]|1[0-2]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)(-(0?[1-9]|1[0-2]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))?)(/[1-9][0-9]?)?)* +([*?]|([0-6]|sun|mon|tue|wed|thu|fri|sat)(-([0-6]|sun|mon|tue|wed|thu|fri|sat))?)(/[1-9][0-9]?)?(,([*?]|([0-6]|sun|mon|tue|wed|thu|fri|sat)(-([0-6]|sun|mon|tue|wed|thu|fri|sat))?)(/[1-9][0-9]?)?)*)$')",messageExpression="'schedule ' + self + ' must be five cron fields (minute 0-59, hour 0-23, day 1-31, month 1-12 or jan-dec, weekday 0-6 or sun-sat), or @yearly, @monthly, @weekly, @daily or @hourly'"
// +kubebuilder:validation:XValidation:rule="!self.lowerAscii().matches('^(@(annually|yearly|monthly|weekly|daily|midnight|hourly)|([*?]|([0-5]?[0-9])(-([0-5]?[0-9]))?)(/[1-9][0-9]?)?(,([*?]|([0-5]?[0-9])(-([0-5]?[0-9]))?)(/[1-9][0-9]?)?)* +([*?]|([01]?[0-9]|2[0-3])(-([01]?[0-9]|2[0-3]))?)(/[1-9][0-9]?)?(,([*?]|([01]?[0-9]|2[0-3])(-([01]?[0-9]|2[0-3]))?)(/[1-9][0-9]?)?)* +([*?]|(0?[1-9]|[12][0-9]|3[01])(-(0?[1-9]|[12][0-9]|3[01]))?)(/[1-9][0-9]?)?(,([*?]|(0?[1-9]|[12][0-9]|3[01])(-(0?[1-9]|[12][0-9]|3[01]))?)(/[1-9][0-9]?)?)* +([*?]|(0?[1-9]|1[0-2]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)(-(0?[1-9]|1[0-2]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))?)(/[1-9][0-9]?)?(,([*?]|(0?[1-9]|1[0-2]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)(-(0?[1-9]|1[0-2]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))?)(/[1-9][0-9]?)?)* +([*?]|([0-6]|sun|mon|tue|wed|thu|fri|sat)(-([0-6]|sun|mon|tue|wed|thu|fri|sat))?)(/[1-9][0-9]?)?(,([*?]|([0-6]|sun|mon|tue|wed|thu|fri|sat)(-([0-6]|sun|mon|tue|wed|thu|fri|sat))?)(/[1-9][0-9]?)?)*)$') || self.lowerAscii().replace('jan', '1').replace('feb', '2').replace('mar', '3').replace('apr', '4').replace('may', '5').replace('jun', '6').replace('jul', '7').replace('aug', '8').replace('sep', '9').replace('oct', '10').replace('nov', '11').replace('dec', '12').replace('sun', '0').replace('mon', '1').replace('tue', '2').replace('wed', '3').replace('thu', '4').replace('fri', '5').replace('sat', '6').findAll('[0-9]+-[0-9]+').all(r, int(r.split('-')[0]) <= int(r.split('-')[1]))",messageExpression="'schedule ' + self + ' has a range that runs backwards; write it as two, such as 0,6 for the weekend'"
type Schedule string
