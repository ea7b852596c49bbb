package claim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	awsv1 "karpenter/api/aws/v1"
	awsv1alpha1 "karpenter/api/aws/v1alpha1"
	v1 "karpenter/api/v1"
	"karpenter/api/v1alpha5"
	"karpenter/internal/cloud"
	"karpenter/internal/core/label"
	"karpenter/internal/core/lifecycle"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/ledger"
	"karpenter/internal/settings"
)

var start = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// died is what a crash panics with.
type died struct{}

// crash kills the process before or after its n-th external call.
type crash struct {
	at    int
	after bool
	calls int
	names []string
}

func (c *crash) call(name string, do func() error) error {
	c.calls++
	c.names = append(c.names, name)
	if c.calls == c.at && !c.after {
		panic(died{})
	}
	err := do()
	if c.calls == c.at {
		panic(died{})
	}
	return err
}

// machines is a cloud that keeps the promise of the client token, and refuses
// another body under the same token.
type machines struct {
	*crash
	prepared int
	bodies   map[string]cloud.Prepared
	running  map[string]cloud.Instance
	refuse   []error // answers of the next launches
}

func (m *machines) Prepare(_ context.Context, r cloud.LaunchRequest) (p cloud.Prepared, err error) {
	err = m.call("prepare", func() error {
		m.prepared++ // prices move: no two requests are the same
		p = cloud.Prepared(fmt.Sprintf("%s #%d", r.Claim, m.prepared))
		return nil
	})
	return p, err
}

func (m *machines) Launch(_ context.Context, token string, p cloud.Prepared) (i cloud.Instance, err error) {
	err = m.call("launch", func() error {
		if len(m.refuse) > 0 {
			err := m.refuse[0]
			m.refuse = m.refuse[1:]
			if err != nil {
				return err
			}
		}
		if body, ok := m.bodies[token]; ok && body != p {
			return errors.New("IdempotentParameterMismatch")
		}
		if _, ok := m.running[token]; !ok {
			id := fmt.Sprintf("i-%d", len(m.running)+1)
			m.bodies[token] = p
			m.running[token] = cloud.Instance{
				ID: id, ProviderID: "aws:///zone-a/" + id, ImageID: "ami-1", Type: "m6a.xlarge", Zone: "zone-a", CapacityType: "on-demand",
				Labels:   map[string]string{label.InstanceType: "m6a.xlarge", label.Zone: "zone-a", label.CapacityType: "on-demand"},
				Capacity: quantity.Resources{MilliCPU: 4000, MemoryBytes: 16 << 30, Pods: 58}, Allocatable: quantity.Resources{MilliCPU: 3820, MemoryBytes: 14 << 30, Pods: 58},
			}
		}
		i = m.running[token]
		return nil
	})
	return i, err
}

type said []string

func (s *said) Event(_ runtime.Object, _, reason, _ string) { *s = append(*s, reason) }

// stage is a cluster with one pool, and the process that works on it.
type stage struct {
	t       *testing.T
	now     time.Time
	store   client.WithWatch
	cloud   *machines
	crash   *crash
	said    said
	control *Controller
	made    int
}

func newStage(t *testing.T) *stage {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1.AddToScheme, v1alpha5.AddToScheme, awsv1alpha1.AddToScheme, awsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	s := &stage{t: t, now: start, crash: &crash{}}
	b := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1.NodeClaim{}, &corev1.Pod{}, &corev1.Node{}).
		WithReturnManagedFields().WithInterceptorFuncs(s.calls())
	for _, i := range ledger.Indexes() {
		b = b.WithIndex(i.Object, i.Field, i.Values)
	}
	s.store = b.Build()
	s.cloud = &machines{crash: s.crash, bodies: map[string]cloud.Prepared{}, running: map[string]cloud.Instance{}}
	s.restart()
	after := int64(30)
	if err := s.store.Create(t.Context(), &v1alpha5.Provisioner{
		ObjectMeta: metav1.ObjectMeta{Name: "test", UID: "uid-test"},
		Spec: v1alpha5.ProvisionerSpec{
			Labels: map[string]v1alpha5.LabelValue{"env": "prod"}, TTLSecondsAfterEmpty: &after, ProviderRef: &v1alpha5.ProviderRef{Name: "default"},
		},
	}); err != nil {
		t.Fatal(err)
	}
	return s
}

