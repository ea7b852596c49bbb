package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/sim/kube"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// town is a cluster whose clock jumps from one event to the next.
type town struct {
	t *testing.T
	*Cluster
	*kube.Client
	now time.Time
}

func newTown(t testing.TB, opt Options, objects ...client.Object) *town {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, policyv1.AddToScheme, storagev1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	w := &town{now: noon}
	w.t, _ = t.(*testing.T)
	api := kube.New(kube.Options{Scheme: s, Now: func() time.Time { return w.now }, Seed: 1})
	if err := api.Import(objects...); err != nil {
		t.Fatal(err)
	}
	var err error
	if w.Cluster, err = New(api, opt); err != nil {
		t.Fatal(err)
	}
	w.Client = api.Client("test")
	return w
}

// run lets time pass.
func (w *town) run(d time.Duration) {
	end := w.now.Add(d)
	for {
		next := w.Step(w.now)
		if next.IsZero() || next.After(end) {
			break
		}
		w.now = next
	}
	w.now = end
	w.Step(end)
}

func (w *town) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *town) create(objects ...client.Object) {
	w.t.Helper()
	for _, o := range objects {
		w.ok(w.Create(context.Background(), o))
	}
}

// shows compares the pods with "name@node", and a "?" where one is not ready.
func (w *town) shows(want string) {
	w.t.Helper()
	var list corev1.PodList
	w.ok(w.List(context.Background(), &list))
	var got []string
	for i := range list.Items {
		p := &list.Items[i]
		text := p.Name + "@" + p.Spec.NodeName
		if condition(p, corev1.PodReady) != corev1.ConditionTrue {
			text += "?"
		}
		if p.DeletionTimestamp != nil {
			text += "!"
		}
		got = append(got, text)
	}
	if strings.Join(got, " ") != want {
		w.t.Errorf("pods are %s, want %s", strings.Join(got, " "), want)
	}
}

func (w *town) get(o client.Object) {
	w.t.Helper()
	w.ok(w.Get(context.Background(), client.ObjectKeyFromObject(o), o))
}

func (w *town) evict(name string) error {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	return w.SubResource("eviction").Create(context.Background(), p, &policyv1.Eviction{})
}

func node(name, zone string, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"topology.kubernetes.io/zone": zone, "kubernetes.io/hostname": name}},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("10")},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
	for _, f := range change {
		f(n)
	}
	return n
}

func taint(key string, effect corev1.TaintEffect) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: effect}) }
}

func template(cpu string, change ...func(*corev1.PodSpec)) corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "main", Image: "app:1", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("1Gi")}}}}}}
	for _, f := range change {
		f(&t.Spec)
	}
	return t
}

func pod(name, cpu string, change ...func(*corev1.PodSpec)) *corev1.Pod {
	t := template(cpu, change...)
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: t.Labels}, Spec: t.Spec}
}

func on(node string) func(*corev1.PodSpec) { return func(s *corev1.PodSpec) { s.NodeName = node } }

func owned(p *corev1.Pod, kind, name string) *corev1.Pod {
	yes := true
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: "uid-of-" + "x", Controller: &yes}}
	return p
}

var meta = metav1.ObjectMeta{Namespace: "default", Name: "web"}

func deployment(replicas int32, t corev1.PodTemplateSpec) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: &replicas, Template: t}}
}

func TestADeploymentIsScaledRolledOutAndDeleted(t *testing.T) {
	w := newTown(t, Options{}, node("a", "z"))
	d := deployment(2, template("1"))
	w.create(d)
	w.Step(w.now)
	w.shows("web-0@a? web-1@a?")
	w.run(5 * time.Second)
	w.shows("web-0@a web-1@a")
	three := int32(3)
	w.get(d)
	d.Spec.Replicas = &three
	w.ok(w.Update(t.Context(), d))
	w.run(5 * time.Second)
	w.shows("web-0@a web-1@a web-2@a")

	d.Spec.Template.Spec.Containers[0].Image = "app:2"
	d.Spec.Template.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("500m")
	w.ok(w.Update(t.Context(), d))
	w.run(time.Minute)
	var pods corev1.PodList
	w.ok(w.List(t.Context(), &pods))
	for _, p := range pods.Items {
		if p.Spec.Containers[0].Image != "app:2" {
			t.Errorf("pod %s has the old image", p.Name)
		}
	}
	if len(pods.Items) != 3 {
		t.Errorf("%d pods", len(pods.Items))
	}
	w.ok(w.Delete(t.Context(), d))
	w.run(time.Minute)
	w.shows("")
}

