package drain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "karpenter/api/v1"
	"karpenter/internal/cloud"
	"karpenter/internal/core/label"
	"karpenter/internal/core/lifecycle"
	"karpenter/internal/kube/dialect"
	"karpenter/internal/kube/ledger"
	"karpenter/internal/kube/nominate"
)

var start = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

const providerID = "aws:///zone-a/i-1"

// died is what a crash panics with.
type died struct{}

// stage is a cluster with one machine, and the process that works on it.
type stage struct {
	t       *testing.T
	now     time.Time
	store   client.WithWatch
	control *Controller
	said    map[string]string // last message by reason

	calls   []string
	crashAt int
	after   bool
	// interrupt happens instead of a crash, if it is set.
	interrupt func()

	// The cloud.
	state cloud.State
	token string
	// ends is how many looks a shutdown takes.
	ends int
	// denied are pods that a budget protects.
	denied map[string]error
}

func newStage(t *testing.T, objects ...client.Object) *stage {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, policyv1.AddToScheme, storagev1.AddToScheme, v1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	s := &stage{t: t, now: start, said: map[string]string{}, state: cloud.Running, token: "uid-claim", ends: 2, denied: map[string]error{}}
	b := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1.NodeClaim{}, &corev1.Pod{}).WithReturnManagedFields().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return s.call(fmt.Sprintf("patch %T", o), func() error { return c.Patch(ctx, o, p, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return s.call(fmt.Sprintf("patch %s of %T", sub, o), func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return s.call(fmt.Sprintf("delete %T", o), func() error { return c.Delete(ctx, o, opts...) })
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, sub string, o, body client.Object, opts ...client.SubResourceCreateOption) error {
			return s.call("evict "+o.GetName(), func() error {
				if err := s.denied[o.GetName()]; err != nil {
					return err
				}
				return c.SubResource(sub).Create(ctx, o, body, opts...)
			})
		},
	})
	for _, i := range ledger.Indexes() {
		b = b.WithIndex(i.Object, i.Field, i.Values)
	}
	s.store = b.Build()
	s.restart()
	return s
}

func (s *stage) restart() {
	now := func() time.Time { return s.now }
	s.crashAt = 0
	s.control = &Controller{Ledger: &ledger.Ledger{Client: s.store, Now: now}, Cloud: s, Events: s, Now: now}
}

func (s *stage) call(name string, do func() error) error {
	s.calls = append(s.calls, name)
	n := len(s.calls)
	if n == s.crashAt && !s.after {
		s.strike()
	}
	err := do()
	if n == s.crashAt && s.after {
		s.strike()
	}
	return err
}

func (s *stage) strike() {
	if s.interrupt == nil {
		panic(died{})
	}
	s.interrupt()
}

func (s *stage) Event(_ runtime.Object, _, reason, message string) { s.said[reason] = message }

func (s *stage) instance() (cloud.Instance, error) {
	if s.state == "" {
		return cloud.Instance{}, &cloud.NotFoundError{ID: "i-1"}
	}
	if s.state == cloud.ShuttingDown {
		if s.ends--; s.ends <= 0 {
			s.state = cloud.Terminated
		}
	}
	return cloud.Instance{ID: "i-1", ProviderID: providerID, Token: s.token, State: s.state}, nil
}

func (s *stage) Find(_ context.Context, token string) (cloud.Instance, error) {
	if token != s.token {
		return cloud.Instance{}, &cloud.NotFoundError{ID: token}
	}
	return s.instance()
}

func (s *stage) Describe(context.Context, string) (cloud.Instance, error) { return s.instance() }

func (s *stage) Terminate(_ context.Context, id string) error {
	return s.call("terminate "+id, func() error {
		if !s.state.Gone() {
			s.state = cloud.ShuttingDown
		}
		return nil
	})
}