// calls makes every write a point at which the process may die, and gives
// objects the identity that an API server gives.
func (s *stage) calls() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if o.GetUID() == "" {
				s.made++
				o.SetUID(types.UID(fmt.Sprintf("uid-%d", s.made)))
			}
			o.SetCreationTimestamp(metav1.NewTime(s.now))
			return c.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return s.crash.call(fmt.Sprintf("patch %T", o), func() error { return c.Patch(ctx, o, p, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return s.crash.call(fmt.Sprintf("patch %s of %T", sub, o), func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return s.crash.call(fmt.Sprintf("delete %T", o), func() error { return c.Delete(ctx, o, opts...) })
		},
	}
}

// restart starts a new process: what was only in memory is gone.
func (s *stage) restart() {
	s.crash.at = 0
	now := func() time.Time { return s.now }
	s.control = &Controller{
		Ledger: &ledger.Ledger{Client: s.store, Now: now}, Cloud: s.cloud, Events: &s.said, Now: now,
		Settings: settings.Default,
	}
}

func (s *stage) begin(pods ...world.ObjectName) string {
	s.t.Helper()
	pool, ok, err := s.control.Ledger.Pool(s.t.Context(), "Provisioner", "test")
	if err != nil || !ok {
		s.t.Fatalf("pool: %v, %v", ok, err)
	}
	r, err := s.control.Ledger.Begin(s.t.Context(), pool, ledger.Machine{
		Requirements: []label.Requirement{{Key: label.InstanceType, Op: label.In, Values: []string{"m6a.xlarge"}}},
		Requests:     quantity.Resources{MilliCPU: 1000, Pods: 1},
		Labels:       map[string]string{"intent": "apps"},
		Pods:         pods,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return r.Name
}

// pass lets the controller look once, a moment later; a crash restarts it.
func (s *stage) pass(name string) (crashed bool) {
	s.t.Helper()
	s.now = s.now.Add(time.Second)
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(died); !ok {
				panic(r)
			}
			crashed = true
			s.restart()
		}
	}()
	if _, err := s.control.Reconcile(s.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}); err != nil {
		s.t.Fatalf("pass: %v", err)
	}
	return false
}

func (s *stage) claim(name string) *v1.NodeClaim {
	s.t.Helper()
	c := &v1.NodeClaim{}
	if err := s.store.Get(s.t.Context(), types.NamespacedName{Name: name}, c); err != nil {
		s.t.Fatal(err)
	}
	return c
}

func (s *stage) node() *corev1.Node {
	s.t.Helper()
	n := &corev1.Node{}
	if err := s.store.Get(s.t.Context(), types.NamespacedName{Name: "node-1"}, n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

// join makes the instance of the record a Node, as its kubelet would.
func (s *stage) join(name string) {
	s.t.Helper()
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: map[string]string{label.Hostname: "node-1"}},
		Spec: corev1.NodeSpec{
			ProviderID: s.claim(name).Status.ProviderID,
			Taints:     []corev1.Taint{{Key: lifecycle.Unregistered.Key, Effect: corev1.TaintEffectNoExecute}},
		},
		Status: corev1.NodeStatus{
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			Allocatable: corev1.ResourceList{"cpu": resource.MustParse("3820m"), "memory": resource.MustParse("14Gi"), "pods": resource.MustParse("58")},
		},
	}
	if err := s.store.Create(s.t.Context(), n); err != nil && !apierrors.IsAlreadyExists(err) {
		s.t.Fatal(err)
	}
}

func (s *stage) pod(name string) world.ObjectName {
	s.t.Helper()
	if err := s.store.Create(s.t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}); err != nil {
		s.t.Fatal(err)
	}
	return world.ObjectName{Namespace: "default", Name: name}
}

func (s *stage) nominated(name string) string {
	s.t.Helper()
	p := &corev1.Pod{}
	if err := s.store.Get(s.t.Context(), types.NamespacedName{Namespace: "default", Name: name}, p); err != nil {
		s.t.Fatal(err)
	}
	return p.Status.NominatedNodeName
}

