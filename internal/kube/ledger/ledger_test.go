package ledger

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "karpenter/api/v1"
	"karpenter/internal/cloud"
	"karpenter/internal/core/label"
	"karpenter/internal/core/lifecycle"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/dialect"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

var pool = world.Pool{Name: "test", Kind: "Provisioner", UID: "uid-test", Labels: map[string]string{label.Provisioner: "test", "env": "prod"},
	Class: world.ClassRef{Group: "karpenter.k8s.aws", Kind: "AWSNodeTemplate", Name: "default"}}

func newLedger(t *testing.T, objects ...client.Object) (*Ledger, *int) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	writes := 0
	b := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1.NodeClaim{}).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			writes++
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	for _, i := range Indexes() {
		b = b.WithIndex(i.Object, i.Field, i.Values)
	}
	return &Ledger{Client: b.Build(), Now: func() time.Time { return noon }}, &writes
}

func read(t *testing.T, l *Ledger, name string) *v1.NodeClaim {
	t.Helper()
	c := &v1.NodeClaim{}
	if err := l.Client.Get(t.Context(), client.ObjectKey{Name: name}, c); err != nil {
		t.Fatal(err)
	}
	return c
}

func begin(t *testing.T, l *Ledger) *v1.NodeClaim {
	t.Helper()
	r, err := l.Begin(t.Context(), pool, Machine{
		Requirements: []label.Requirement{
			{Key: "team", Op: label.In, Values: []string{"a"}},
			{Key: label.InstanceType, Op: label.In, Values: []string{"m6a.large", "m6a.xlarge"}},
		},
		Requests: quantity.Resources{MilliCPU: 1000}, Pods: []world.ObjectName{{Namespace: "default", Name: "a"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Pool != "test" || r.PoolKind != "Provisioner" || len(r.Pods) != 1 || r.Requests.MilliCPU != 1000 {
		t.Errorf("what was written down reads as %+v", r)
	}
	return read(t, l, r.Name)
}

var machine = cloud.Instance{ID: "i-1", ProviderID: "aws:///z/i-1", ImageID: "ami-1",
	Labels:   map[string]string{label.InstanceType: "m6a.large", "env": "provider", "team": "a"},
	Capacity: quantity.Resources{MilliCPU: 2000, Pods: 29}}

func TestLaunchedWritesLabelsThenOneStatus(t *testing.T) {
	l, writes := newLedger(t)
	c := begin(t, l)
	if err := l.Prepared(t.Context(), c, "body", "hash"); err != nil {
		t.Fatal(err)
	}
	if c.Annotations[dialect.AnnotationClassHash] != "hash" || c.Annotations[dialect.AnnotationClassHashVersion] == "" {
		t.Errorf("the hash of the class is not written down: %v", c.Annotations)
	}
	if err := l.Launched(t.Context(), c, machine); err != nil {
		t.Fatal(err)
	}
	c = read(t, l, c.Name)
	for key, want := range map[string]string{label.InstanceType: "m6a.large", "env": "prod", "team": "a", label.Provisioner: "test"} {
		if c.Labels[key] != want {
			t.Errorf("label %s is %q, want %q", key, c.Labels[key], want)
		}
	}
	if *writes != 1 || c.Status.ProviderID != machine.ProviderID || c.Status.Capacity.Cpu().MilliValue() != 2000 {
		t.Errorf("%d writes of the status %+v", *writes, c.Status)
	}
	for kind, want := range map[string]metav1.ConditionStatus{v1.ConditionLaunched: "True", v1.ConditionRegistered: "Unknown", v1.ConditionReady: "Unknown"} {
		if got := meta.FindStatusCondition(c.Status.Conditions, kind); got == nil || got.Status != want || got.Reason == "" {
			t.Errorf("condition %s: %+v", kind, got)
		}
	}
}

func TestWhatIsDeletedIsNotReady(t *testing.T) {
	l, _ := newLedger(t)
	c := begin(t, l)
	up := []lifecycle.Condition{{Type: lifecycle.Launched, Status: lifecycle.True, Reason: "Launched"},
		{Type: lifecycle.Registered, Status: lifecycle.True, Reason: "Registered"}, {Type: lifecycle.Initialized, Status: lifecycle.True, Reason: "Initialized"}}
	if err := l.Note(t.Context(), c, "node-a", up...); err != nil {
		t.Fatal(err)
	}
	if !meta.IsStatusConditionTrue(c.Status.Conditions, v1.ConditionReady) {
		t.Fatalf("not ready when it is up: %+v", c.Status.Conditions)
	}
	if err := l.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	c = read(t, l, c.Name)
	if err := l.Note(t.Context(), c, ""); err != nil { // a step of the drain that has nothing else to say
		t.Fatal(err)
	}
	got := meta.FindStatusCondition(read(t, l, c.Name).Status.Conditions, v1.ConditionReady)
	if got.Status != metav1.ConditionFalse || got.Reason != "Terminating" || got.Message == "" {
		t.Errorf("ready while it is taken down: %+v", got)
	}
}

func TestTwoWritersDoNotOverwriteEachOther(t *testing.T) {
	l, _ := newLedger(t)
	c := begin(t, l)
	stale := c.DeepCopy()
	if err := l.Prepared(t.Context(), c, "body", ""); err != nil {
		t.Fatal(err)
	}
	if err := l.Prepared(t.Context(), stale.DeepCopy(), "other body", ""); !apierrors.IsConflict(err) {
		t.Errorf("a second launch was written down: %v", err)
	}
	if err := l.Delete(t.Context(), stale.DeepCopy()); !apierrors.IsConflict(err) {
		t.Errorf("deleted on an old look: %v", err)
	}
	// Its deletion crosses the answer of the cloud.
	if err := l.Client.Delete(t.Context(), read(t, l, c.Name)); err != nil {
		t.Fatal(err)
	}
	if err := l.Launched(t.Context(), c, machine); !apierrors.IsConflict(err) {
		t.Errorf("error is %v, want a conflict", err)
	}
	if got := read(t, l, c.Name); got.Status.ProviderID != machine.ProviderID {
		t.Error("the machine of a record that is being deleted is not known")
	}
	if err := l.Prepared(t.Context(), stale, "late", ""); err == nil {
		t.Error("a record that is being deleted took a launch")
	}
}

func TestNoteWritesOnlyChanges(t *testing.T) {
	l, writes := newLedger(t)
	c := begin(t, l)
	failed := lifecycle.Condition{Type: lifecycle.Launched, Status: lifecycle.Unknown, Reason: "LaunchFailed", Message: strings.Repeat("é", 400)}
	for range 3 {
		if err := l.Note(t.Context(), c, "", failed); err != nil {
			t.Fatal(err)
		}
	}
	got := meta.FindStatusCondition(c.Status.Conditions, v1.ConditionLaunched)
	if *writes != 1 || len(got.Message) > conditionMessageMax || strings.ContainsRune(got.Message, '\uFFFD') {
		t.Errorf("%d writes, message of %d bytes %q", *writes, len(got.Message), got.Message)
	}
	ready := meta.FindStatusCondition(c.Status.Conditions, v1.ConditionReady)
	if ready == nil || ready.Reason != "LaunchFailed" || ready.Status != metav1.ConditionUnknown {
		t.Errorf("Ready repeats what is lacking: %+v", ready)
	}
}

func TestPatchNode(t *testing.T) {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: map[string]string{lifecycle.EmptySince: "x", "keep": "y"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Other", Name: "o", UID: "o"}}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "a", Value: "old", Effect: "NoSchedule"}, {Key: "b", Effect: "NoExecute"}}},
	}
	l, _ := newLedger(t, n)
	c := begin(t, l)
	if err := l.Client.Get(t.Context(), client.ObjectKey{Name: "n"}, n); err != nil {
		t.Fatal(err)
	}
	stale := n.DeepCopy()
	err := l.PatchNode(t.Context(), n, c, lifecycle.NodePatch{
		Labels: map[string]string{"l": "1"}, DropAnnotations: []string{lifecycle.EmptySince}, Hold: true, Own: true, Cordon: true,
		AddTaints: []world.Taint{{Key: "a", Value: "new", Effect: world.NoSchedule}}, DropTaints: []world.Taint{{Key: "b", Effect: world.NoExecute}},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := &corev1.Node{}
	if err := l.Client.Get(t.Context(), client.ObjectKey{Name: "n"}, got); err != nil {
		t.Fatal(err)
	}
	if got.Labels["l"] != "1" || len(got.Annotations) != 1 || len(got.Finalizers) != 1 || !got.Spec.Unschedulable ||
		len(got.Spec.Taints) != 1 || got.Spec.Taints[0].Value != "new" || len(got.OwnerReferences) != 1 || got.OwnerReferences[0].Kind != "Provisioner" {
		t.Errorf("node: %+v %+v", got.ObjectMeta, got.Spec)
	}
	if f := Facts(got, c, nil); !f.Held || !f.Owned || !f.Unschedulable {
		t.Errorf("facts: %+v", f)
	}
	if err := l.PatchNode(t.Context(), stale, c, lifecycle.NodePatch{Hold: true}); !apierrors.IsConflict(err) {
		t.Errorf("written on an old look: %v", err)
	}
	c.OwnerReferences = nil
	if o := Owner(c); o.Kind != "NodeClaim" || o.Name != c.Name {
		t.Errorf("a record without a Provisioner owns its Node: %+v", o)
	}
}

func TestNothingIsFoundByAnEmptyIdentity(t *testing.T) {
	l, _ := newLedger(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "booting"}})
	begin(t, l)
	nodes, err := l.Nodes(t.Context(), "")
	if err != nil || len(nodes) != 0 {
		t.Errorf("nodes: %d, %v", len(nodes), err)
	}
	if c, err := l.Claim(t.Context(), ""); err != nil || c != nil {
		t.Errorf("record: %v, %v", c, err)
	}
}