// pass lets the controller look once; a crash restarts it.
func (s *stage) pass(name string) (crashed bool) {
	s.t.Helper()
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

// run makes a pass each second.
func (s *stage) run(name string, seconds int) (crashed bool) {
	s.t.Helper()
	for range seconds {
		crashed = s.pass(name) || crashed
		s.now = s.now.Add(time.Second)
	}
	return crashed
}

func (s *stage) exists(o client.Object, name string) bool {
	s.t.Helper()
	ns := ""
	if _, ok := o.(*corev1.Pod); ok {
		ns = "default"
	}
	err := s.store.Get(s.t.Context(), types.NamespacedName{Namespace: ns, Name: name}, o)
	if client.IgnoreNotFound(err) != nil {
		s.t.Fatal(err)
	}
	return err == nil
}

func (s *stage) delete(o client.Object) {
	s.t.Helper()
	if err := s.store.Delete(s.t.Context(), o); err != nil {
		s.t.Fatal(err)
	}
	s.calls = nil
}

func claimed(change ...func(*v1.NodeClaim)) *v1.NodeClaim {
	c := &v1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: "test-abcde", UID: "uid-claim", CreationTimestamp: metav1.NewTime(start.Add(-time.Hour)),
			Labels:      map[string]string{label.Provisioner: "test"},
			Annotations: map[string]string{dialect.AnnotationLaunchRequest: "body"},
			Finalizers:  []string{dialect.FinalizerTermination},
		},
		Status: v1.NodeClaimStatus{ProviderID: providerID, NodeName: "node-1", Conditions: []metav1.Condition{
			{Type: v1.ConditionLaunched, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(start.Add(-time.Hour)), Reason: "Launched"},
		}},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func node() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "node-1", UID: "uid-node", CreationTimestamp: metav1.NewTime(start.Add(-time.Hour)),
			Labels:     map[string]string{label.Provisioner: "test", label.Registered: "true", label.Initialized: "true"},
			Finalizers: []string{dialect.FinalizerTermination},
		},
		Spec:   corev1.NodeSpec{ProviderID: providerID},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

func pod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{NodeName: "node-1"},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

func TestDeletingEitherHalfLeadsToTheSameEnd(t *testing.T) {
	for _, first := range []client.Object{&v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "test-abcde"}}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}} {
		t.Run(fmt.Sprintf("%T", first), func(t *testing.T) {
			s := newStage(t, claimed(), node(), pod("a"))
			s.run("test-abcde", 2)
			if len(s.calls) != 0 {
				t.Fatalf("nothing is being deleted, but: %v", s.calls)
			}
			s.delete(first)
			s.run("test-abcde", 1)
			n := node()
			if !s.exists(n, "node-1") || !n.Spec.Unschedulable || len(n.Spec.Taints) != 1 || n.Labels[lifecycle.ExcludeFromBalancers] == "" || n.DeletionTimestamp == nil {
				t.Errorf("node is marked and deleted: %+v %+v", n.ObjectMeta, n.Spec)
			}
			c := claimed()
			if !s.exists(c, "test-abcde") || c.DeletionTimestamp == nil {
				t.Errorf("record is deleted: %+v", c.ObjectMeta)
			}
			if s.exists(pod("a"), "a") || s.said["Evicted"] == "" {
				t.Errorf("pod was not evicted: %v", s.calls)
			}
			s.run("test-abcde", 20)
			if s.exists(n, "node-1") || s.exists(c, "test-abcde") || s.state != cloud.Terminated {
				t.Errorf("left over: instance %s, calls %v", s.state, s.calls)
			}
			terminate, nodeGone := slices.Index(s.calls, "terminate i-1"), len(s.calls)-2
			if terminate < 0 || terminate > nodeGone || s.calls[nodeGone] != "patch *v1.Node" || s.calls[nodeGone+1] != "patch *v1.NodeClaim" {
				t.Errorf("order: %v", s.calls)
			}
		})
	}
}

// TestCrashAnywhere kills the process before and after each of its calls. The
// machine must end all the same, and nothing may let go of it before.
func TestCrashAnywhere(t *testing.T) {
	for _, after := range []bool{false, true} {
		for at := 1; ; at++ {
			s := newStage(t, claimed(), node(), pod("a"))
			s.delete(claimed())
			s.crashAt, s.after = at, after
			crashed := false
			for range 40 {
				crashed = s.run("test-abcde", 1) || crashed
				if !s.exists(node(), "node-1") && s.state != cloud.Terminated {
					t.Fatalf("crash %d: node went before its instance: %v", at, s.calls)
				}
			}
			if s.exists(node(), "node-1") || s.exists(claimed(), "test-abcde") || s.state != cloud.Terminated || s.exists(pod("a"), "a") {
				t.Errorf("crash %d (after: %v): left over, instance %s, calls %v", at, after, s.state, s.calls)
			}
			if !crashed {
				break
			}
		}
	}
}

