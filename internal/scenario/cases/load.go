package cases

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// usualEvery is how often a load is looked at that does not say.
const usualEvery = 10 * time.Minute

const day = 24 * time.Hour

// settle checks a load, and sorts its curve.
func (l *Load) settle(now time.Time) error {
	kinds := []string{"Deployment", "ReplicaSet", "StatefulSet"}
	target, field := l.Scale, "scale"
	if l.Run != "" {
		kinds, target, field = []string{"Job"}, l.Run, "run"
	}
	if (l.Scale == "") == (l.Run == "") {
		return errors.New("needs one of scale (what follows the curve) and run (a Job that is the template of those that come)")
	}
	kind, _, _, err := Target(target)
	if err == nil && !slices.Contains(kinds, kind) {
		err = fmt.Errorf("%s: must be a %s", target, strings.Join(kinds, ", "))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	if (len(l.At) == 0) == (len(l.Daily) == 0) {
		return errors.New("needs one of at (numbers by time since the start) and daily (numbers by time of day)")
	}
	if l.steps, err = points(l.At, func(s string) (time.Duration, error) {
		m := Moment{}
		err := m.parse(s)
		m.settle(now)
		return m.Duration, err
	}); err != nil {
		return fmt.Errorf("at: %w", err)
	}
	if l.hours, err = points(l.Daily, clock); err != nil {
		return fmt.Errorf("daily: %w", err)
	}
	return l.settleRest()
}

func (l *Load) settleRest() error {
	switch {
	case l.Jitter < 0 || l.Jitter > 1:
		return errors.New("jitter: must be from 0 to 1")
	case l.Weekend != nil && *l.Weekend < 0:
		return errors.New("weekend: cannot be negative")
	case l.Every.Duration < 0 || l.Every.Duration > 0 && l.Every.Duration < time.Second:
		return errors.New("every: must be at least 1s")
	case l.Run == "" && len(l.Lasts) > 0:
		return errors.New("lasts: belongs to run")
	case l.Run != "" && (len(l.Lasts) == 0 || len(l.Lasts) > 2):
		return errors.New("lasts: how long the pods of a job take is missing; it is a list of one or two times, such as [5m, 20m]")
	}
	l.Every.Duration = cmp.Or(l.Every.Duration, usualEvery)
	if len(l.Lasts) == 1 {
		l.Lasts = append(l.Lasts, l.Lasts[0])
	}
	if len(l.Lasts) == 2 && (l.Lasts[0].Duration <= 0 || l.Lasts[1].Duration < l.Lasts[0].Duration) {
		return errors.New("lasts: the second time must not be before the first, and both more than 0")
	}
	return nil
}

func points(numbers map[string]float64, read func(string) (time.Duration, error)) (out []point, err error) {
	for text, value := range numbers {
		at, err := read(text)
		if err != nil {
			return nil, err
		}
		if value < 0 || math.IsNaN(value) || value > 1e6 {
			return nil, fmt.Errorf("%s: %v: must be from 0 to a million", text, value)
		}
		out = append(out, point{at, value})
	}
	slices.SortFunc(out, func(a, b point) int { return cmp.Compare(a.at, b.at) })
	for i := 1; i < len(out); i++ {
		if out[i].at == out[i-1].at {
			return nil, fmt.Errorf("%s: is there twice", out[i].at)
		}
	}
	return out, nil
}

// clock reads a time of day.
func clock(s string) (time.Duration, error) {
	t, err := time.Parse("15:04", s)
	if err != nil {
		return 0, fmt.Errorf("%q: a time of day is written as 07:30", s)
	}
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute, nil
}

// Value is the number at a time since the start, before it is varied; ok is
// false where the curve has not begun.
func (l *Load) Value(start time.Time, since time.Duration) (value float64, ok bool) {
	if len(l.hours) == 0 {
		i, found := slices.BinarySearchFunc(l.steps, since, func(p point, at time.Duration) int { return cmp.Compare(p.at, at) })
		if !found {
			i--
		}
		if i < 0 {
			return 0, false
		}
		return l.steps[i].value, true
	}
	now := start.Add(since).UTC()
	value = l.ofDay(now.Sub(now.Truncate(day)))
	if w := now.Weekday(); l.Weekend != nil && (w == time.Saturday || w == time.Sunday) {
		value *= *l.Weekend
	}
	return value, true
}

// ofDay lies on a straight line between the points before and after, around
// midnight too.
func (l *Load) ofDay(at time.Duration) float64 {
	i, found := slices.BinarySearchFunc(l.hours, at, func(p point, at time.Duration) int { return cmp.Compare(p.at, at) })
	if found {
		return l.hours[i].value
	}
	n := len(l.hours)
	a, b := l.hours[(i+n-1)%n], l.hours[i%n]
	width, gone := b.at-a.at, at-a.at
	if width <= 0 {
		width += day
	}
	if gone < 0 {
		gone += day
	}
	return a.value + (b.value-a.value)*float64(gone)/float64(width)
}
