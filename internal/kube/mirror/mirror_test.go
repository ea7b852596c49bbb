package mirror

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	apiv1 "karpenter/api/v1"
	"karpenter/api/v1alpha5"
	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/convert"
	"karpenter/internal/kube/dialect"
	"karpenter/internal/kube/intent"
	"karpenter/internal/kube/nominate"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const window = 20 * time.Second

// words of a view: a line per pool, node and pending pod.
func words(v *View) string {
	var b strings.Builder
	for _, p := range v.Pools {
		fmt.Fprintf(&b, "pool %s", p.Name)
		if p.NotReady != "" {
			fmt.Fprintf(&b, " (%s)", p.NotReady)
		}
		if !p.Used.IsZero() {
			fmt.Fprintf(&b, " used %s", p.Used)
		}
		b.WriteString("\n")
	}
	for _, n := range v.Nodes {
		fmt.Fprintf(&b, "node %s", n.Name)
		for _, w := range []struct {
			when bool
			word string
		}{{n.Claim != "", "claim=" + n.Claim}, {n.Pool != "", "pool=" + n.Pool}, {!n.Joined, "booting"}, {n.Joined && !n.Initialized, "joining"},
			{n.Deleting, "deleting"}, {n.Disruption != "", "by=" + n.Disruption}, {n.NominatedUntil != nil, "expecting"}} {
			if w.when {
				b.WriteString(" " + w.word)
			}
		}
		fmt.Fprintf(&b, " [%s]", n.Allocatable)
		for _, p := range n.Pods {
			b.WriteString(" " + p.Name)
			if p.Node != n.Name {
				b.WriteString("*") // room kept
			}
		}
		b.WriteString("\n")
	}
	for _, p := range v.Pending {
		b.WriteString("pending " + p.Name + "\n")
	}
	return b.String()
}

func provisioner(change ...func(*v1alpha5.Provisioner)) *v1alpha5.Provisioner {
	p := &v1alpha5.Provisioner{ObjectMeta: metav1.ObjectMeta{Name: "test", UID: "pool", Generation: 1}}
	p.Spec.ProviderRef = &v1alpha5.ProviderRef{Name: "default"}
	p.Status.Conditions = []metav1.Condition{{Type: v1alpha5.ConditionReady, Status: "True", ObservedGeneration: 1}}
	for _, c := range change {
		c(p)
	}
	return p
}

func claim(name string, change ...func(*apiv1.NodeClaim)) *apiv1.NodeClaim {
	c := convert.Claim(world.Pool{Name: "test", Kind: v1alpha5.Kind, UID: "pool"}, convert.Machine{
		Requirements: []label.Requirement{{Key: label.InstanceType, Op: label.In, Values: []string{"small", "large"}}, {Key: label.Zone, Op: label.In, Values: []string{"a"}}},
		Pods:         []world.ObjectName{{Namespace: "default", Name: "p"}},
	})
	c.Name, c.UID, c.CreationTimestamp = name, types.UID(name), metav1.NewTime(t0)
	for _, f := range change {
		f(c)
	}
	return c
}

func launched(c *apiv1.NodeClaim) {
	c.Status.ProviderID = "aws:///a/i-" + c.Name
	c.Status.Capacity = resources("4", "50")
	c.Status.Allocatable = resources("3900m", "50")
}

func initialized(at time.Time) func(*apiv1.NodeClaim) {
	return func(c *apiv1.NodeClaim) {
		launched(c)
		c.Status.NodeName = "node-" + c.Name
		c.Status.Conditions = []metav1.Condition{{Type: apiv1.ConditionInitialized, Status: "True", LastTransitionTime: metav1.NewTime(at)}}
	}
}

func deleted(c *apiv1.NodeClaim) { now := metav1.NewTime(t0); c.DeletionTimestamp = &now }

func until(d time.Duration) func(*apiv1.NodeClaim) {
	return func(c *apiv1.NodeClaim) {
		c.Annotations[dialect.AnnotationTerminationTimestamp] = t0.Add(d).Format(time.RFC3339)
	}
}

// protected is a pod that asks not to be moved, with seconds of grace.
func protected(grace int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Annotations = map[string]string{dialect.AnnotationDoNotEvict: "true"}
		p.Spec.TerminationGracePeriodSeconds = &grace
	}
}

func marked(method string) func(*apiv1.NodeClaim) {
	return func(c *apiv1.NodeClaim) { c.Annotations[intent.Annotation] = intent.Intent{Method: method}.String() }
}