func TestEvictedPodsComeBack(t *testing.T) {
	stateful := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}, Spec: appsv1.StatefulSetSpec{Template: template("500m")}}
	w := newTown(t, Options{}, node("a", "z"), owned(pod("ghost-1", "500m", on("a")), "ReplicaSet", "ghost"), pod("bare", "500m", on("a")))
	w.create(deployment(1, template("500m")), stateful)
	w.run(5 * time.Second)
	w.shows("bare@a db-0@a ghost-1@a web-0@a")
	for _, name := range []string{"web-0", "db-0", "ghost-1", "bare"} {
		w.ok(w.evict(name))
	}
	w.Background(w.now)
	w.shows("bare@a! db-0@a! ghost-1@a! ghost-4tc8j@? web-0@a! web-1@?")
	w.run(10 * time.Second)
	w.shows("db-0@a ghost-4tc8j@a web-1@a")
}

func TestAJobRunsToItsEnd(t *testing.T) {
	w := newTown(t, Options{}, node("a", "z"))
	two := int32(2)
	j := &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Parallelism: &two, Completions: &two, Template: template("1")}}
	j.Spec.Template.Annotations = map[string]string{AnnotationRun: "30", AnnotationStart: "5"}
	w.create(j)
	w.run(10 * time.Second)
	w.shows("web-0@a web-1@a")
	w.run(time.Minute)
	w.shows("web-0@a? web-1@a?")
	w.get(j)
	if j.Status.Succeeded != 2 || j.Status.CompletionTime == nil {
		t.Errorf("status: %+v", j.Status)
	}
}

func TestDaemonsGoWhereTheySuit(t *testing.T) {
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "log"}, Spec: appsv1.DaemonSetSpec{Template: template("100m")}}
	old := node("old", "z")
	w := newTown(t, Options{Daemons: func(n *corev1.Node) bool { return n.Name != "old" }}, old, node("a", "z"), node("tainted", "z", taint("k", "NoSchedule")),
		node("cordoned", "z", func(n *corev1.Node) { n.Spec.Unschedulable = true }),
		node("booting", "z", taint("boot", "NoExecute"), func(n *corev1.Node) { n.Status.Conditions = nil }),
		node("full", "z", func(n *corev1.Node) { n.Status.Allocatable["cpu"] = resource.MustParse("50m") }))
	w.create(set)
	w.run(5 * time.Second)
	w.shows("log-a@a log-cordoned@cordoned log-full@?")
	b := node("booting", "z")
	w.get(b)
	b.Status.Conditions = node("", "").Status.Conditions
	w.ok(w.Status().Update(t.Context(), b))
	b.Spec.Taints = nil
	w.ok(w.Update(t.Context(), b))
	w.ok(w.Delete(t.Context(), pod("log-a", "1")))
	w.run(10 * time.Second)
	w.shows("log-a@a log-booting@booting log-cordoned@cordoned log-full@?")
}

func TestBudgetsCountPods(t *testing.T) {
	percent, one, two := intstr.FromString("50%"), intstr.FromInt32(1), intstr.FromInt32(2)
	for name, c := range map[string]struct {
		least, most *intstr.IntOrString
		bare        bool
		allowed     int32
	}{
		"at least two":          {least: &two, allowed: 1},
		"at least half":         {least: &percent, allowed: 1},
		"at most one away":      {most: &one, allowed: 1},
		"at most half away":     {most: &percent, allowed: 2},
		"a share of nobody's":   {most: &one, bare: true, allowed: 0},
		"a number of nobody's":  {least: &two, bare: true, allowed: 2},
		"neither of both given": {allowed: 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTown(t, Options{}, node("a", "z"))
			w.create(deployment(3, template("100m")))
			if c.bare {
				w.create(pod("bare", "100m"))
			}
			w.create(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pdb"}, Spec: policyv1.PodDisruptionBudgetSpec{
				MinAvailable: c.least, MaxUnavailable: c.most, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}})
			w.run(time.Minute)
			b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pdb"}}
			w.get(b)
			if b.Status.DisruptionsAllowed != c.allowed || b.Status.ObservedGeneration != 1 {
				t.Errorf("status: %+v", b.Status)
			}
		})
	}
}

