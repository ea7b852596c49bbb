package convert

import (
	"testing"
	"time"

	"karpenter/internal/core/world"
)

func TestWindows(t *testing.T) {
	at := func(text string) time.Time {
		v, err := time.Parse("2006-01-02 15:04:05", text)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, c := range []struct {
		name, schedule string
		duration       time.Duration
		now            string
		open           bool
		ends           string // empty: never
	}{
		{"by day", "0 6 * * *", 16 * time.Hour, "2030-01-01 12:00:00", true, "2030-01-01 22:00:00"},
		{"the last second", "0 6 * * *", 16 * time.Hour, "2030-01-01 21:59:59", true, "2030-01-01 22:00:00"},
		{"the end is outside", "0 6 * * *", 16 * time.Hour, "2030-01-01 22:00:00", false, ""},
		{"the beginning is inside", "0 6 * * *", 16 * time.Hour, "2030-01-01 06:00:00", true, "2030-01-01 22:00:00"},
		{"before", "0 6 * * *", 16 * time.Hour, "2030-01-01 05:59:59", false, ""},
		{"over midnight", "0 22 * * *", 4 * time.Hour, "2030-01-02 01:00:00", true, "2030-01-02 02:00:00"},
		{"the weekend", "@weekly", 24 * time.Hour, "2030-01-06 13:00:00", true, "2030-01-07 00:00:00"},
		{"windows that touch never close", "@hourly", time.Hour, "2030-01-01 12:30:00", true, ""},
		{"a day that comes rarely", "0 0 29 2 *", 24 * time.Hour, "2030-01-01 00:00:00", false, ""},
		{"a day that never comes", "0 0 31 2 *", 24 * time.Hour, "2030-01-01 00:00:00", false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := world.Pool{Disruption: world.Disruption{Budgets: []world.Budget{{Nodes: "0", Schedule: c.schedule, Duration: &world.Duration{Duration: c.duration}}}}}
			Windows(&p, at(c.now))
			b := p.Disruption.Budgets[0]
			if b.Inactive == c.open || (b.Ends != nil) != (c.ends != "") || b.Ends != nil && !b.Ends.Equal(at(c.ends)) {
				t.Errorf("inactive %v, ends %v", b.Inactive, b.Ends)
			}
		})
	}
}

// What cannot be read lets nothing go.
func TestABudgetThatCannotBeReadLetsNothingGo(t *testing.T) {
	p := world.Pool{Disruption: world.Disruption{Budgets: []world.Budget{{Nodes: "100%", Schedule: "61 * * * *", Duration: &world.Duration{Duration: time.Hour}}}}}
	Windows(&p, time.Unix(0, 0))
	if b := p.Disruption.Budgets[0]; b.Inactive || b.Nodes != "0" {
		t.Errorf("%+v", b)
	}
}