// nodeOf is the node of a claim that has joined.
func nodeOf(name string, labels ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + name, UID: types.UID("node-" + name), Labels: map[string]string{label.Provisioner: "test"}}}
	n.Spec.ProviderID = "aws:///a/i-" + name
	n.Status.Allocatable, n.Status.Capacity = resources("3900m", "50"), resources("4", "50")
	for _, l := range labels {
		n.Labels[l] = "true"
	}
	return n
}

func resources(cpu, pods string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourcePods: resource.MustParse(pods)}
}

func pod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Labels: map[string]string{"app": name}}}
	p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}}
	for _, c := range change {
		c(p)
	}
	return p
}

func unschedulable(p *corev1.Pod) {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
}

func on(node string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = node } }

func nominated(node, by string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		unschedulable(p)
		p.Status.NominatedNodeName = node
		p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: by, Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1", Subresource: "status", FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:nominatedNodeName":{}}}`)}}
	}
}

func ownedBy(apiVersion, kind string) func(*corev1.Pod) {
	yes := true
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "o", UID: "o", Controller: &yes}}
	}
}

func budget(app string, allowed int32) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: app}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	b.Status.DisruptionsAllowed = allowed
	return b
}

func kinds(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, v1alpha5.AddToScheme, apiv1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// mirrorOf is a mirror of a cluster with these objects, and of a cloud with a
// small type of 2 CPU and a large one of 8.
func mirrorOf(t *testing.T, objects ...client.Object) (*Mirror, client.Client) {
	t.Helper()
	c := fake.NewClientBuilder().WithScheme(kinds(t)).WithReturnManagedFields().WithObjects(objects...).
		WithStatusSubresource(&v1alpha5.Provisioner{}, &apiv1.NodeClaim{}).Build()
	kind := func(name string, cpu int64) world.InstanceType {
		return world.InstanceType{Name: name, Labels: map[string]string{label.InstanceType: name, label.Arch: "amd64"},
			Capacity:     quantity.Resources{MilliCPU: cpu, Pods: 50},
			Allocatable:  quantity.Resources{MilliCPU: cpu - 100, Pods: 50},
			AttachLimits: []quantity.Amount{{Name: "ebs.csi.aws.com", Value: 7}}, Offerings: []world.Offering{{Zone: "a", CapacityType: label.OnDemand, Available: true}}}
	}
	return New(c, func(_ context.Context, p world.Pool) world.Catalog {
		if p.Class.Name == "missing" {
			return world.Catalog{Trouble: "no such class"}
		}
		return world.Catalog{Types: []world.InstanceType{kind("large", 8000), kind("other", 1000), kind("small", 2000)}}
	}), c
}

func view(t *testing.T, m *Mirror, now time.Time) *View {
	t.Helper()
	v, err := m.View(t.Context(), now, world.DefaultPolicy(), window)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestView(t *testing.T) {
	ready := []string{label.Registered, label.Initialized}
	for name, c := range map[string]struct {
		after   time.Duration
		objects []client.Object
		want    string
	}{
		"nodes, claims and pods are joined": {objects: []client.Object{provisioner(), claim("c", initialized(t0.Add(-time.Hour))), nodeOf("c", ready...),
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}, Status: corev1.NodeStatus{Allocatable: resources("1", "10")}},
			pod("a", on("node-c")), pod("b", on("foreign")), pod("done", on("node-c"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })}, want: `
pool test used cpu 4, pods 50, nodes 1
node foreign [cpu 1, pods 10] b
node node-c claim=c pool=test [cpu 3900m, pods 50] a
`},
		"who is pending": {objects: []client.Object{pod("p", unschedulable), pod("not-tried"), pod("daemon", unschedulable, ownedBy("apps/v1", "DaemonSet")),
			pod("custom", unschedulable, ownedBy("example.com/v1", "DaemonSet")), pod("static", unschedulable, ownedBy("v1", "Node")),
			pod("gated", func(p *corev1.Pod) {
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "SchedulingGated"}}
			})}, want: `
pending custom
pending p
`},
		"before the launch a claim promises the least and counts as the most": {objects: []client.Object{provisioner(), claim("c")}, want: `
pool test used cpu 8, pods 50, nodes 1
node c claim=c pool=test booting [cpu 1900m, pods 50]
`},
		"a launched claim is what the cloud said": {objects: []client.Object{provisioner(), claim("c", launched)}, want: `
pool test used cpu 4, pods 50, nodes 1
node c claim=c pool=test booting [cpu 3900m, pods 50]
`},
		"what the kubelet has not reported counts as promised": {objects: []client.Object{provisioner(), claim("c", launched), func() *corev1.Node {
			n := nodeOf("c", label.Registered)
			n.Status.Allocatable = resources("0", "40")
			return n
		}()}, want: `