func TestABudgetPacesEvictions(t *testing.T) {
	w := newTown(t, Options{}, node("a", "z"))
	one := intstr.FromInt32(1)
	w.create(deployment(3, template("100m")), &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pdb"},
		Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one, Selector: &metav1.LabelSelector{}}})
	w.run(time.Minute)
	w.ok(w.evict("web-0"))
	if err := w.evict("web-1"); !apierrors.IsTooManyRequests(err) {
		t.Errorf("error is %v", err)
	}
	w.Step(w.now)
	if err := w.evict("web-1"); !apierrors.IsTooManyRequests(err) {
		t.Errorf("error is %v", err)
	}
	w.run(10 * time.Second) // web-3 is ready
	w.ok(w.evict("web-1"))
}

func TestOwnedThingsGoWithTheirOwner(t *testing.T) {
	w := newTown(t, Options{})
	owner := &corev1.ConfigMap{ObjectMeta: meta}
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other"}}
	w.create(owner, other)
	ref := func(o *corev1.ConfigMap) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: o.Name, UID: o.UID}
	}
	one := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one", OwnerReferences: []metav1.OwnerReference{ref(owner)}}}
	both := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "both", OwnerReferences: []metav1.OwnerReference{ref(owner), ref(other)}}}
	w.create(one, both)
	w.ok(w.Delete(t.Context(), owner))
	late := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "late", OwnerReferences: []metav1.OwnerReference{ref(owner)}}}
	stranger := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "stranger", OwnerReferences: []metav1.OwnerReference{{UID: "never-seen"}}}}
	w.create(late, stranger)
	w.Step(w.now)
	var left corev1.SecretList
	w.ok(w.List(t.Context(), &left))
	if len(left.Items) != 2 || left.Items[0].Name != "both" || len(left.Items[0].OwnerReferences) != 1 || left.Items[1].Name != "stranger" {
		t.Errorf("left: %+v", left.Items)
	}
}

func TestPodsTakeTheirTimeToEnd(t *testing.T) {
	slow := pod("slow", "1", on("a"))
	slow.Annotations = map[string]string{AnnotationShutdown: "20"}
	endless := pod("endless", "1", on("a"))
	endless.Annotations = map[string]string{AnnotationShutdown: "1000"}
	down := false
	w := newTown(t, Options{Down: func(*corev1.Node) bool { return down }}, node("a", "z"), slow, endless)
	w.run(5 * time.Second)
	w.ok(w.Delete(t.Context(), slow))
	w.ok(w.Delete(t.Context(), endless))
	w.run(19 * time.Second)
	w.shows("endless@a! slow@a!")
	w.run(2 * time.Second)
	w.shows("endless@a!")
	w.run(10 * time.Second) // its grace of 30 s is over
	w.shows("")

	late := pod("late", "1", on("a"))
	w.create(late)
	w.run(5 * time.Second)
	down = true
	w.ok(w.Delete(t.Context(), late))
	w.run(100 * time.Second)
	w.shows("late@a!")
	n := node("a", "z")
	w.get(n)
	if nodeCondition(n, corev1.NodeReady) != corev1.ConditionUnknown || len(n.Spec.Taints) != 2 {
		t.Errorf("a node that is down: %+v %+v", n.Status.Conditions, n.Spec.Taints)
	}
	w.ok(w.Delete(t.Context(), n))
	w.run(30 * time.Second)
	w.shows("late@a!")
	w.run(20 * time.Second)
	w.shows("")
}

func TestTaintsDrivePodsOut(t *testing.T) {
	short := int64(10)
	tolerate := func(seconds *int64) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			s.NodeName = "a"
			s.Tolerations = []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists, TolerationSeconds: seconds}}
		}
	}
	w := newTown(t, Options{}, node("a", "z"), pod("no", "1", on("a")), pod("short", "1", tolerate(&short)), pod("yes", "1", tolerate(nil)))
	w.run(5 * time.Second)
	n := node("a", "z")
	w.get(n)
	n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: "NoExecute"}}
	w.ok(w.Update(t.Context(), n))
	w.run(5 * time.Second)
	w.shows("short@a yes@a")
	w.run(10 * time.Second)
	w.shows("yes@a")
}

