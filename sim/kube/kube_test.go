package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apiv1 "karpenter/api/v1"
	"karpenter/api/v1alpha5"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// world is a cluster with a clock that is set by hand.
type world struct {
	t *testing.T
	*Cluster
	*Client
	now time.Time
}

func testScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, policyv1.AddToScheme, storagev1.AddToScheme,
		schedulingv1.AddToScheme, nodev1.AddToScheme, v1alpha5.AddToScheme, apiv1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	w := &world{t: t, now: noon}
	w.Cluster = New(Options{Scheme: testScheme(), Now: func() time.Time { return w.now }, Seed: 1})
	w.Client = w.Cluster.Client("test")
	for _, o := range objects {
		w.ok(w.Create(t.Context(), o))
	}
	return w
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// is checks that an error is of the kind that a test asks for.
func (w *world) is(err error, kind func(error) bool, words ...string) {
	w.t.Helper()
	if !kind(err) {
		w.t.Fatalf("error is %v", err)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			w.t.Errorf("error does not say %q: %v", word, err)
		}
	}
}

// isBroken reports whether the server answers with an error without a kind.
func isBroken(err error) bool {
	s, ok := err.(apierrors.APIStatus)
	return ok && s.Status().Code == 500 && s.Status().Reason == ""
}

func pod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "app:1"}}}}
	for _, f := range change {
		f(p)
	}
	return p
}

func (w *world) pod(name string) *corev1.Pod {
	w.t.Helper()
	p := &corev1.Pod{}
	w.ok(w.Get(w.t.Context(), client.ObjectKey{Namespace: "default", Name: name}, p))
	return p
}

func (w *world) gone(o client.Object) {
	w.t.Helper()
	if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
		w.t.Errorf("%T %s is still there (%v)", o, o.GetName(), err)
	}
}

// run binds a pod and makes it ready.
func (w *world) run(p *corev1.Pod, node string) {
	w.t.Helper()
	w.ok(w.SubResource("binding").Create(w.t.Context(), p, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node}}))
	got := w.pod(p.Name)
	got.Status.Phase = corev1.PodRunning
	got.Status.Conditions = append(got.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
	w.ok(w.Status().Update(w.t.Context(), got))
}

