package planner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	apiv1 "karpenter/api/v1"
	"karpenter/api/v1alpha5"
	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
	"karpenter/internal/journal"
	"karpenter/internal/kube/convert"
	"karpenter/internal/kube/dialect"
	"karpenter/internal/kube/intent"
	"karpenter/internal/kube/ledger"
	"karpenter/internal/kube/mirror"
	"karpenter/internal/kube/nominate"
	"karpenter/internal/settings"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// rig is a planner on a fake API server and a clock of its own, with a cloud
// that sells one type of 4 CPU in zone a.
type rig struct {
	*Planner
	t      *testing.T
	kube   client.Client
	now    time.Time
	events []string
	refuse error  // of the ledger
	only   string // what it refuses: the machine of this pod; empty: every one
	begun  int
}

func (r *rig) Event(o runtime.Object, _, reason, message string) {
	m, _ := meta.Accessor(o)
	r.events = append(r.events, m.GetName()+" "+reason+": "+message)
}

func (r *rig) Begin(ctx context.Context, pool world.Pool, m ledger.Machine) (world.Record, error) {
	r.begun++
	if r.refuse != nil && (r.only == "" || m.Pods[0].Name == r.only) {
		return world.Record{}, r.refuse
	}
	return r.book().Begin(ctx, pool, m)
}

func (r *rig) Plan(ctx context.Context, claim string, pods []world.ObjectName) error {
	return r.book().Plan(ctx, claim, pods)
}

func (r *rig) book() *ledger.Ledger {
	return &ledger.Ledger{Client: r.kube, Now: func() time.Time { return r.now }}
}

func newRig(t *testing.T, objects ...client.Object) *rig {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, v1alpha5.AddToScheme, apiv1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	r := &rig{t: t, now: t0}
	r.kube = fake.NewClientBuilder().WithScheme(s).WithReturnManagedFields().WithObjects(objects...).
		WithStatusSubresource(&v1alpha5.Provisioner{}, &apiv1.NodeClaim{}).Build()
	size := quantity.Resources{MilliCPU: 4000, MemoryBytes: 16 << 30, Pods: 50}
	catalog := world.Catalog{Types: []world.InstanceType{{Name: "m.xlarge", Capacity: size, Allocatable: size,
		Labels: map[string]string{label.InstanceType: "m.xlarge", label.Arch: "amd64", label.OS: "linux",
			"karpenter.k8s.aws/instance-category": "m", "karpenter.k8s.aws/instance-generation": "6"},
		Offerings: []world.Offering{{Zone: "a", CapacityType: label.OnDemand, Price: 100_000, Available: true}}}}}
	set := settings.Default()
	r.Planner = &Planner{
		Mirror: mirror.New(r.kube, func(context.Context, world.Pool) world.Catalog { return catalog }),
		Ledger: r, Client: r.kube, Events: r, Journal: journal.New(10, 10), Settings: func() settings.Settings { return set },
		Now: func() time.Time { return r.now }, Metrics: NewMetrics(prometheus.NewRegistry()), Log: logr.Discard(),
	}
	return r
}

// pass moves the clock and makes a pass. Something that has changed was noticed
// before it, whatever it was.
func (r *rig) pass(at time.Duration) time.Duration {
	r.t.Helper()
	r.Notice(nil, &corev1.Namespace{})
	return r.quietPass(at)
}

