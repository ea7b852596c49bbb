package record

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "karpenter/api/v1"
	"karpenter/internal/core/quantity"
	"karpenter/internal/kube/dialect"
	"karpenter/internal/kube/intent"
	"karpenter/internal/scenario/cases"
	"karpenter/internal/settings"
	"karpenter/sim/ec2"
	"karpenter/sim/rig"
)

var (
	ctx   = context.Background()
	start = time.Date(2030, 1, 7, 0, 0, 0, 0, time.UTC)
)

// world is one without a controller: a test does what it would do.
type world struct {
	*rig.Rig
	*Recorder
	t    *testing.T
	kube client.Client
}

func newWorld(t *testing.T) *world {
	r := rig.New(rig.Options{Seed: 1, Start: start, Settings: settings.Default(), Cloud: ec2.Options{Zones: []string{"us-west-2a"}}})
	w := &world{Rig: r, t: t, kube: r.Kube.Client("world")}
	w.Recorder = Attach(r, func(i ec2.Instance) quantity.Price { return 1_000_000 })
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// at moves the clock, and does something.
func (w *world) at(d time.Duration, do func()) {
	w.Rig.At(start.Add(d), do)
	w.Rig.Run(start.Add(d))
}

// pod makes a pod of an owner, bound if it names a node.
func (w *world) pod(name, owner, node string) {
	yes := true
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: owner, UID: types.UID(owner), Controller: &yes}}}}
	p.Spec.Containers = []corev1.Container{{Name: "main", Image: "x"}}
	w.must(w.kube.Create(ctx, p))
	if node != "" {
		w.bind(name, node)
	}
}

func (w *world) bind(name, node string) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	w.must(w.kube.SubResource("binding").Create(ctx, p, &corev1.Binding{ObjectMeta: p.ObjectMeta, Target: corev1.ObjectReference{Kind: "Node", Name: node}}))
}

// node makes a node and its claim, which is being deleted if there is a method.
func (w *world) node(name, method string, change ...func(*karpv1.NodeClaim)) {
	c := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(start)}}
	c.Status.NodeName = name
	if method != "" {
		now := metav1.NewTime(start)
		c.DeletionTimestamp, c.Finalizers = &now, []string{dialect.FinalizerTermination}
		c.Annotations = map[string]string{intent.Annotation: intent.Intent{ID: "c", Method: method}.String()}
	}
	for _, f := range change {
		f(c)
	}
	w.must(w.Rig.Kube.Import(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, c))
}

// evict is what a process does, as the log has it.
func (w *world) evict(name string) {
	w.Rig.Log.Events = append(w.Rig.Log.Events, cases.Event{Kind: cases.Evicted, Subject: "default/" + name})
	w.must(w.kube.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}, client.GracePeriodSeconds(0)))
}

func TestWaitsAreSpreadOverSlots(t *testing.T) {
	w := newWorld(t)
	w.node("n", "")
	w.at(4*time.Minute, func() { w.pod("a", "web", "") })
	w.at(6*time.Minute, func() { w.bind("a", "n") })
	w.at(61*time.Minute, func() { w.pod("b", "web", "") })
	w.at(62*time.Minute, func() {})
	r := w.Recorder.Report()
	if r.Slots[0].Pending != time.Minute || r.Slots[1].Pending != time.Minute {
		t.Errorf("waits in the first two slots: %s, %s; want a minute each", r.Slots[0].Pending, r.Slots[1].Pending)
	}
	if len(r.Hours) != 2 || r.Hours[0].Pending != 2*time.Minute || r.Hours[1].Pending != time.Minute {
		t.Errorf("hours: %+v; want two, with two minutes and one", r.Hours)
	}
	if a, b := r.Pods[0], r.Pods[1]; a.Pending != 2*time.Minute || a.Waits || b.Pending != time.Minute || !b.Waits {
		t.Errorf("pods: %+v, %+v; want a to have waited for two minutes, b to wait still", a, b)
	}
	if o := r.Owners(); len(o) != 1 || o[0] != (Owner{Name: "default/web", Pods: 2, Pending: 180}) {
		t.Errorf("owners: %+v", o)
	}
}