func TestBudgetsAreRetriedWithPatience(t *testing.T) {
	budget := func(name string) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "dual"}}}}
	}
	s := newStage(t, claimed(), node(), pod("dual"), pod("free"), budget("dual-x"), budget("dual-y"))
	s.denied["dual"] = apierrors.NewInternalError(fmt.Errorf("more than one budget"))
	s.delete(claimed())
	s.run("test-abcde", 60)
	tries := 0
	for _, c := range s.calls {
		if c == "evict dual" {
			tries++
		}
	}
	if s.exists(pod("free"), "free") || !s.exists(pod("dual"), "dual") || tries < 2 || tries > 4 {
		t.Errorf("%d tries in a minute: %v", tries, s.calls)
	}
	for _, word := range []string{"default/dual", "dual-x", "dual-y"} {
		if !strings.Contains(s.said["FailedDraining"], word) {
			t.Errorf("event does not name %s: %s", word, s.said["FailedDraining"])
		}
	}
	if slices.Contains(s.calls, "terminate i-1") {
		t.Error("terminated under a protected pod")
	}
	delete(s.denied, "dual")
	s.run("test-abcde", 60)
	if s.exists(claimed(), "test-abcde") {
		t.Errorf("not finished after the budget allowed it: %v", s.calls[len(s.calls)-5:])
	}
}

func TestDeadlineBeatsBudgets(t *testing.T) {
	grace := int64(20)
	s := newStage(t, claimed(func(c *v1.NodeClaim) {
		c.Annotations[dialect.AnnotationTerminationTimestamp] = start.Add(time.Minute).Format(time.RFC3339)
	}), node(), pod("a", func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = &grace }))
	s.denied["a"] = apierrors.NewTooManyRequests("budget", 1)
	s.delete(claimed())
	s.run("test-abcde", 40)
	if !s.exists(pod("a"), "a") {
		t.Fatal("deleted too early")
	}
	s.run("test-abcde", 1)
	if s.exists(pod("a"), "a") || s.said["Disrupted"] == "" {
		t.Errorf("not deleted at the deadline minus its grace: %v", s.calls[len(s.calls)-3:])
	}
}

// TestGracePeriodBoundsTheDrain: the deadline follows from the time of deletion,
// is written down once, and beats who asks not to be moved.
func TestGracePeriodBoundsTheDrain(t *testing.T) {
	grace := int64(20)
	s := newStage(t, claimed(func(c *v1.NodeClaim) { c.Spec.TerminationGracePeriod = &metav1.Duration{Duration: time.Minute} }),
		node(), pod("a", func(p *corev1.Pod) {
			p.Spec.TerminationGracePeriodSeconds = &grace
			p.Annotations = map[string]string{dialect.AnnotationDoNotDisrupt: "true"}
		}))
	s.delete(claimed())
	s.run("test-abcde", 2)
	c := &v1.NodeClaim{}
	if err := s.store.Get(t.Context(), client.ObjectKey{Name: "test-abcde"}, c); err != nil {
		t.Fatal(err)
	}
	want := c.DeletionTimestamp.Add(time.Minute)
	if got := c.Annotations[dialect.AnnotationTerminationTimestamp]; got != want.UTC().Format(time.RFC3339) {
		t.Errorf("deadline %q, want %s", got, want)
	}
	s.run("test-abcde", 36)
	if !s.exists(pod("a"), "a") {
		t.Fatal("deleted too early")
	}
	s.run("test-abcde", 40)
	if s.exists(claimed(), "test-abcde") {
		t.Errorf("not finished: %v", s.calls[len(s.calls)-3:])
	}
}

func TestVolumesAreDetachedBeforeTheEnd(t *testing.T) {
	stays := []corev1.Toleration{{Key: "node.kubernetes.io/unschedulable", Operator: corev1.TolerationOpExists}}
	t.Run("a daemon that stays", func(t *testing.T) { volumesAreDetached(t, stays) })
	t.Run("a daemon that is evicted", func(t *testing.T) { volumesAreDetached(t, nil) })
}

func volumesAreDetached(t *testing.T, daemonTolerates []corev1.Toleration) {
	t.Helper()
	attached := func(name, volume string) *storagev1.VolumeAttachment {
		return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: storagev1.VolumeAttachmentSpec{NodeName: "node-1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}}}
	}
	bound := func(name, volume string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume}}
	}
	daemon := pod("cachefs", func(p *corev1.Pod) {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "cachefs", Controller: &yes}}
		p.Spec.Tolerations = daemonTolerates
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "cache"}}}}
	})
	s := newStage(t, claimed(), node(), daemon, attached("va-data", "pv-data"), attached("va-cache", "pv-cache"), bound("data", "pv-data"), bound("cache", "pv-cache"))
	s.delete(claimed())
	s.run("test-abcde", 30)
	if slices.Contains(s.calls, "terminate i-1") {
		t.Fatal("terminated with a volume attached")
	}
	s.delete(attached("va-data", "pv-data"))
	s.run("test-abcde", 30)
	if s.exists(claimed(), "test-abcde") || s.state != cloud.Terminated {
		t.Errorf("the volume of a daemon was waited for: %v", s.calls)
	}
}