// quietPass is a pass before which nothing was noticed.
func (r *rig) quietPass(at time.Duration) time.Duration {
	r.t.Helper()
	r.now = t0.Add(at)
	next, err := r.Pass(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return next.Sub(t0)
}

func (r *rig) claims() (out []apiv1.NodeClaim) {
	r.t.Helper()
	var l apiv1.NodeClaimList
	if err := r.kube.List(r.t.Context(), &l); err != nil {
		r.t.Fatal(err)
	}
	return l.Items
}

func (r *rig) get(name string, into client.Object) {
	r.t.Helper()
	key := client.ObjectKey{Name: name}
	if _, ok := into.(*corev1.Pod); ok {
		key.Namespace = "default"
	}
	if err := r.kube.Get(r.t.Context(), key, into); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) said(words string) int {
	n := 0
	for _, e := range r.events {
		if strings.Contains(e, words) {
			n++
		}
	}
	return n
}

func provisioner(change ...func(*v1alpha5.Provisioner)) *v1alpha5.Provisioner {
	p := &v1alpha5.Provisioner{ObjectMeta: metav1.ObjectMeta{Name: "test", UID: "pool", Generation: 1}}
	p.Spec.ProviderRef = &v1alpha5.ProviderRef{Name: "default"}
	p.Status.Conditions = []metav1.Condition{{Type: v1alpha5.ConditionReady, Status: "True", ObservedGeneration: 1}}
	empty, old := int64(30), int64(3600)
	p.Spec.TTLSecondsAfterEmpty, p.Spec.TTLSecondsUntilExpired = &empty, &old
	for _, c := range change {
		c(p)
	}
	return p
}

func pending(name, cpu string, change ...func(*corev1.Pod)) *corev1.Pod {
	yes := true
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(t0),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", UID: "rs", Controller: &yes}}}}
	p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	for _, c := range change {
		c(p)
	}
	return p
}

func on(node string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Conditions = node, nil }
}

// machine is a node with its claim, made and initialized a day before t0.
func machine(name string, change ...func(*corev1.Node)) []client.Object {
	yesterday := metav1.NewTime(t0.Add(-24 * time.Hour))
	c := convert.Claim(world.Pool{Name: "test", Kind: v1alpha5.Kind, UID: "pool"}, convert.Machine{})
	c.Name, c.UID, c.CreationTimestamp = "claim-"+name, types.UID("claim-"+name), yesterday
	size := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("50")}
	c.Status = apiv1.NodeClaimStatus{ProviderID: "aws:///a/i-" + name, NodeName: name, Capacity: size, Allocatable: size,
		Conditions: []metav1.Condition{{Type: apiv1.ConditionInitialized, Status: "True", LastTransitionTime: yesterday}}}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: yesterday, Labels: map[string]string{
		label.Provisioner: "test", label.Registered: "true", label.Initialized: "true", label.Zone: "a", label.CapacityType: label.OnDemand,
		label.InstanceType: "m.xlarge", label.Arch: "amd64", label.OS: "linux"}}}
	n.Spec.ProviderID, n.Status.Allocatable, n.Status.Capacity = c.Status.ProviderID, size, size
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, f := range change {
		f(n)
	}
	return []client.Object{c, n}
}

func emptySince(at time.Time) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.CreationTimestamp = metav1.NewTime(t0.Add(-time.Minute)) // too young to expire
		n.Annotations = map[string]string{dialect.AnnotationEmptinessTimestamp: at.Format(time.RFC3339)}
	}
}

func TestABurstOfPodsIsOnePlan(t *testing.T) {
	pods := []client.Object{pending("a", "1"), pending("b", "1"), pending("c", "1"), pending("d", "1"), pending("e", "1")}
	r := newRig(t, append(pods, provisioner())...)
	for i, p := range pods {
		r.now = t0.Add(time.Duration(i) * 100 * time.Millisecond)
		r.Notice(nil, p)
	}
	if next := r.pass(900 * time.Millisecond); next != 1400*time.Millisecond || len(r.claims()) != 0 {
		t.Fatalf("next pass at %s, %d claims", next, len(r.claims()))
	}
	r.pass(1400 * time.Millisecond)
	claims := r.claims()
	if len(claims) != 2 || r.said("Nominated") != 5 {
		t.Fatalf("%d claims, events %v", len(claims), r.events)
	}
	if got := claims[0].Annotations[dialect.AnnotationPlannedPods]; !strings.Contains(got, "default/") {
		t.Errorf("planned pods %q", got)
	}
	r.pass(20 * time.Second) // the pods still wait for their machines
	if n := len(r.claims()); n != 2 {
		t.Errorf("%d claims after another pass", n)
	}
	var kinds []journal.Kind
	e := r.Journal.Entries()
	for _, one := range e {
		kinds = append(kinds, one.Kind)
	}
	if want := []journal.Kind{journal.Tally, journal.Provision, journal.Bought, journal.Bought, journal.Kept}; !slices.Equal(kinds, want) || e[1].Snapshot == nil {
		t.Errorf("journal %+v", e)
	}
}

