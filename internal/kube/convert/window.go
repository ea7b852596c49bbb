package convert

import (
	"time"

	"github.com/robfig/cron/v3"

	"karpenter/internal/core/world"
)

// mostHits is how many hits of a schedule are looked at for the end of a window.
// One that overlaps with itself for longer counts as always open.
const mostHits = 1000

// Windows says which budgets of the pool hold at this time, and until when. A
// budget holds when the first hit of its schedule after the time less its
// duration has come; schedules are in UTC. One that cannot be read always
// holds, and lets nothing go.
func Windows(pool *world.Pool, now time.Time) {
	for i := range pool.Disruption.Budgets {
		b := &pool.Disruption.Budgets[i]
		if b.Schedule == "" {
			continue
		}
		schedule, err := cron.ParseStandard(b.Schedule)
		if err != nil || b.Duration == nil {
			b.Nodes, b.Inactive, b.Ends = "0", false, nil
			continue
		}
		opened := schedule.Next(now.UTC().Add(-b.Duration.Duration))
		b.Inactive, b.Ends = opened.IsZero() || opened.After(now), nil
		if !b.Inactive {
			b.Ends = closes(schedule, opened, b.Duration.Duration)
		}
	}
}

// closes is when a window that is open closes: hits that come while it is open
// make it longer. nil: it does not.
func closes(schedule cron.Schedule, opened time.Time, d time.Duration) *time.Time {
	end := opened.Add(d)
	for range mostHits {
		next := schedule.Next(opened)
		if next.IsZero() || next.After(end) {
			return &end
		}
		opened, end = next, next.Add(d)
	}
	return nil
}