func claim(name string) *apiv1.NodeClaim {
	return &apiv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestCreate(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	c := claim("a")
	c.Status.ProviderID = "not by the main resource"
	w.ok(w.Create(ctx, c))
	if c.UID == "" || c.ResourceVersion == "" || c.Generation != 1 || !c.CreationTimestamp.Time.Equal(noon) || c.Status.ProviderID != "" {
		t.Errorf("created: %+v", c)
	}
	w.is(w.Create(ctx, claim("a")), apierrors.IsAlreadyExists, "a")
	w.is(w.Create(ctx, c), isBroken, "resourceVersion")
	w.is(w.Create(ctx, claim("Not A Name")), apierrors.IsInvalid, "metadata.name")
	w.is(w.Create(ctx, claim("")), apierrors.IsInvalid, "metadata.name")
	w.is(w.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x"}}), apierrors.IsBadRequest, "namespace")
	names := map[string]bool{}
	for range 20 {
		c := claim("")
		c.GenerateName = "web-"
		w.ok(w.Create(ctx, c))
		names[c.Name] = strings.HasPrefix(c.Name, "web-") && len(c.Name) == 9
	}
	if len(names) != 20 {
		t.Errorf("%d names of 20: %v", len(names), names)
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Phase: "x"}}
	w.ok(w.Create(ctx, n))
	if n.Status.Phase != "x" || n.Generation != 0 {
		t.Errorf("a kubelet creates its Node with status: %+v", n)
	}
	dry := claim("dry")
	w.ok(w.Create(ctx, dry, client.DryRunAll))
	w.gone(dry)
}

func TestTheSameSeedGivesTheSameHistory(t *testing.T) {
	history := func(seed uint64) (out string) {
		c := New(Options{Scheme: testScheme(), Now: func() time.Time { return noon }, Seed: seed})
		c.Subscribe(func(e Event) { out += fmt.Sprintln(e.Version, e.Object().GetName(), e.Object().GetUID()) })
		for range 5 {
			p := pod("")
			p.GenerateName = "p-"
			if err := c.Client("x").Create(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		return out
	}
	once, again, other := history(1), history(1), history(2)
	if once != again || once == other {
		t.Error(once, again, other)
	}
}

func TestOptimisticLock(t *testing.T) {
	w := newWorld(t, claim("a"))
	ctx := t.Context()
	read := func() *apiv1.NodeClaim {
		c := claim("a")
		w.ok(w.Get(ctx, client.ObjectKeyFromObject(c), c))
		return c
	}
	first, second := read(), read()
	first.Labels = map[string]string{"by": "first"}
	w.ok(w.Update(ctx, first))
	second.Labels = map[string]string{"by": "second"}
	w.is(w.Update(ctx, second), apierrors.IsConflict, "modified")
	w.is(w.Status().Update(ctx, second), apierrors.IsConflict)
	base := second.DeepCopy()
	second.Labels["x"] = "y"
	w.is(w.Patch(ctx, second, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})), apierrors.IsConflict)
	w.ok(w.Patch(ctx, second, client.MergeFrom(base)))
	if got := read(); got.Labels["by"] != "first" || got.Labels["x"] != "y" {
		t.Errorf("labels: %v", got.Labels)
	}
	blind := claim("a")
	w.is(w.Update(ctx, blind), apierrors.IsInvalid, "resourceVersion")
	other := read()
	other.UID = "another"
	w.is(w.Update(ctx, other), apierrors.IsConflict, "UID")
	uid, version := types.UID("another"), "1"
	w.is(w.Delete(ctx, claim("a"), client.Preconditions{UID: &uid}), apierrors.IsConflict, "UID")
	w.is(w.Delete(ctx, claim("a"), client.Preconditions{ResourceVersion: &version}), apierrors.IsConflict, "ResourceVersion")
	w.is(w.Delete(ctx, claim("b")), apierrors.IsNotFound)
	w.is(w.Update(ctx, pod("none")), apierrors.IsNotFound)
}

func TestGenerationCountsChangesOfTheSpec(t *testing.T) {
	w := newWorld(t, claim("a"))
	ctx := t.Context()
	c := claim("a")
	w.ok(w.Get(ctx, client.ObjectKeyFromObject(c), c))
	before, version := c.DeepCopy(), c.ResourceVersion
	w.ok(w.Patch(ctx, c, client.MergeFrom(before)))
	if c.ResourceVersion != version {
		t.Error("a write that changes nothing is a change")
	}
	c.Labels = map[string]string{"a": "b"}
	w.ok(w.Update(ctx, c))
	if c.Generation != 1 || c.ResourceVersion == version {
		t.Errorf("labels: generation %d", c.Generation)
	}
	c.Status.NodeName = "n"
	w.ok(w.Update(ctx, c))
	if c.Status.NodeName != "" {
		t.Error("the main resource has changed the status")
	}
	c.Status.NodeName = "n"
	c.Spec.Taints = []apiv1.Taint{{Key: "k", Effect: "NoSchedule"}}
	w.ok(w.Status().Update(ctx, c))
	if c.Status.NodeName != "n" || c.Spec.Taints != nil || c.Generation != 1 {
		t.Errorf("status: %+v", c)
	}
	c.Spec.Taints = []apiv1.Taint{{Key: "k", Effect: "NoSchedule"}}
	w.ok(w.Update(ctx, c))
	if c.Generation != 2 || c.Status.NodeName != "n" {
		t.Errorf("spec: generation %d, status %+v", c.Generation, c.Status)
	}
}

func TestFinalizersHold(t *testing.T) {
	c := claim("a")
	c.Finalizers = []string{"test/hold"}
	w := newWorld(t, c)
	ctx := t.Context()
	w.ok(w.Delete(ctx, c))
	w.ok(w.Delete(ctx, c))
	w.ok(w.Get(ctx, client.ObjectKeyFromObject(c), c))
	if c.DeletionTimestamp == nil || !c.DeletionTimestamp.Time.Equal(noon) || c.Generation != 2 {
		t.Errorf("being deleted: %+v", c.ObjectMeta)
	}
	more := c.DeepCopy()
	more.Finalizers = append(more.Finalizers, "test/late")
	w.is(w.Update(ctx, more), apierrors.IsInvalid, "finalizers")
	alive := c.DeepCopy()
	alive.DeletionTimestamp = nil
	w.ok(w.Update(ctx, alive))
	if alive.DeletionTimestamp == nil {
		t.Error("a deletion was taken back")
	}
	before := alive.DeepCopy()
	alive.Finalizers = nil
	w.ok(w.Patch(ctx, alive, client.MergeFrom(before)))
	w.gone(claim("a"))
}

func TestPodsGoGracefully(t *testing.T) {
	w := newWorld(t, pod("waiting"), pod("running"), pod("done"), pod("forced"))
	ctx := t.Context()
	w.ok(w.Delete(ctx, pod("waiting")))
	w.gone(pod("waiting"))
	for _, name := range []string{"running", "done", "forced"} {
		w.run(w.pod(name), "n")
	}
	done := w.pod("done")
	done.Status.Phase = corev1.PodSucceeded
	w.ok(w.Status().Update(ctx, done))
	w.ok(w.Delete(ctx, done))
	w.gone(pod("done"))
	w.ok(w.Delete(ctx, pod("forced"), client.GracePeriodSeconds(0)))
	w.gone(pod("forced"))

	end := func(after time.Duration, grace int64) {
		t.Helper()
		p := w.pod("running")
		if p.DeletionTimestamp == nil || !p.DeletionTimestamp.Time.Equal(noon.Add(after)) || *p.DeletionGracePeriodSeconds != grace {
			t.Fatalf("ends at %v with %v", p.DeletionTimestamp, p.DeletionGracePeriodSeconds)
		}
	}
	w.ok(w.Delete(ctx, pod("running")))
	end(30*time.Second, 30)
	w.now = noon.Add(10 * time.Second)
	w.ok(w.Delete(ctx, pod("running"), client.GracePeriodSeconds(60))) // cannot be made longer
	end(30*time.Second, 30)
	w.ok(w.Delete(ctx, pod("running"), client.GracePeriodSeconds(20)))
	end(20*time.Second, 20)
	w.ok(w.Delete(ctx, pod("running"), client.GracePeriodSeconds(0))) // its kubelet is done
	w.gone(pod("running"))
}

func TestPatches(t *testing.T) {
	p := pod("p", func(p *corev1.Pod) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "side", Image: "s:1"})
	})
	w := newWorld(t, p, claim("c"))
	ctx := t.Context()
	patch := func(o client.Object, kind types.PatchType, body string) error {
		return w.Patch(ctx, o, client.RawPatch(kind, []byte(body)))
	}
	w.ok(patch(pod("p"), types.StrategicMergePatchType, `{"spec":{"containers":[{"name":"side","image":"s:2"}]}}`))
	if got := w.pod("p"); len(got.Spec.Containers) != 2 || got.Spec.Containers[1].Image != "s:2" {
		t.Errorf("strategic: %+v", got.Spec.Containers)
	}
	w.ok(patch(pod("p"), types.JSONPatchType, `[{"op":"replace","path":"/metadata/labels/app","value":"db"}]`))
	w.ok(patch(pod("p"), types.MergePatchType, `{"metadata":{"labels":{"x":"y"},"annotations":null}}`))
	if got := w.pod("p"); got.Labels["app"] != "db" || got.Labels["x"] != "y" {
		t.Errorf("labels: %v", got.Labels)
	}
	w.is(patch(pod("p"), types.JSONPatchType, `[{"op":"test","path":"/metadata/labels/app","value":"no"}]`), apierrors.IsInvalid)
	w.is(patch(pod("p"), types.MergePatchType, `{"spec":{"nodeName":"n"}}`), apierrors.IsInvalid, "spec")
	w.is(patch(pod("p"), types.MergePatchType, `{"metadata":{"name":"q"}}`), apierrors.IsBadRequest)
	w.is(patch(pod("p"), types.MergePatchType, `no`), apierrors.IsBadRequest)
	w.is(patch(claim("c"), types.StrategicMergePatchType, `{}`), apierrors.IsUnsupportedMediaType)
	w.is(patch(claim("none"), types.MergePatchType, `{}`), apierrors.IsNotFound)
}

