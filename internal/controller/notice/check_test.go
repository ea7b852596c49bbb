package notice

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"karpenter/internal/cloud"
)

// check looks at status checks once, and fails unless it wants to run in a minute.
func (s *stage) check(t *testing.T) {
	t.Helper()
	next, err := s.Check(t.Context())
	if err != nil || !next.Equal(s.now.Add(time.Minute)) {
		t.Fatalf("next %v, error %v", next, err)
	}
}

func TestStatusChecks(t *testing.T) {
	later := noon.Add(48 * time.Hour)
	for name, c := range map[string]struct {
		notice cloud.Notice
		end    string
	}{
		"an impaired machine goes now":       {cloud.Notice{Kind: cloud.InstanceImpaired, Instances: []string{"i-1"}, At: noon.Add(-2 * time.Minute)}, noon.Format(time.RFC3339)},
		"so does one whose host is impaired": {cloud.Notice{Kind: cloud.SystemImpaired, Instances: []string{"i-1"}, At: noon.Add(-2 * time.Minute)}, noon.Format(time.RFC3339)},
		"a planned event has a date":         {cloud.Notice{Kind: cloud.ScheduledChange, ID: "e", Instances: []string{"i-1"}, At: noon, Deadline: later}, later.Format(time.RFC3339)},
		"that of another is not ours":        {cloud.Notice{Kind: cloud.InstanceImpaired, Instances: []string{"i-2"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.unwell = []cloud.Notice{c.notice}
			s.check(t)
			if got := s.end(t); got != c.end {
				t.Errorf("ends %q, want %q", got, c.end)
			}
			said := len(s.events)
			s.now = s.now.Add(time.Minute)
			s.check(t)
			if got := s.end(t); got != c.end || len(s.events) != said {
				t.Errorf("the same a minute later: ends %q, said %v", got, s.events)
			}
		})
	}
}

// TestStatusCheckIsTriedAgain: what could not be written down is acted upon the
// next time.
func TestStatusCheckIsTriedAgain(t *testing.T) {
	s := newStage(t)
	s.unwell = []cloud.Notice{{Kind: cloud.InstanceImpaired, Instances: []string{"i-1"}}}
	s.broken = errors.New("the API server is away")
	if _, err := s.Check(t.Context()); err == nil {
		t.Error("nobody hears of it")
	}
	s.broken = nil
	s.check(t)
	if s.end(t) == "" {
		t.Error("forgotten")
	}
}

// TestStatusChecksWithoutTheRight: it is said once, and not asked again. Any other
// failure is said once and asked again.
func TestStatusChecksWithoutTheRight(t *testing.T) {
	s := newStage(t)
	s.hidden = errors.New("timeout")
	s.check(t)
	s.check(t)
	s.hidden = &cloud.ForbiddenError{Err: errors.New("UnauthorizedOperation")}
	next, err := s.Check(t.Context())
	if err != nil || !next.IsZero() {
		t.Errorf("next %v, error %v", next, err)
	}
	named := slices.IndexFunc(s.logged, func(l string) bool { return strings.Contains(l, "ec2:DescribeInstanceStatus") })
	if len(s.logged) != 2 || named != 1 {
		t.Errorf("logged %q", s.logged)
	}
}
