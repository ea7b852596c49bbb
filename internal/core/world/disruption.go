package world

import "time"

// Disruption is what a pool says about taking its machines away, beside the
// times and switches of [Pool].
type Disruption struct {
	// QuietFor: how long no pod may have come to a machine, or gone from it,
	// before it may be removed or replaced to lower the price; nil = no wait is
	// asked for.
	QuietFor *Duration `json:"quietFor,omitempty"`
	// Balanced: a change must gain enough to be worth the disruption.
	Balanced bool `json:"balanced,omitempty"`
	// Budgets cap how many machines may go at the same time; all of them hold.
	// Without any, one command runs at a time, and empty machines go at once.
	Budgets []Budget `json:"budgets,omitempty"`
	// ForcefulExpiry: a machine that expires is drained at once and its
	// replacement bought meanwhile, and budgets are not asked; otherwise the
	// replacement is ready first.
	ForcefulExpiry bool `json:"forcefulExpiry,omitempty"`
	// SpotToSpot is how many cheaper spot types must be left to choose from for a
	// spot machine to be replaced by another; 0 = it never is.
	SpotToSpot int `json:"spotToSpot,omitempty"`
}

// Budget caps how many machines of a pool may go at the same time.
type Budget struct {
	// Nodes is the cap: a number ("3") or a share of the pool's machines, rounded
	// up ("10%").
	Nodes string `json:"nodes"`
	// Reasons for which it holds: Underutilized, Empty, Drifted; none: all.
	Reasons []string `json:"reasons,omitempty"`
	// Schedule says, as five fields of cron in UTC or @daily and the like, when
	// the budget begins to hold, and Duration for how long; both are empty for
	// one that always holds.
	Schedule string    `json:"schedule,omitempty"`
	Duration *Duration `json:"duration,omitempty"`
	// Inactive: the snapshot was taken outside of its windows. Ends is when the
	// present window closes; nil without a schedule.
	Inactive bool       `json:"inactive,omitempty"`
	Ends     *time.Time `json:"ends,omitempty"`
}