func TestBinding(t *testing.T) {
	w := newWorld(t, pod("p"), pod("gated", func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} }))
	ctx := t.Context()
	p := w.pod("p")
	p.Status.NominatedNodeName = "n"
	w.ok(w.Status().Update(ctx, p))
	to := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "n"}}
	w.ok(w.SubResource("binding").Create(ctx, pod("p"), to))
	if p := w.pod("p"); p.Spec.NodeName != "n" || p.Status.NominatedNodeName != "" || p.Status.Conditions[0].Type != corev1.PodScheduled {
		t.Errorf("bound: %+v", p)
	}
	w.is(w.SubResource("binding").Create(ctx, pod("p"), to), apierrors.IsConflict, "already assigned")
	w.is(w.SubResource("binding").Create(ctx, pod("gated"), to), apierrors.IsConflict, "schedulingGates")
	w.is(w.SubResource("binding").Create(ctx, pod("none"), to), apierrors.IsNotFound)
	w.is(w.SubResource("binding").Create(ctx, claim("p"), to), apierrors.IsNotFound)
}

func TestAdmission(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	w.opt.Admit = func(_ context.Context, old, new runtime.Object) error {
		if c, ok := new.(*apiv1.NodeClaim); ok && len(c.Spec.Taints) > 0 && (old == nil) == (c.Name == "a") {
			return errors.New("spec.taints: none, please")
		}
		return nil
	}
	bad := claim("a")
	bad.Spec.Taints = []apiv1.Taint{{Key: "k"}}
	w.is(w.Create(ctx, bad), apierrors.IsInvalid, "spec.taints: none, please")
	c := claim("b")
	w.ok(w.Create(ctx, c))
	c.Spec.Taints = bad.Spec.Taints
	w.is(w.Update(ctx, c), apierrors.IsInvalid)
}

