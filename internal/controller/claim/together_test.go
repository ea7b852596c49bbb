package claim

import (
	"errors"
	"testing"
	"time"

	"karpenter/internal/cloud"
	"karpenter/internal/kube/dialect"
)

// TestLaunchThatGoesTogetherWithOthers: what the cloud prepares instead is written
// down before it is sent; and who was given a turn comes back then.
func TestLaunchThatGoesTogetherWithOthers(t *testing.T) {
	s := newStage(t)
	name := s.begin()
	s.cloud.refuse = []error{&cloud.ThrottledError{Err: errors.New("others are before this one"), After: 40 * time.Second}, &cloud.RewrittenError{Prepared: "together"}}
	s.pass(name)
	s.now = s.now.Add(30 * time.Second)
	if s.pass(name); len(s.cloud.refuse) != 1 {
		t.Error("it did not wait for its turn")
	}
	s.now = s.now.Add(10 * time.Second)
	s.pass(name)
	c := s.claim(name)
	if got := c.Annotations[dialect.AnnotationLaunchRequest]; got != "together" || c.Status.ProviderID == "" {
		t.Errorf("written down: %q, machine %q", got, c.Status.ProviderID)
	}
}