pool test used cpu 4, pods 50, nodes 1
node node-c claim=c pool=test joining [cpu 3900m, pods 40]
`},
		"pods for which a machine was bought are not pending": {objects: []client.Object{provisioner(), claim("c"), pod("p", unschedulable), pod("q", unschedulable)}, want: `
pool test used cpu 8, pods 50, nodes 1
node c claim=c pool=test booting [cpu 1900m, pods 50] p*
pending q
`},
		"until the machine is ready and has had its time": {after: window - 1, objects: []client.Object{provisioner(), claim("c", initialized(t0)), nodeOf("c", ready...), pod("p", unschedulable)}, want: `
pool test used cpu 4, pods 50, nodes 1
node node-c claim=c pool=test expecting [cpu 3900m, pods 50] p*
`},
		"then they are, but may still come": {after: window, objects: []client.Object{provisioner(), claim("c", initialized(t0)), nodeOf("c", ready...), pod("p", unschedulable)}, want: `
pool test used cpu 4, pods 50, nodes 1
node node-c claim=c pool=test expecting [cpu 3900m, pods 50]
pending p
`},
		"for longer than the scheduler can wait": {after: 6 * time.Minute, objects: []client.Object{provisioner(), claim("c", initialized(t0)), nodeOf("c", ready...), pod("p", unschedulable)}, want: `
pool test used cpu 4, pods 50, nodes 1
node node-c claim=c pool=test [cpu 3900m, pods 50]
pending p
`},
		"a claim that goes promises nothing": {objects: []client.Object{provisioner(), claim("c", deleted), pod("p", unschedulable)}, want: `
pool test used cpu 8, pods 50, nodes 1
node c claim=c pool=test booting deleting [cpu 1900m, pods 50]
pending p
`},
		"of two claims for one pod the older one has it": {objects: []client.Object{claim("d"), claim("e", func(c *apiv1.NodeClaim) { c.CreationTimestamp.Time = t0.Add(-time.Second) }), pod("p", unschedulable)}, want: `
node d claim=d pool=test booting []
node e claim=e pool=test booting [] p*
`},
		"pods of a machine that goes need a place, if they can leave": {objects: []client.Object{claim("c", initialized(t0), deleted), nodeOf("c", ready...),
			pod("a", on("node-c")), pod("daemon", on("node-c"), ownedBy("apps/v1", "DaemonSet")), pod("static", on("node-c"), ownedBy("v1", "Node")),
			pod("kept", on("node-c"), func(p *corev1.Pod) { p.Annotations = map[string]string{dialect.AnnotationDoNotEvict: "true"} }), pod("pg", on("node-c")), budget("pg", 0),
			pod("web", on("node-c")), budget("web", 1)}, want: `
node node-c claim=c pool=test deleting [cpu 3900m, pods 50] a daemon kept pg static web
pending a
pending web
`},
		"shortly before a deadline all must leave": {objects: []client.Object{claim("c", initialized(t0), deleted, until(6*time.Minute)), nodeOf("c", ready...),
			pod("long", on("node-c"), protected(90)), pod("short", on("node-c"), protected(30))}, want: `
node node-c claim=c pool=test deleting [cpu 3900m, pods 50] long short
pending long
`},
		"long before a deadline what cannot be moved buys nothing": {objects: []client.Object{claim("c", initialized(t0), deleted, until(time.Hour)), nodeOf("c", ready...),
			pod("kept", on("node-c"), protected(30))}, want: `
node node-c claim=c pool=test deleting [cpu 3900m, pods 50] kept
`},
		"a machine that was only chosen to go keeps its pods": {objects: []client.Object{claim("c", initialized(t0), marked("expiration")), nodeOf("c", ready...), pod("a", on("node-c"))}, want: `
node node-c claim=c pool=test deleting by=expiration [cpu 3900m, pods 50] a
`},
		"its replacement keeps room for them": {objects: []client.Object{claim("c", initialized(t0), marked("expiration"), deleted), nodeOf("c", ready...), pod("p", on("node-c")), claim("r")}, want: `
node node-c claim=c pool=test deleting by=expiration [cpu 3900m, pods 50] p
node r claim=r pool=test booting [] p*
`},
		"also before the old machine goes, and however long that takes": {after: time.Hour, objects: []client.Object{claim("c", initialized(t0), marked("expiration")), nodeOf("c", ready...), pod("p", on("node-c")),
			claim("r", initialized(t0)), nodeOf("r", ready...)}, want: `