func TestRecordsWithoutAnInstance(t *testing.T) {
	unlaunched := func(request string) *v1.NodeClaim {
		return claimed(func(c *v1.NodeClaim) {
			c.Status = v1.NodeClaimStatus{Conditions: []metav1.Condition{{Type: v1.ConditionLaunched, Status: metav1.ConditionUnknown, Reason: "LaunchFailed"}}}
			c.Annotations = map[string]string{}
			if request != "" {
				c.Annotations[dialect.AnnotationLaunchRequest] = request
			}
		})
	}
	t.Run("never sent", func(t *testing.T) {
		s := newStage(t, unlaunched(""))
		s.delete(claimed())
		s.run("test-abcde", 1)
		if s.exists(claimed(), "test-abcde") || slices.Contains(s.calls, "terminate ") {
			t.Errorf("calls: %v", s.calls)
		}
	})
	t.Run("sent, nothing came of it", func(t *testing.T) {
		s := newStage(t, unlaunched("body"))
		s.state = ""
		s.delete(claimed())
		c := claimed()
		s.exists(c, "test-abcde")
		s.now = c.DeletionTimestamp.Add(time.Second)
		s.run("test-abcde", 1)
		if !s.exists(c, "test-abcde") {
			t.Fatal("let go while the call may be in flight")
		}
		s.now = c.DeletionTimestamp.Add(11 * time.Second)
		s.run("test-abcde", 1)
		if s.exists(c, "test-abcde") {
			t.Error("held for ever")
		}
	})
	t.Run("sent, answer lost, node joined", func(t *testing.T) {
		s := newStage(t, unlaunched("body"), node())
		s.delete(claimed())
		s.run("test-abcde", 30)
		if s.exists(claimed(), "test-abcde") || s.exists(node(), "node-1") || s.state != cloud.Terminated {
			t.Errorf("instance %s, calls %v", s.state, s.calls)
		}
	})
}

func TestNodesWithoutARecord(t *testing.T) {
	t.Run("ours", func(t *testing.T) {
		s := newStage(t, node())
		s.delete(node())
		s.run("node-1", 30)
		if s.exists(node(), "node-1") || s.state != cloud.Terminated {
			t.Errorf("instance %s, calls %v", s.state, s.calls)
		}
	})
	t.Run("unidentifiable", func(t *testing.T) {
		n := node()
		n.Spec.ProviderID = "weird"
		s := newStage(t, n)
		s.delete(node())
		s.run("node-1", 30)
		if s.exists(node(), "node-1") || s.state != cloud.Running || !strings.Contains(s.said["InstanceUnidentified"], "weird") {
			t.Errorf("instance %s, said %v", s.state, s.said)
		}
	})
	t.Run("foreign", func(t *testing.T) {
		n := node()
		n.Labels, n.Finalizers = nil, []string{"example.com/mine"}
		s := newStage(t, n)
		s.delete(node())
		s.run("node-1", 10)
		if len(s.calls) != 0 {
			t.Errorf("a foreign node was touched: %v", s.calls)
		}
	})
}

func TestNominationsAreTakenBack(t *testing.T) {
	waiting := pod("w", func(p *corev1.Pod) { p.Spec.NodeName = "" })
	s := newStage(t, claimed(), node(), waiting)
	if err := nominate.Set(t.Context(), s.store.Status(), waiting, "node-1"); err != nil {
		t.Fatal(err)
	}
	s.delete(claimed())
	s.run("test-abcde", 1)
	p := pod("w")
	if !slices.Contains(s.calls, "patch status of *v1.Pod") {
		t.Errorf("calls: %v", s.calls)
	}
	if s.exists(p, "w"); p.Status.NominatedNodeName != "" {
		t.Errorf("still nominated to %q: %v", p.Status.NominatedNodeName, s.calls)
	}
}

func TestDeadMachine(t *testing.T) {
	n := node()
	n.Status.Conditions[0].Status = corev1.ConditionUnknown
	s := newStage(t, claimed(), n, pod("a"))
	s.state = cloud.Terminated
	s.delete(claimed())
	s.run("test-abcde", 4)
	if s.exists(n, "node-1") || s.exists(claimed(), "test-abcde") || slices.Contains(s.calls, "evict a") {
		t.Errorf("a dead machine was drained: %v", s.calls)
	}
}