// A NodeClaim that was refused, for example for want of capacity, may come and
// go between two snapshots; its pods are planned anew within a batch window.
func TestARefusedMachineIsPlannedAnewAtOnce(t *testing.T) {
	p := pending("a", "1")
	r := newRig(t, provisioner(), p)
	r.Notice(nil, p)
	r.pass(2 * time.Second)
	first := r.claims()[0]
	first.Finalizers = nil
	if err := r.kube.Update(t.Context(), &first); err != nil {
		t.Fatal(err)
	}
	if err := r.kube.Delete(t.Context(), &first); err != nil {
		t.Fatal(err)
	}
	r.Notice(&first, nil)
	if next := r.pass(2500 * time.Millisecond); next != 3*time.Second {
		t.Errorf("the next pass is at %s", next)
	}
	r.pass(3 * time.Second)
	if c := r.claims(); len(c) != 1 || c[0].Name == first.Name {
		t.Errorf("claims %v", c)
	}
}

// A NodeClaim that the API server does not take is told to its pods and pool,
// keeps no other machine, and is asked for again ever later, or when the pool
// has changed.
// TestAPodThatCannotLeaveBuysNothing: neither alone nor beside a pod that waits.
func TestAPodThatCannotLeaveBuysNothing(t *testing.T) {
	stays := pending("stays", "3", on("n1"), func(p *corev1.Pod) { p.Annotations = map[string]string{dialect.AnnotationDoNotEvict: "true"} })
	r := newRig(t, append(machine("n1"), provisioner(), stays)...)
	before := len(r.claims())
	c := r.claims()[0]
	c.Finalizers = []string{dialect.FinalizerTermination}
	if err := r.kube.Update(t.Context(), &c); err != nil {
		t.Fatal(err)
	}
	if err := r.kube.Delete(t.Context(), &c); err != nil {
		t.Fatal(err)
	}
	other := pending("other", "1", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"no": "such"} })
	if err := r.kube.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	r.Notice(nil, other)
	r.pass(2 * time.Second)
	if n := len(r.claims()) - before; n != 0 {
		t.Errorf("%d machines were bought for a pod that cannot leave", n)
	}
}

func TestANodeClaimThatIsInvalid(t *testing.T) {
	bad := pending("bad", "3")
	r := newRig(t, provisioner(), bad, pending("good", "3"))
	r.only = "bad"
	r.refuse = fmt.Errorf("writing down: %w", apierrors.NewInvalid(schema.GroupKind{Group: "karpenter.sh", Kind: "NodeClaim"}, "test-x7k2p",
		field.ErrorList{field.Invalid(field.NewPath("metadata", "annotations"), "a b", "not a name")}))
	r.Notice(nil, bad)
	r.pass(time.Second)
	const why = `the API server refuses its NodeClaim: metadata.annotations: Invalid value: "a b": not a name`
	if len(r.claims()) != 1 || r.said("bad FailedScheduling: no node can be made for this pod: provisioner test: "+why) != 1 || r.said("test FailedProvisioning: no node can be made: "+why) != 1 {
		t.Errorf("%d claims, events %q", len(r.claims()), r.events)
	}
	var tries []int // after how many seconds
	for s := 2; s < 200; s++ {
		before := r.begun
		if r.pass(time.Duration(s) * time.Second); r.begun > before {
			tries = append(tries, s)
		}
	}
	if want := []int{11, 31, 71, 131, 191}; !slices.Equal(tries, want) {
		t.Errorf("asked again after %v, want %v", tries, want)
	}
	r.refuse = nil
	r.Notice(provisioner(), provisioner(func(p *v1alpha5.Provisioner) { p.Generation = 2 }))
	r.pass(201 * time.Second)
	if len(r.claims()) != 2 {
		t.Errorf("%d claims after the pool was put right", len(r.claims()))
	}
}

func TestWhatDoesNotFitIsExplainedAndTriedAgain(t *testing.T) {
	r := newRig(t, provisioner(), pending("huge", "5"), pending("odd", "1", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"intent": "apps"} }))
	r.Notice(nil, pending("huge", "5"))
	next := r.pass(time.Second)
	if len(r.claims()) != 0 || r.said("huge FailedScheduling") != 1 || r.said("odd FailedScheduling") != 1 || r.said("intent") != 1 {
		t.Errorf("claims %v, events %v", r.claims(), r.events)
	}
	if next > 11*time.Second {
		t.Errorf("the next try is at %s", next)
	}
	if r.Notice(nil, pending("huge", "5")); r.window.Open() {
		t.Error("a pod that was planned opens the window again")
	}
	if r.Notice(provisioner(), provisioner(func(p *v1alpha5.Provisioner) { p.Generation = 2 })); !r.window.Open() {
		t.Error("a changed pool does not open the window")
	}
}