node node-c claim=c pool=test deleting by=expiration [cpu 3900m, pods 50] p
node node-r claim=r pool=test [cpu 3900m, pods 50] p*
`},
		"a node that a person deleted is going too": {objects: []client.Object{claim("c", initialized(t0)), func() *corev1.Node {
			n := nodeOf("c", ready...)
			now := metav1.NewTime(t0)
			n.DeletionTimestamp, n.Finalizers = &now, []string{dialect.FinalizerTermination}
			return n
		}(), pod("a", on("node-c"))}, want: `
node node-c claim=c pool=test deleting [cpu 3900m, pods 50] a
pending a
`},
		"a nomination by others is a reservation while the node exists": {objects: []client.Object{
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, pod("a", nominated("n", "kube-scheduler")), pod("b", nominated("gone", "kube-scheduler"))}, want: `
node n [] a*
pending b
`},
		"a nomination of ours leaves the pod pending, and the node expecting": {objects: []client.Object{
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, pod("a", nominated("n", nominate.Manager))}, want: `
node n expecting []
pending a
`},
		"why a pool cannot buy": {objects: []client.Object{
			provisioner(func(p *v1alpha5.Provisioner) { p.Name = "a"; p.Status.Conditions = nil }),
			provisioner(func(p *v1alpha5.Provisioner) { p.Name, p.Generation = "b", 2 }),
			provisioner(func(p *v1alpha5.Provisioner) {
				p.Name = "c"
				p.Status.Conditions[0].Status, p.Status.Conditions[0].Message = "False", "no subnets matched"
			}),
			provisioner(func(p *v1alpha5.Provisioner) { p.Name, p.Spec.ProviderRef.Name = "d", "missing" }),
			provisioner(func(p *v1alpha5.Provisioner) {
				now := metav1.NewTime(t0)
				p.Name, p.DeletionTimestamp, p.Finalizers = "e", &now, []string{"x/y"}
			})}, want: `
