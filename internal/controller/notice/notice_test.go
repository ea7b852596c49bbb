package notice

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "karpenter/api/v1"
	"karpenter/internal/cloud"
	"karpenter/internal/core/label"
	"karpenter/internal/kube/dialect"
	"karpenter/internal/kube/ledger"
	"karpenter/internal/settings"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// stage is a cluster with the machine i-1, and a queue.
type stage struct {
	*Controller
	queue   []cloud.Delivery
	missing error
	broken  error // of the API server
	events  []string
	refused []cloud.OfferingKey
	unwell  []cloud.Notice
	hidden  error // instead of unwell
	logged  []string
	now     time.Time
}

func (s *stage) Receive(context.Context, string, time.Duration) ([]cloud.Delivery, error) {
	return slices.Clone(s.queue), s.missing
}

func (s *stage) Acknowledge(_ context.Context, _ string, list []cloud.Delivery) error {
	s.queue = slices.DeleteFunc(s.queue, func(d cloud.Delivery) bool {
		return slices.ContainsFunc(list, func(o cloud.Delivery) bool { return o.Receipt == d.Receipt })
	})
	return nil
}

func (s *stage) Unwell(context.Context) ([]cloud.Notice, error) { return s.unwell, s.hidden }

func (s *stage) Event(_ runtime.Object, _, reason, _ string) { s.events = append(s.events, reason) }

func newStage(t *testing.T) *stage {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "test-1", Labels: map[string]string{label.InstanceType: "m5.large", label.Zone: "zone-a", label.NodePool: "test"}}}
	claim.Status.ProviderID, claim.Status.NodeName = "aws:///zone-a/i-1", "node-1"
	s := &stage{now: noon}
	store := fake.NewClientBuilder().WithScheme(scheme).WithObjects(claim).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if s.broken != nil {
				return s.broken
			}
			return c.Patch(ctx, o, p, opts...)
		},
	}).Build()
	now := func() time.Time { return s.now }
	s.Controller = &Controller{
		Ledger: &ledger.Ledger{Client: store, Now: now}, Inbox: s, Events: s, Now: now,
		Refuse:   func(k ...cloud.OfferingKey) { s.refused = append(s.refused, k...) },
		Settings: func() settings.Settings { set := settings.Default(); set.InterruptionQueue = "q"; return set },
		Log:      funcr.New(func(_, text string) { s.logged = append(s.logged, text) }, funcr.Options{}),
	}
	return s
}

func (s *stage) send(kind cloud.NoticeKind, instance string, deadline time.Time) {
	d := cloud.Delivery{Notice: cloud.Notice{Kind: kind, At: s.now, Deadline: deadline}, Receipt: receipt(kind, instance, len(s.queue))}
	if instance != "" {
		d.Instances = []string{instance}
	}
	s.queue = append(s.queue, d)
}

func receipt(kind cloud.NoticeKind, instance string, n int) string {
	return string(kind) + instance + strings.Repeat("+", n)
}

// end is when the machine was told to end; empty: it was not.
func (s *stage) end(t *testing.T) string {
	t.Helper()
	c := &v1.NodeClaim{}
	if err := s.Ledger.Client.Get(t.Context(), client.ObjectKey{Name: "test-1"}, c); err != nil {
		t.Fatal(err)
	}
	if c.Annotations[dialect.AnnotationInterrupted] == "" {
		return ""
	}
	return c.Annotations[dialect.AnnotationTerminationTimestamp]
}