func TestFromRecordToEmptyNode(t *testing.T) {
	s := newStage(t)
	name := s.begin(s.pod("a"))
	if c := s.claim(name); len(c.Finalizers) != 1 || len(c.OwnerReferences) != 1 || !strings.HasPrefix(name, "test-") {
		t.Errorf("record: %+v", c.ObjectMeta)
	}
	s.pass(name)
	c := s.claim(name)
	if c.Status.ProviderID != "aws:///zone-a/i-1" || c.Status.ImageID != "ami-1" || !meta.IsStatusConditionTrue(c.Status.Conditions, v1.ConditionLaunched) {
		t.Fatalf("launched: %+v", c.Status)
	}
	for key, want := range map[string]string{label.Zone: "zone-a", label.InstanceType: "m6a.xlarge", label.Provisioner: "test", "env": "prod", "intent": "apps"} {
		if c.Labels[key] != want {
			t.Errorf("label %s of the record is %q, want %q", key, c.Labels[key], want)
		}
	}

	s.join(name)
	s.pass(name)
	n := s.node()
	if len(n.Spec.Taints) != 1 || n.Labels["env"] != "prod" || n.Labels[label.Registered] != "" || len(n.Finalizers) != 1 {
		t.Errorf("the node is put right before it is opened: %+v %+v", n.ObjectMeta, n.Spec)
	}
	if got := s.nominated("a"); got != "node-1" {
		t.Errorf("pod is nominated to %q", got)
	}
	if o := n.OwnerReferences; len(o) != 1 || o[0].Kind != "Provisioner" || o[0].UID != "uid-test" {
		t.Errorf("owner: %+v", o)
	}
	s.pass(name)
	if n := s.node(); len(n.Spec.Taints) != 0 || n.Labels[label.Registered] != "true" {
		t.Errorf("the node is opened: %+v", n.Spec.Taints)
	}
	s.pass(name)
	c = s.claim(name)
	if s.node().Labels[label.Initialized] != "true" || c.Status.NodeName != "node-1" || !meta.IsStatusConditionTrue(c.Status.Conditions, v1.ConditionReady) {
		t.Errorf("initialised: %+v", c.Status)
	}
	if _, ok := s.node().Annotations[lifecycle.EmptySince]; ok {
		t.Error("a node with a nominated pod is not empty")
	}
	if err := s.store.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}); err != nil {
		t.Fatal(err)
	}
	s.pass(name)
	if _, ok := s.node().Annotations[lifecycle.EmptySince]; !ok {
		t.Error("the node is empty now")
	}
	before := s.crash.calls
	s.pass(name)
	if s.crash.calls != before {
		t.Errorf("a pass with nothing to do made calls: %v", s.crash.names[before:])
	}
}

// TestCrashAnywhere kills the process before and after each of its calls, from
// the record to the initialised node. There must be exactly one instance, and
// it must be the one that the record knows.
func TestCrashAnywhere(t *testing.T) {
	for _, after := range []bool{false, true} {
		for at := 1; ; at++ {
			s := newStage(t)
			name := s.begin(s.pod("a"))
			s.crash.at, s.crash.after = at, after
			crashed := false
			for range 4 {
				crashed = s.pass(name) || crashed
			}
			s.join(name)
			for range 8 {
				crashed = s.pass(name) || crashed
			}
			c := s.claim(name)
			where := fmt.Sprintf("crash %d (after: %v, calls %v)", at, after, s.crash.names)
			if len(s.cloud.running) != 1 || s.cloud.running[string(c.UID)].ProviderID != c.Status.ProviderID {
				t.Errorf("%s: instances %v, record has %q", where, s.cloud.running, c.Status.ProviderID)
			}
			if !meta.IsStatusConditionTrue(c.Status.Conditions, v1.ConditionReady) || s.nominated("a") != "node-1" {
				t.Errorf("%s: not ready: %+v", where, c.Status.Conditions)
			}
			if !crashed {
				if at < 8 {
					t.Errorf("only %d calls seen: %v", at-1, s.crash.names)
				}
				break
			}
		}
	}
}

// TestStaleCache: while the cache does not show what was written, the launch is
// not sent again.
func TestStaleCache(t *testing.T) {
	s := newStage(t)
	name := s.begin()
	before := s.claim(name)
	s.pass(name)
	after := s.claim(name)
	behind := after.DeepCopy()
	behind.Status = before.Status
	if err := s.store.Status().Update(t.Context(), behind); err != nil {
		t.Fatal(err)
	}
	s.pass(name)
	if n := strings.Count(strings.Join(s.crash.names, " "), "launch"); n != 1 {
		t.Errorf("launched %d times", n)
	}
	for range 12 {
		s.pass(name)
	}
	if len(s.cloud.running) != 1 || s.claim(name).Status.ProviderID == "" {
		t.Errorf("a lost write is not made good: %v", s.crash.names)
	}
}

