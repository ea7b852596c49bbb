package notice

import (
	"cmp"
	"slices"
	"time"

	"karpenter/internal/cloud"
)

// Status is what EC2 finds about one instance that is not well, or for which
// something is planned.
type Status struct {
	ID string
	// InstanceImpaired and SystemImpaired are since when the checks of the
	// instance, or of what it runs on, have failed; zero if they pass.
	InstanceImpaired time.Time
	SystemImpaired   time.Time
	// Events are planned for the instance, without those that are over.
	Events []StatusEvent
}

// StatusEvent is something planned for an instance.
type StatusEvent struct {
	ID        string
	Code      string // such as instance-retirement
	NotBefore time.Time
}

// impairedFor is how long checks must have failed before it counts.
const impairedFor = 120 * time.Second

// FromStatus takes notice of instances that have been impaired for two minutes,
// or for which something is planned. An instance has one notice at most; a
// planned event comes first, as it has a date.
func FromStatus(list []Status, now time.Time) []cloud.Notice {
	var out []cloud.Notice
	for _, s := range list {
		n := cloud.Notice{Instances: []string{s.ID}}
		switch {
		case len(s.Events) > 0:
			first := slices.MinFunc(s.Events, func(a, b StatusEvent) int {
				return cmp.Or(a.NotBefore.Compare(b.NotBefore), cmp.Compare(a.ID, b.ID))
			})
			n.Kind, n.ID, n.Detail, n.At, n.Deadline = cloud.ScheduledChange, first.ID, first.Code, now, first.NotBefore
		case longImpaired(s.SystemImpaired, now):
			n.Kind, n.At = cloud.SystemImpaired, s.SystemImpaired
		case longImpaired(s.InstanceImpaired, now):
			n.Kind, n.At = cloud.InstanceImpaired, s.InstanceImpaired
		default:
			continue
		}
		out = append(out, n)
	}
	return out
}

func longImpaired(since, now time.Time) bool {
	return !since.IsZero() && now.Sub(since) >= impairedFor
}