func TestNotices(t *testing.T) {
	soon, later := noon.Add(2*time.Minute), noon.Add(time.Hour)
	for name, c := range map[string]struct {
		send func(*stage)
		end  string
	}{
		"a spot machine is wanted back": {func(s *stage) { s.send(cloud.SpotInterrupted, "i-1", soon) }, "2030-01-01T12:02:00Z"},
		"the earlier end counts": {func(s *stage) {
			s.send(cloud.ScheduledChange, "i-1", later)
			s.send(cloud.SpotInterrupted, "i-1", soon)
		}, "2030-01-01T12:02:00Z"},
		"and is not moved": {func(s *stage) {
			s.send(cloud.SpotInterrupted, "i-1", soon)
			s.send(cloud.ScheduledChange, "i-1", later)
		}, "2030-01-01T12:02:00Z"},
		"twice":                              {func(s *stage) { s.send(cloud.SpotInterrupted, "i-1", soon); s.send(cloud.SpotInterrupted, "i-1", soon) }, "2030-01-01T12:02:00Z"},
		"one that has ended":                 {func(s *stage) { s.send(cloud.InstanceTerminated, "i-1", time.Time{}) }, "2030-01-01T12:00:00Z"},
		"a notice that comes after the fact": {func(s *stage) { s.send(cloud.SpotInterrupted, "i-1", noon.Add(-time.Hour)) }, "2030-01-01T12:00:00Z"},
		"a recommendation":                   {func(s *stage) { s.send(cloud.RebalanceRecommended, "i-1", time.Time{}) }, ""},
		"somebody else's machine":            {func(s *stage) { s.send(cloud.SpotInterrupted, "i-2", soon) }, ""},
		"nothing that can be read":           {func(s *stage) { s.send(cloud.NoNotice, "", time.Time{}) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			c.send(s)
			next, err := s.Pass(t.Context())
			if err != nil || !next.Equal(noon) {
				t.Errorf("next %s, %v: after messages there may be more", next, err)
			}
			if got := s.end(t); got != c.end {
				t.Errorf("ends at %q, want %q", got, c.end)
			}
			if len(s.queue) > 0 {
				t.Errorf("left in the queue: %+v", s.queue)
			}
		})
	}
}

func TestTheOfferingIsAvoided(t *testing.T) {
	s := newStage(t)
	s.send(cloud.SpotInterrupted, "i-1", noon)
	if _, err := s.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := (cloud.OfferingKey{Type: "m5.large", Zone: "zone-a", CapacityType: label.Spot}); !slices.Contains(s.refused, want) {
		t.Errorf("%v", s.refused)
	}
	if !slices.Contains(s.events, "InstanceSpotInterrupted") || !slices.Contains(s.events, "NodeTerminatingOnInterruption") {
		t.Errorf("said %v", s.events)
	}
}

func TestWhatCouldNotBeDoneComesAgain(t *testing.T) {
	s := newStage(t)
	s.send(cloud.SpotInterrupted, "i-1", noon)
	s.send(cloud.NoNotice, "", noon)
	s.broken = errors.New("no API server")
	if _, err := s.Pass(t.Context()); err == nil || len(s.queue) != 1 {
		t.Errorf("%v, %d left", err, len(s.queue))
	}
	s.broken = nil
	if _, err := s.Pass(t.Context()); err != nil || len(s.queue) != 0 || s.end(t) == "" {
		t.Errorf("%v, %d left", err, len(s.queue))
	}
}

func TestAMissingQueueIsSaidOnce(t *testing.T) {
	s := newStage(t)
	s.missing = errors.New("no such queue")
	var waits []time.Duration
	for range 9 {
		next, err := s.Pass(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		waits = append(waits, next.Sub(s.now))
		s.now = next
	}
	if len(s.logged) != 1 || waits[0] != firstRetry || waits[8] != lastRetry {
		t.Errorf("waits %v, logged %v", waits, s.logged)
	}
	s.missing = nil
	if next, err := s.Pass(t.Context()); err != nil || next.Sub(s.now) != poll || len(s.logged) != 2 {
		t.Errorf("next %s, %v, logged %v", next, err, s.logged)
	}
}

func TestNoQueueIsSet(t *testing.T) {
	s := newStage(t)
	s.Settings = settings.Default
	s.missing = errors.New("asked")
	if next, err := s.Pass(t.Context()); err != nil || next.Sub(s.now) != off || len(s.logged) > 0 {
		t.Errorf("next %s, %v, logged %v", next, err, s.logged)
	}
}