func TestTheSchedulerPlacesPods(t *testing.T) {
	high := int32(100)
	spread := func(s *corev1.PodSpec) {
		s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "topology.kubernetes.io/zone", WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
	}
	apart := func(s *corev1.PodSpec) {
		s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: "kubernetes.io/hostname", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}}}
	}
	select1 := func(zone string) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"topology.kubernetes.io/zone": zone} }
	}
	prefer := func(s *corev1.PodSpec) {
		s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 10,
			Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "topology.kubernetes.io/zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"y"}}}}}}}}
	}
	for name, c := range map[string]struct {
		objects []client.Object
		want    string
		why     string // of pod p1 staying
	}{
		"room":       {[]client.Object{node("a", "x"), pod("p1", "3"), pod("p2", "3")}, "p1@a p2@?", ""},
		"no room":    {[]client.Object{node("a", "x"), pod("p1", "5")}, "p1@?", "0/1 nodes are available: 1 Insufficient cpu."},
		"priority":   {[]client.Object{node("a", "x"), pod("p1", "3"), pod("p2", "3", func(s *corev1.PodSpec) { s.Priority = &high })}, "p1@? p2@a", ""},
		"taint":      {[]client.Object{node("a", "x", taint("k", "NoSchedule")), pod("p1", "1")}, "p1@?", "untolerated taint {k: }"},
		"cordon":     {[]client.Object{node("a", "x", func(n *corev1.Node) { n.Spec.Unschedulable = true }), pod("p1", "1")}, "p1@?", "unschedulable"},
		"not ready":  {[]client.Object{node("a", "x", func(n *corev1.Node) { n.Status.Conditions = nil }), pod("p1", "1")}, "p1@?", "node.kubernetes.io/not-ready"},
		"selector":   {[]client.Object{node("a", "x"), node("b", "y"), pod("p1", "1", select1("y")), pod("p2", "1", select1("z"))}, "p1@b p2@?", ""},
		"gate":       {[]client.Object{node("a", "x"), pod("p1", "1", func(s *corev1.PodSpec) { s.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} })}, "p1@?", ""},
		"other":      {[]client.Object{node("a", "x"), pod("p1", "1", func(s *corev1.PodSpec) { s.SchedulerName = "other" })}, "p1@?", ""},
		"least used": {[]client.Object{node("a", "x"), node("b", "x"), pod("p0", "2", on("a")), pod("p1", "1")}, "p0@a p1@b", ""},
		"preference": {[]client.Object{node("a", "x"), node("b", "y"), pod("p0", "1", on("b")), pod("p1", "1", prefer)}, "p0@b p1@b", ""},
		"avoided":    {[]client.Object{node("a", "x"), node("b", "x", taint("k", "PreferNoSchedule")), pod("p0", "2", on("a")), pod("p1", "1")}, "p0@a p1@a", ""},
		"spread":     {[]client.Object{node("a", "x"), node("b", "y"), pod("p1", "1", spread), pod("p2", "1", spread), pod("p3", "3", spread)}, "p1@a p2@b p3@a", ""},
		"apart":      {[]client.Object{node("a", "x"), pod("p0", "1", on("a")), pod("p1", "1", apart)}, "p0@a p1@?", "1 node(s) didn't satisfy rules between pods"},
		"nominated":  {[]client.Object{node("a", "x"), node("b", "x"), pod("p0", "1", on("b")), nominated(pod("p1", "1"), "b"), pod("p2", "3")}, "p0@b p1@b p2@a", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTown(t, Options{Start: -1}, c.objects...)
			w.run(time.Second)
			var got []string
			var list corev1.PodList
			w.ok(w.List(t.Context(), &list))
			for i := range list.Items {
				p := &list.Items[i]
				text := p.Name + "@" + p.Spec.NodeName
				if p.Spec.NodeName == "" {
					text += "?"
				}
				got = append(got, text)
				for _, cond := range p.Status.Conditions {
					if p.Name == "p1" && cond.Type == corev1.PodScheduled && !strings.Contains(cond.Message, c.why) {
						t.Errorf("says %q, want %q", cond.Message, c.why)
					}
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("pods are %v, want %s", got, c.want)
			}
		})
	}
}

func nominated(p *corev1.Pod, node string) *corev1.Pod {
	p.Status.NominatedNodeName = node
	return p
}

func TestRoomIsKeptForNominatedPods(t *testing.T) {
	hold := true
	w := newTown(t, Options{Hold: func(p *corev1.Pod) bool { return hold && p.Name == "promised" }}, node("a", "x"), nominated(pod("promised", "3"), "a"), pod("thief", "3"))
	w.run(time.Second)
	w.shows("promised@? thief@?")
	hold = false
	w.run(5 * time.Second)
	w.shows("promised@a thief@?")
}

func TestANominationThatFailsIsCleared(t *testing.T) {
	w := newTown(t, Options{}, node("a", "x"), nominated(pod("p", "8"), "a"))
	w.run(time.Second)
	p := pod("p", "8")
	w.get(p)
	if p.Status.NominatedNodeName != "" || condition(p, corev1.PodScheduled) != corev1.ConditionFalse {
		t.Errorf("status: %+v", p.Status)
	}
}