// TestARetryDoesNotCutABurst: pods that arrive just before the next try for
// others are planned when their window ends, together.
func TestARetryDoesNotCutABurst(t *testing.T) {
	r := newRig(t, provisioner(), pending("huge", "5"))
	r.Notice(nil, pending("huge", "5"))
	retryAt := r.pass(time.Second)
	r.pass(retryAt - 100*time.Millisecond)
	p := pending("web", "1")
	if err := r.kube.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	r.Notice(nil, p)
	due := r.pass(retryAt)
	if len(r.claims()) != 0 || due != retryAt+900*time.Millisecond {
		t.Errorf("at the retry %d machines were asked for, and the next look is at %s", len(r.claims()), due)
	}
	if r.pass(due); len(r.claims()) != 1 {
		t.Errorf("%d machines at the end of the window, want 1", len(r.claims()))
	}
}

func TestAPoolThatIsGoneOrFullBuysNothing(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha5.Provisioner)
		want   string
	}{
		"deleted since": {nil, "deleted"},
		"limit lowered since": {func(p *v1alpha5.Provisioner) {
			p.Spec.Limits = &v1alpha5.Limits{Resources: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("0")}}
		}, "limit of cpu"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, provisioner(), pending("a", "1"))
			v, err := r.view(t.Context(), settings.Default())
			if err != nil {
				t.Fatal(err)
			}
			p := &v1alpha5.Provisioner{}
			r.get("test", p)
			if c.change == nil {
				err = r.kube.Delete(t.Context(), p)
			} else {
				c.change(p)
				err = r.kube.Update(t.Context(), p)
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := r.stillAllowed(t.Context(), v.Pools[0]); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestPodsForExistingNodesAreNominatedAndTakenBack(t *testing.T) {
	r := newRig(t, append(machine("n", func(n *corev1.Node) { n.CreationTimestamp = metav1.NewTime(t0) }), provisioner(), pending("a", "1"))...)
	r.Notice(nil, pending("a", "1"))
	r.pass(time.Second)
	p := &corev1.Pod{}
	r.get("a", p)
	if node, ours := nominate.Of(p); node != "n" || !ours || len(r.claims()) != 1 {
		t.Fatalf("nominated %q, ours %v, %d claims", node, ours, len(r.claims()))
	}
	n := &corev1.Node{}
	r.get("n", n)
	n.Spec.Unschedulable = true
	if err := r.kube.Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	r.pass(11 * time.Second)
	r.get("a", p)
	if node, _ := nominate.Of(p); node != "" || len(r.claims()) != 2 {
		t.Errorf("nominated %q, %d claims", node, len(r.claims()))
	}
}

// Pods that are planned onto a machine that boots are written down with those
// for which it was bought; once it is launched, and once.
func TestPodsForBootingMachinesAreWrittenDown(t *testing.T) {
	r := newRig(t, provisioner(), pending("a", "1"))
	r.Notice(nil, pending("a", "1"))
	r.pass(time.Second)
	planned := func(when string, want string) {
		t.Helper()
		if c := r.claims(); len(c) != 1 || c[0].Annotations[dialect.AnnotationPlannedPods] != want {
			t.Errorf("%s: claims %+v, want one for %s", when, c, want)
		}
	}
	if err := r.kube.Create(t.Context(), pending("b", "1")); err != nil {
		t.Fatal(err)
	}
	r.pass(11 * time.Second)
	planned("not launched", "default/a")
	c := r.claims()[0]
	c.Status.ProviderID = "aws:///a/i-1"
	if err := r.kube.Status().Update(t.Context(), &c); err != nil {
		t.Fatal(err)
	}
	r.pass(21 * time.Second)
	planned("launched", "default/a,default/b")
	r.pass(31 * time.Second)
	planned("later", "default/a,default/b")
}

func TestEmptyMachinesGo(t *testing.T) {
	r := newRig(t, append(append(machine("a", emptySince(t0)), machine("b", emptySince(t0))...), provisioner())...)
	r.pass(29 * time.Second)
	if next := r.pass(39 * time.Second); next != 40*time.Second {
		t.Fatalf("the last check is at %s", next)
	}
	n := &corev1.Node{}
	if r.get("a", n); !slices.Contains(n.Spec.Taints, dialect.TaintDisrupted) {
		t.Errorf("not closed to new pods: %v", n.Spec.Taints)
	}
	if err := r.kube.Create(t.Context(), pending("late", "1", on("b"))); err != nil {
		t.Fatal(err)
	}
	r.pass(40 * time.Second)
	c := &apiv1.NodeClaim{}
	if r.get("claim-a", c); c.DeletionTimestamp == nil {
		t.Error("a stays")
	}
	if r.get("claim-b", c); c.DeletionTimestamp != nil || c.Annotations[intent.Annotation] != "" {
		t.Errorf("b, which got a pod, goes: %v", c.Annotations)
	}
	n = &corev1.Node{}
	if r.get("b", n); len(n.Spec.Taints) != 0 {
		t.Errorf("b stays closed: %v", n.Spec.Taints)
	}
	kinds := ""
	for _, e := range r.Journal.Entries() {
		kinds += string(e.Kind) + " "
	}
	if kinds != "tally disrupt dropped removed kept " {
		t.Errorf("journal: %s", kinds)
	}
	r.pass(60 * time.Second) // nothing is decided twice
	var m dto.Metric
	if err := r.Metrics.disrupted.WithLabelValues("emptiness", "test").Write(&m); err != nil || m.GetCounter().GetValue() != 1 {
		t.Errorf("%v machines disrupted, %v", m.GetCounter().GetValue(), err)
	}
}

func TestExpiredMachineIsReplacedFirst(t *testing.T) {
	r := newRig(t, append(machine("a"), provisioner(), pending("p", "3", on("a")))...)
	r.pass(0)
	r.pass(time.Second)
	c := &apiv1.NodeClaim{}
	r.get("claim-a", c)
	in, ok, err := intent.Read(c.Annotations)
	if err != nil || !ok || !in.Bought || in.Replacements != 1 || in.Method != "expiration" || c.DeletionTimestamp != nil {
		t.Fatalf("intent %+v %v %v", in, ok, err)
	}
	claims := r.claims()
	i := slices.IndexFunc(claims, func(c apiv1.NodeClaim) bool { return c.Annotations[intent.ReplacesAnnotation] == in.ID })
	if len(claims) != 2 || i < 0 || claims[i].Annotations[dialect.AnnotationPlannedPods] != "default/p" {
		t.Fatalf("claims %+v", claims)
	}
	r.pass(20 * time.Second)
	if n := len(r.claims()); n != 2 {
		t.Errorf("%d claims after another look", n)
	}
}

func TestAMachineWhoseReplacementCannotBeBoughtStays(t *testing.T) {
	r := newRig(t, append(machine("a"), provisioner(), pending("p", "3", on("a")))...)
	r.refuse = errors.New("no")
	r.pass(0)
	r.now = t0.Add(time.Second)
	if _, err := r.Pass(t.Context()); err == nil {
		t.Error("no error")
	}
	c, n := &apiv1.NodeClaim{}, &corev1.Node{}
	r.get("claim-a", c)
	if r.get("a", n); c.Annotations[intent.Annotation] != "" || len(n.Spec.Taints) != 0 {
		t.Errorf("not taken back: %v %v", c.Annotations, n.Spec.Taints)
	}
}

func TestMetricsAreWellFormed(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := NewMetrics(reg)
	m.Created("provisioned", "test")
	m.Disrupted("emptiness", "test")
	m.Decided("delete", "emptiness")
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if problems, err := promlint.NewWithMetricFamilies(families).Lint(); err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
}

func TestTheLogHasTheClosestReason(t *testing.T) {
	for want, reasons := range map[string][]string{"": nil, "a": {"a"}, "a; and 2 other reason(s)": {"a", "b", "c"}} {
		if got := closest(reasons); got != want {
			t.Errorf("%q: got %q, want %q", reasons, got, want)
		}
	}
}
