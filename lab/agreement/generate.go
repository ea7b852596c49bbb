package agreement

import (
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"
)

// draft is a cluster in the making. Every choice comes from r, so that a seed
// stands for one cluster.
type draft struct {
	*Cluster
	r *rand.Rand
	// likely is how often a pod of this cluster asks for each constraint.
	likely map[string]float64
	pods   int
	// claimed: there is a claim that waits for a volume that exists.
	claimed bool
}

// feature adds something to a cluster. Features come in an order in which each
// finds what it builds on.
type feature struct {
	name string
	add  func(*draft)
}

var features = []feature{
	{"namespaces", namespaces},
	{"catalogue", catalogue},
	{"storage classes", storageClasses},
	{"provisioners", provisioners},
	{"daemons", daemons},
	{"machines", machines},
	{"foreign nodes", foreignNodes},
	{"attach limits", attachLimits},
	{"bound pods", boundPods},
	{"pending pods", pendingPods},
	{"promises", promises},
	{"nominations", nominations},
	{"gates", gates},
	{"priorities", priorities},
}

// constraint is something that a pod may ask for. A new one is a file with its
// function and a line here.
type constraint struct {
	name string
	// share scales how often it is asked for: some leave few places open.
	share float64
	add   func(*draft, *template)
}

var constraints = []constraint{
	{"extended resources", 0.5, extendedResources},
	{"init containers", 0.5, initContainers},
	{"overhead", 0.5, overhead},
	{"node selector", 0.7, nodeSelector},
	{"required node affinity", 1, requiredAffinity},
	{"preferred node affinity", 1, preferredAffinity},
	{"tolerations", 1, tolerations},
	{"topology spread", 1, topologySpread},
	{"pod affinity", 0.6, podAffinity},
	{"pod anti-affinity", 0.8, podAntiAffinity},
	{"preferences between pods", 0.6, podPreferences},
	{"host ports", 0.5, hostPorts},
	{"volumes", 0.8, volumes},
}

// template is what one pod, or several equal ones, are made from.
type template = corev1.PodTemplateSpec

// Generate makes the cluster of a seed.
func Generate(seed uint64) *Cluster {
	d := &draft{Cluster: &Cluster{Region: "us-west-2"}, r: rand.New(rand.NewPCG(seed, 0x6b61)), likely: map[string]float64{}}
	for _, c := range constraints {
		d.likely[c.name] = d.pick3(0, 0.1, 0.5) * c.share
	}
	if d.chance(0.35) { // a few constraints alone
		clear(d.likely)
		for _, c := range some(d, constraints, 3) {
			d.likely[c.name] = 0.8
		}
	}
	for _, f := range features {
		f.add(d)
	}
	return d.Cluster
}

func (d *draft) chance(p float64) bool { return d.r.Float64() < p }

// between returns a number from lo to hi, both included.
func (d *draft) between(lo, hi int) int { return lo + d.r.IntN(hi-lo+1) }

func (d *draft) pick3(a, b, c float64) float64 { return [...]float64{a, b, c}[d.r.IntN(3)] }

func pick[T any](d *draft, list []T) T { return list[d.r.IntN(len(list))] }

// some returns between 1 and most different members, in their order.
func some[T any](d *draft, list []T, most int) []T {
	n := d.between(1, min(most, len(list)))
	var out []T
	for i, v := range list {
		if d.r.IntN(len(list)-i) < n-len(out) {
			out = append(out, v)
		}
	}
	return out
}

// template makes what one pod, or several equal ones, ask for.
func (d *draft) template() template {
	t := template{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace(), Labels: d.podLabels()}, Spec: corev1.PodSpec{Containers: d.containers()}}
	for _, c := range constraints {
		if d.chance(d.likely[c.name]) {
			c.add(d, &t)
		}
	}
	return t
}

// newPod names and defaults a pod, as the API server would, and makes its claims.
func (d *draft) newPod(t template) *corev1.Pod {
	d.pods++
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: t.Namespace, Name: fmt.Sprintf("p%d", d.pods), UID: types.UID(fmt.Sprintf("pod-%d", d.pods)), Labels: t.Labels,
			CreationTimestamp: ago(time.Hour - time.Duration(d.pods)*time.Second),
		},
		Spec:   *t.Spec.DeepCopy(),
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	d.claims(p)
	admit(p)
	return p
}

// admit does to a pod what the API server and its admission plugins do as far
// as scheduling can see it.
func admit(p *corev1.Pod) {
	corev1defaults.SetObjectDefaults_Pod(p)
	matchKeys(p)
	if p.Spec.Priority == nil {
		p.Spec.Priority = new(int32)
	}
}

// pendingPods are what a plan is wanted for.
func pendingPods(d *draft) {
	for range d.between(1, 5) {
		t := d.template()
		count := d.between(1, 4)
		if d.chance(0.1) {
			count = d.between(5, 20)
		}
		for i := range count {
			if i > 0 && d.chance(0.1) && t.Labels != nil { // a rollout
				t.Labels = map[string]string{"app": t.Labels["app"], "rev": pick(d, revisions)}
			}
			p := d.newPod(t)
			p.Status.Conditions = []corev1.PodCondition{unschedulable()}
			d.Pods = append(d.Pods, *p)
		}
	}
}

func unschedulable() corev1.PodCondition {
	return corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, LastTransitionTime: ago(time.Minute)}
}