pool a (it is new or has changed, and is being checked)
pool b (it is new or has changed, and is being checked)
pool c (no subnets matched)
pool d (no such class)
pool e (it is being deleted)
`},
	} {
		t.Run(name, func(t *testing.T) {
			objects := make([]client.Object, 0, len(c.objects))
			for _, o := range c.objects {
				if o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 {
					o.SetFinalizers([]string{"test/hold"})
				}
				objects = append(objects, o)
			}
			m, _ := mirrorOf(t, objects...)
			first := words(view(t, m, t0.Add(c.after)))
			if want := strings.TrimPrefix(c.want, "\n"); first != want {
				t.Errorf("got\n%swant\n%s", first, want)
			}
			if again := words(view(t, m, t0.Add(c.after))); again != first {
				t.Errorf("a second look differs:\n%s", again)
			}
		})
	}
}

func TestLabelsBeforeTheLaunchAreThoseThatAllOptionsShare(t *testing.T) {
	m, _ := mirrorOf(t, provisioner(), claim("c"))
	got := view(t, m, t0).Nodes[0].Labels
	want := map[string]string{label.Provisioner: "test", label.Zone: "a", label.Arch: "amd64", label.CapacityType: label.OnDemand}
	if !maps.Equal(got, want) {
		t.Errorf("labels %v, want %v", got, want)
	}
}

func TestWritesCountBeforeTheWatchShowsThem(t *testing.T) {
	m, c := mirrorOf(t, provisioner(), pod("p", unschedulable))
	made := claim("c")
	m.Claim(convert.Record(made), t0)
	v := view(t, m, t0)
	if len(v.Pending) != 0 || len(v.Nodes) != 1 || v.Pools[0].Used.MilliCPU != 8000 {
		t.Fatalf("the new claim does not count:\n%s", words(v))
	}
	if err := c.Create(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	if v = view(t, m, t0); len(v.Nodes) != 1 {
		t.Fatalf("counted twice:\n%s", words(v))
	}
	m.Intent("c", "expiration", t0)
	if v = view(t, m, t0); v.Nodes[0].Disruption != "expiration" || !v.Nodes[0].Deleting {
		t.Errorf("the intent does not count:\n%s", words(v))
	}
	m.Intent("c", "", t0)
	m.Deleted("c", t0)
	if v = view(t, m, t0); !v.Nodes[0].Deleting || len(v.Pending) != 1 {
		t.Errorf("the deletion does not count:\n%s", words(v))
	}
	if v = view(t, m, t0.Add(assumeFor+1)); v.Nodes[0].Deleting {
		t.Errorf("a deletion that nobody saw counts for ever:\n%s", words(v))
	}
	made.Finalizers = nil
	if err := c.Update(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	if v = view(t, m, t0); len(v.Nodes) != 0 || len(v.Pending) != 1 {
		t.Errorf("a claim that was seen and is gone still counts:\n%s", words(v))
	}
}

// A machine that was registered and has no Node any more is waited for, but not
// for long: its pods are planned anew.
func TestAMachineThatLostItsNodeGivesNoRoom(t *testing.T) {
	registered := func(c *apiv1.NodeClaim) {
		launched(c)
		c.Status.Conditions = []metav1.Condition{{Type: apiv1.ConditionRegistered, Status: "True", LastTransitionTime: metav1.NewTime(t0.Add(-time.Hour))}}
	}
	m, c := mirrorOf(t, claim("c", registered), pod("p", unschedulable), pod("q", unschedulable))
	waits, gone := "node c claim=c pool=test booting [cpu 3900m, pods 50] p*\npending q\n", "node c claim=c pool=test booting deleting [cpu 3900m, pods 50]\npending p\npending q\n"
	back := "node node-c claim=c pool=test joining [cpu 3900m, pods 50] p*\npending q\n"
	look := func(after time.Duration, want string) {
		t.Helper()
		if got := words(view(t, m, t0.Add(after))); got != want {
			t.Errorf("after %s got\n%swant\n%s", after, got, want)
		}
	}
	look(0, waits)
	look(nodeless-1, waits)
	look(nodeless, gone)
	if err := c.Create(t.Context(), nodeOf("c", label.Registered)); err != nil {
		t.Fatal(err)
	}
	look(nodeless+1, back)
	if err := c.Delete(t.Context(), nodeOf("c")); err != nil {
		t.Fatal(err)
	}
	look(nodeless+2, waits) // the patience begins anew
}

func TestExpectedNodes(t *testing.T) {
	m, _ := mirrorOf(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	m.Expect("n", t0.Add(time.Second))
	m.Expect("n", t0) // never shortens
	if v := view(t, m, t0); v.Nodes[0].NominatedUntil == nil || !m.NominatedUntil("n").Equal(t0.Add(time.Second)) {
		t.Error("nothing is expected")
	}
	if v := view(t, m, t0.Add(time.Second)); v.Nodes[0].NominatedUntil != nil {
		t.Error("expected for ever")
	}
}

func TestSnapshotsAreNotChangedByLaterOnes(t *testing.T) {
	m, c := mirrorOf(t, provisioner(), claim("c", initialized(t0)), nodeOf("c", label.Registered, label.Initialized), pod("a", on("node-c")), pod("p", unschedulable))
	first := view(t, m, t0)
	before := words(first)
	if err := c.Delete(t.Context(), pod("a")); err != nil {
		t.Fatal(err)
	}
	if second := view(t, m, t0.Add(window)); words(second) == before {
		t.Fatal("nothing has changed")
	}
	if got := words(first); got != before {
		t.Errorf("changed to\n%s", got)
	}
	if !slices.IsSortedFunc(first.Nodes[0].Pods, func(a, b world.Pod) int { return a.Compare(b.ObjectName) }) {
		t.Error("pods are not sorted")
	}
}

// TestTwoPoolsOfOneName: a Provisioner and a NodePool of one name are two pools,
// each with its own machines, whatever kinds there are.
func TestTwoPoolsOfOneName(t *testing.T) {
	p := &apiv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "test", UID: "newer", Generation: 1}}
	p.Spec.Template.Spec.NodeClassRef = apiv1.NodeClassRef{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "missing"}
	p.Spec.Template.Spec.Requirements = []apiv1.Requirement{}
	of := func(c *apiv1.NodeClaim) {
		launched(c)
		c.Labels = map[string]string{label.NodePool: "test"}
	}
	m, _ := mirrorOf(t, provisioner(), p, claim("a", launched), claim("b", of), claim("c", of))
	v := view(t, m, t0)
	for kind, want := range map[string]int64{"Provisioner": 1, "NodePool": 2} {
		if got := v.Pool(kind, "test").Used.Get(quantity.Nodes); got != want {
			t.Errorf("%s has %d machines, want %d", kind, got, want)
		}
	}
	if why := v.Pool("NodePool", "test").NotReady; why != "no such class" {
		t.Errorf("the NodePool is not ready because %q", why)
	}
	m.kinds = []dialect.Dialect{dialect.NodePool}
	if v = view(t, m, t0); len(v.Pools) != 1 || v.Pools[0].Kind != "NodePool" {
		t.Errorf("pools of a cluster that knows NodePools only: %+v", v.Pools)
	}
}