func TestRefusedPodsAreTriedAgainWhenSomethingChanges(t *testing.T) {
	w := newTown(t, Options{}, pod("p", "1"))
	w.run(time.Second)
	w.shows("p@?")
	if next := w.Step(w.now); next.Sub(w.now) < 4*time.Minute {
		t.Errorf("looks again at %v although nothing has changed", next)
	}
	w.create(node("a", "x"))
	w.run(time.Second)
	w.shows("p@a?")
}

func TestTheSchedulerMayLag(t *testing.T) {
	w := newTown(t, Options{}, node("a", "x"))
	w.Scheduler.Lag = true
	w.create(pod("p", "1"))
	w.run(time.Minute)
	w.shows("p@?")
	w.Scheduler.Cache.Deliver(-1)
	w.run(time.Minute)
	w.shows("p@a")
}

func TestVolumesFollowPods(t *testing.T) {
	wait, class := storagev1.VolumeBindingWaitForFirstConsumer, "fast"
	spec := corev1.PersistentVolumeClaimSpec{StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")}}}
	uses := func(s *corev1.PodSpec) {
		s.Volumes = []corev1.Volume{
			{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
			{Name: "tmp", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: spec}}}}}
	}
	w := newTown(t, Options{}, node("a", "y"), &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "ebs.csi.aws.com", VolumeBindingMode: &wait})
	w.create(pod("p", "1", uses))
	w.run(time.Second)
	w.shows("p@?") // there is no claim
	w.create(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data"}, Spec: spec})
	w.run(10 * time.Second)
	w.shows("p@a")
	attachments := func(want int) {
		t.Helper()
		var list storagev1.VolumeAttachmentList
		w.ok(w.List(t.Context(), &list))
		if len(list.Items) != want || slices.ContainsFunc(list.Items, func(a storagev1.VolumeAttachment) bool { return !a.Status.Attached || a.Spec.NodeName != "a" }) {
			t.Errorf("%d attachments: %+v", len(list.Items), list.Items)
		}
	}
	attachments(2)
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data"}}
	w.get(c)
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: c.Spec.VolumeName}}
	w.get(pv)
	if zone := pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values[0]; zone != "y" || c.Status.Phase != corev1.ClaimBound {
		t.Errorf("the volume is in %s, the claim is %s", zone, c.Status.Phase)
	}
	w.ok(w.Delete(t.Context(), pod("p", "1")))
	w.run(3 * time.Second)
	w.shows("")
	attachments(2)
	w.run(10 * time.Second)
	attachments(0)
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "p-tmp"}, c); !apierrors.IsNotFound(err) {
		t.Errorf("the claim of the ephemeral volume is still there: %v", err)
	}

	// The volume keeps its zone.
	w.create(node("b", "x"), pod("q", "1", uses))
	n := node("a", "y")
	w.get(n)
	n.Spec.Unschedulable = true
	w.ok(w.Update(t.Context(), n))
	w.run(10 * time.Second)
	w.shows("q@?")
}

func TestRefusedCallsAreTriedAgain(t *testing.T) {
	w := newTown(t, Options{}, node("a", "x"))
	rng := rand.New(rand.NewPCG(1, 2))
	w.kube.SetHook(func(c kube.Call) error {
		if c.Actor != "test" && rng.IntN(4) == 0 {
			return fmt.Errorf("fault %s the call", c.Phase)
		}
		return nil
	})
	w.create(deployment(3, template("500m")))
	w.run(2 * time.Minute)
	w.shows("web-0@a web-1@a web-2@a")
}

func TestTheSameWorldHasTheSameHistory(t *testing.T) {
	history := func() (out string) {
		w := newTown(t, Options{}, node("a", "x"), node("b", "y"), node("c", "y"))
		w.kube.Subscribe(func(e kube.Event) {
			out += fmt.Sprintln(w.now.Unix(), e.Version, e.Kind(), e.Object().GetNamespace(), e.Object().GetName(), e.Object().GetUID(), e.New == nil)
		})
		w.create(deployment(6, template("300m")))
		for range 20 {
			w.run(7 * time.Second)
			var pods corev1.PodList
			w.ok(w.List(t.Context(), &pods))
			for i := range pods.Items {
				if i%2 == 0 {
					_ = w.evict(pods.Items[i].Name)
				}
			}
		}
		return out
	}
	if a, b := history(), history(); a != b {
		t.Error("two histories of one world differ")
	}
}