func TestLaunchErrors(t *testing.T) {
	gone := func(t *testing.T, s *stage, name, event string) {
		t.Helper()
		c := s.claim(name) // held by its finalizer until draining lets go
		if c.DeletionTimestamp == nil || !meta.IsStatusConditionFalse(c.Status.Conditions, v1.ConditionLaunched) || !slices.Contains(s.said, event) {
			t.Errorf("not given up: %+v, said %v", c.Status.Conditions, s.said)
		}
	}
	t.Run("no capacity", func(t *testing.T) {
		s := newStage(t)
		name := s.begin()
		s.cloud.refuse = []error{fmt.Errorf("fleet: %w", &cloud.NoCapacityError{Detail: "none"})}
		s.pass(name)
		gone(t, s, name, "InsufficientCapacityError")
	})
	t.Run("refused for good: the same token would get the same answer", func(t *testing.T) {
		s := newStage(t)
		name := s.begin()
		s.cloud.refuse = []error{&cloud.RefusedError{Detail: "InvalidParameterValue"}}
		s.pass(name)
		gone(t, s, name, "LaunchRefused")
	})
	t.Run("bad class", func(t *testing.T) {
		s := newStage(t)
		name := s.begin()
		s.cloud.refuse = []error{&cloud.BadClassError{Field: "spec.subnetSelector", Problem: "matches nothing"}}
		s.pass(name)
		gone(t, s, name, "NodeClassNotReady")
	})
	t.Run("throttled: waits longer each time and is never lost", func(t *testing.T) {
		s := newStage(t)
		name := s.begin()
		slow := &cloud.ThrottledError{Err: errors.New("RequestLimitExceeded")}
		s.cloud.refuse = []error{slow, slow, slow}
		for range 60 {
			s.pass(name)
		}
		launches := 0
		for _, call := range s.crash.names {
			if call == "launch" {
				launches++
			}
		}
		if c := s.claim(name); c.Status.ProviderID == "" || c.DeletionTimestamp != nil || launches != 4 || len(s.cloud.running) != 1 {
			t.Errorf("%d launches, %+v", launches, c.Status)
		}
	})
	t.Run("its turn comes after an hour: the time in the queue is no failure", func(t *testing.T) {
		s := newStage(t)
		name := s.begin()
		for range 60 {
			s.cloud.refuse = append(s.cloud.refuse, &cloud.ThrottledError{Err: errors.New("others are before this one"), After: time.Minute})
		}
		for range 61 {
			s.pass(name)
			s.now = s.now.Add(time.Minute)
		}
		if c := s.claim(name); c.Status.ProviderID == "" || c.DeletionTimestamp != nil {
			t.Errorf("given up in the queue: %+v", c.Status)
		}
	})
	t.Run("not yet: asked again when told", func(t *testing.T) {
		s := newStage(t)
		name := s.begin()
		s.cloud.refuse = []error{&cloud.NotYetError{Err: errors.New("the profile is new"), After: 3 * time.Second}}
		s.pass(name)
		if l := meta.FindStatusCondition(s.claim(name).Status.Conditions, v1.ConditionLaunched); l == nil || l.Status != metav1.ConditionUnknown || l.Reason != "NotYet" {
			t.Errorf("condition %+v", l)
		}
		s.now = s.now.Add(3 * time.Second)
		s.pass(name)
		if s.claim(name).Status.ProviderID == "" {
			t.Error("not asked again when it was told to")
		}
	})
	t.Run("anything else: repeated, the reason is shown", func(t *testing.T) {
		s := newStage(t)
		name := s.begin()
		s.cloud.refuse = []error{errors.New("QuotaExceeded")}
		s.pass(name)
		l := meta.FindStatusCondition(s.claim(name).Status.Conditions, v1.ConditionLaunched)
		if l == nil || l.Status != metav1.ConditionUnknown || l.Reason != "LaunchFailed" || !strings.Contains(l.Message, "QuotaExceeded") {
			t.Errorf("condition %+v", l)
		}
		s.now = s.now.Add(5 * time.Minute)
		s.pass(name)
		if s.claim(name).DeletionTimestamp == nil {
			t.Error("not launched within five minutes, and still there")
		}
	})
}

// TestReusedName: identity is the provider ID. A Node with the name of a former
// one belongs to whoever has its instance.
func TestReusedName(t *testing.T) {
	s := newStage(t)
	first, second := s.begin(), s.begin()
	s.pass(first)
	s.pass(second)
	s.join(second)
	s.pass(first)
	if s.claim(first).Status.NodeName != "" {
		t.Error("the node of another instance was taken")
	}
	s.pass(second)
	s.pass(second)
	if s.claim(second).Status.NodeName != "node-1" {
		t.Errorf("not registered: %+v", s.claim(second).Status)
	}
}