func TestWhyPodsAreDisturbed(t *testing.T) {
	w := newWorld(t)
	for name, method := range map[string]string{"consolidated": "consolidation", "drifted": "drift"} {
		w.node(name, method)
	}
	w.node("spot", "consolidation", func(c *karpv1.NodeClaim) { c.Annotations[dialect.AnnotationInterrupted] = "spot" })
	w.node("old", "x", func(c *karpv1.NodeClaim) { c.Annotations, c.Spec.ExpireAfter = nil, "1m" })
	w.node("by-hand", "x", func(c *karpv1.NodeClaim) { c.Annotations, c.Spec.ExpireAfter = nil, "Never" })
	w.node("stays", "")
	want := map[string]string{"consolidated": "consolidation", "drifted": "drift", "spot": Interruption, "old": Expiration, "by-hand": Deletion}
	w.at(2*time.Minute, func() {
		for node := range want {
			w.pod("on-"+node, "web-"+node, node)
			w.evict("on-" + node)
		}
		w.pod("surplus", "web", "stays") // its owner deletes it: that is no disturbance
		w.must(w.kube.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "surplus"}}, client.GracePeriodSeconds(0)))
		w.pod("lost", "web", "gone")
		w.must(w.kube.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "lost"}}, client.GracePeriodSeconds(0)))
	})
	r := w.Recorder.Report()
	got := map[string]string{}
	for _, d := range r.Disruptions {
		got[d.Node] = d.Reason
	}
	want["gone"] = Loss
	for node, why := range want {
		if got[node] != why {
			t.Errorf("pod on %s: disturbed by %q, want %q", node, got[node], why)
		}
	}
	if len(got) != len(want) {
		t.Errorf("disturbed: %v, want only %v", got, want)
	}
	if n := r.Total.Disruptions(); n != len(want) {
		t.Errorf("%d in total, want %d", n, len(want))
	}
}

// The pod that an owner makes in place of one that was moved has been moved
// itself; one that it makes later, or another owner makes, has not.
func TestAPodThatIsMovedAgain(t *testing.T) {
	w := newWorld(t)
	w.node("n", "consolidation")
	w.at(time.Minute, func() { w.pod("a", "web", "n"); w.pod("x", "other", "n") })
	w.at(2*time.Minute, func() { w.evict("a") })
	w.at(2*time.Minute, func() { w.pod("b", "web", "n"); w.pod("y", "other", "n") })
	w.at(10*time.Minute, func() { w.pod("c", "web", "n") })
	w.at(32*time.Minute, func() { w.evict("b"); w.evict("c"); w.evict("x"); w.evict("y") })
	r := w.Recorder.Report()
	again := r.Again(time.Hour)
	if len(again) != 1 || again[0].Pod != "default/b" || *again[0].Before != 30*time.Minute {
		t.Errorf("moved again: %+v; want b alone, half an hour after a", again)
	}
	if len(r.Again(10*time.Minute)) != 0 {
		t.Error("half an hour is within ten minutes")
	}
}

func TestMachinesArePaidFromStartToEnd(t *testing.T) {
	w := newWorld(t)
	run := func() {
		w.must(w.Rig.Cloud.Place(ec2.Instance{ID: "i-1", Type: "m5.large", Zone: "us-west-2a", Market: ec2.Spot, State: ec2.Running, Launched: start}))
		i, _ := w.Rig.Cloud.Instance("i-1")
		w.Recorder.machine(i, w.Rig.Now())
	}
	w.at(50*time.Minute, run)
	w.at(80*time.Minute, func() { w.must(w.Rig.Cloud.Terminate("i-1")) })
	w.at(2*time.Hour, func() { w.Recorder.Sample(250_000) })
	r := w.Recorder.Report()
	if r.Hours[0].Spot != 10*time.Minute || r.Hours[1].Spot != 20*time.Minute || r.Total.OnDemand != 0 {
		t.Errorf("spot: %s and %s, want ten minutes and twenty", r.Hours[0].Spot, r.Hours[1].Spot)
	}
	if usd := r.Total.USD(); usd < 0.4999 || usd > 0.5001 {
		t.Errorf("half an hour at $1/h costs $%f", usd)
	}
	if r.Total.Launched != 1 || r.Total.Ended != 1 {
		t.Errorf("%d launched, %d ended", r.Total.Launched, r.Total.Ended)
	}
	if ratio, ok := r.Total.Ratio(2 * time.Hour); !ok || ratio < 0.999 || ratio > 1.001 {
		t.Errorf("paid $0.25/h, would pay $0.25/h on an empty cluster: ratio %f %v", ratio, ok)
	}
	if _, ok := r.Hours[0].Ratio(time.Hour); ok {
		t.Error("nobody asked in the first hour, and there is a ratio")
	}
	text, err := json.Marshal(r.Total)
	if err != nil || !strings.Contains(string(text), `"usd":0.5`) {
		t.Errorf("as JSON: %s %v", text, err)
	}
}
