package claim

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	v1 "karpenter/api/v1"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/dialect"
	"karpenter/internal/settings"
)

// finder is a cloud that finds this.
type finder struct {
	reason string
	err    error
	asked  int
}

func (f *finder) Drifted(context.Context, world.ClassRef, string, string, map[string]string) (string, string, error) {
	f.asked++
	return f.reason, "detail", f.err
}
func (f *finder) Types(context.Context, world.Pool) []world.InstanceType { return nil }

func TestDriftIsWrittenDown(t *testing.T) {
	s := newStage(t)
	cloud, on := &finder{}, true
	drift := func() {
		s.control.Drift = cloud
		s.control.Settings = func() settings.Settings { set := settings.Default(); set.DriftEnabled = on; return set }
	}
	drift()
	name := s.begin()
	for range 6 {
		s.pass(name)
		if s.claim(name).Status.ProviderID != "" {
			s.join(name)
		}
	}
	reason := func() string {
		t.Helper()
		s.pass(name)
		if c := meta.FindStatusCondition(s.claim(name).Status.Conditions, v1.ConditionDrifted); c != nil && c.Status == "True" {
			return c.Reason
		}
		return ""
	}
	if got := reason(); got != "" {
		t.Fatalf("drifted as it was bought: %s", got)
	}
	cloud.reason = "AMIDrift"
	if asked := cloud.asked; reason() != "" || cloud.asked != asked {
		t.Error("the cloud is asked every few minutes, not each time")
	}
	s.now = s.now.Add(driftPoll)
	if got := reason(); got != "AMIDrift" {
		t.Errorf("drift is not seen: %q", got)
	}
	cloud.err = errors.New("throttled")
	s.now = s.now.Add(driftPoll)
	if got := reason(); got != "AMIDrift" {
		t.Errorf("what cannot be found out changes nothing: %q", got)
	}
	cloud.reason, cloud.err = "", nil
	s.now = s.now.Add(driftPoll)
	if got := reason(); got != "" {
		t.Errorf("it is as it should be again: %q", got)
	}
	n := s.node()
	n.Annotations = map[string]string{dialect.AnnotationVoluntaryDisruption: "drifted"}
	if err := s.store.Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	if got := reason(); got != "Annotated" {
		t.Errorf("a person said so: %q", got)
	}
	on = false
	s.now = s.now.Add(time.Second)
	if got := reason(); got != "" {
		t.Errorf("the gate of Provisioners is shut: %q", got)
	}
}