func TestWhatAPodIsGiven(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	name := "kata"
	w.ok(w.Create(ctx, &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: "k",
		Overhead: &nodev1.Overhead{PodFixed: corev1.ResourceList{"cpu": resource.MustParse("250m")}}}))
	w.ok(w.Create(ctx, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 7}))
	p := pod("p", func(p *corev1.Pod) {
		p.Spec.RuntimeClassName, p.Spec.PriorityClassName = &name, "high"
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("2")}
	})
	w.ok(w.Create(ctx, p))
	if p.Spec.Overhead.Cpu().MilliValue() != 250 || *p.Spec.Priority != 7 || p.Spec.Containers[0].Resources.Requests.Cpu().Value() != 2 ||
		p.Status.Phase != corev1.PodPending || *p.Spec.TerminationGracePeriodSeconds != 30 || len(p.Spec.Tolerations) != 2 {
		t.Errorf("pod: %+v", p.Spec)
	}
	q := pod("q", func(p *corev1.Pod) { p.Spec.PriorityClassName = "system-node-critical" })
	w.ok(w.Create(ctx, q))
	if *q.Spec.Priority != 2000001000 {
		t.Errorf("priority %d", *q.Spec.Priority)
	}
}

func TestLists(t *testing.T) {
	other := pod("b")
	other.Namespace = "zoo"
	w := newWorld(t, pod("c"), pod("a"), other, pod("b", func(p *corev1.Pod) { p.Labels = nil }))
	ctx := t.Context()
	w.run(w.pod("c"), "n")
	w.ok(w.IndexField(&corev1.Pod{}, "first", func(o client.Object) []string { return []string{o.GetName()[:1]} }))
	for _, c := range []struct {
		want string
		opts []client.ListOption
	}{
		{"default/a default/b default/c zoo/b", nil},
		{"default/a default/b default/c", []client.ListOption{client.InNamespace("default")}},
		{"default/a default/c zoo/b", []client.ListOption{client.MatchingLabels{"app": "web"}}},
		{"default/c", []client.ListOption{client.MatchingFields{"spec.nodeName": "n"}}},
		{"default/a default/b zoo/b", []client.ListOption{client.MatchingFields{"spec.nodeName": ""}}},
		{"zoo/b", []client.ListOption{client.MatchingFields{"first": "b"}, client.InNamespace("zoo"), client.UnsafeDisableDeepCopy}},
		{"", []client.ListOption{client.MatchingFields{"first": "b", "spec.nodeName": "n"}}},
		{"default/b zoo/b", []client.ListOption{client.MatchingFields{"metadata.name": "b"}}},
		{"default/a default/b", []client.ListOption{client.Limit(2)}},
	} {
		var list corev1.PodList
		w.ok(w.List(ctx, &list, c.opts...))
		var got []string
		for i := range list.Items {
			got = append(got, list.Items[i].Namespace+"/"+list.Items[i].Name)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%v: %v, want %s", c.opts, got, c.want)
		}
	}
	w.is(w.List(ctx, &corev1.PodList{}, client.MatchingFields{"spec.hostname": "x"}), apierrors.IsBadRequest, "spec.hostname")
	w.ok(w.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace("default"), client.MatchingLabels{"app": "web"}))
	w.gone(pod("a"))
	w.pod("b")
}
