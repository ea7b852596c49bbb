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
}

// feature adds something to a cluster. Features come in an order in which each
// finds what it builds on.
type feature struct {
	name string
	add  func(*draft)
}

var features = []feature{
	{"catalogue", catalogue},
	{"provisioners", provisioners},
	{"daemons", daemons},
	{"machines", machines},
	{"foreign nodes", foreignNodes},
	{"bound pods", boundPods},
	{"pending pods", pendingPods},
	{"promises", promises},
}

// constraint is something that a pod may ask for. A new one is a file with its
// function and a line here.
type constraint struct {
	name string
	// share scales how often it is asked for: some leave few places open.
	share float64
	add   func(*draft, *corev1.PodSpec)
}

var constraints = []constraint{
	{"extended resources", 0.5, extendedResources},
	{"init containers", 0.5, initContainers},
	{"overhead", 0.5, overhead},
	{"node selector", 0.7, nodeSelector},
	{"required node affinity", 1, requiredAffinity},
	{"preferred node affinity", 1, preferredAffinity},
	{"tolerations", 1, tolerations},
}

// Generate makes the cluster of a seed.
func Generate(seed uint64) *Cluster {
	d := &draft{Cluster: &Cluster{Region: "us-west-2"}, r: rand.New(rand.NewPCG(seed, 0x6b61)), likely: map[string]float64{}}
	for _, c := range constraints {
		d.likely[c.name] = d.pick3(0, 0.1, 0.5) * c.share
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

// podSpec makes what one pod, or several equal ones, ask for.
func (d *draft) podSpec() corev1.PodSpec {
	s := corev1.PodSpec{Containers: d.containers()}
	for _, c := range constraints {
		if d.chance(d.likely[c.name]) {
			c.add(d, &s)
		}
	}
	return s
}

// newPod names and defaults a pod, as the API server would.
func (d *draft) newPod(s corev1.PodSpec) *corev1.Pod {
	d.pods++
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprintf("p%d", d.pods), UID: types.UID(fmt.Sprintf("pod-%d", d.pods)),
			CreationTimestamp: ago(time.Hour - time.Duration(d.pods)*time.Second),
		},
		Spec:   *s.DeepCopy(),
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	admit(p)
	return p
}

// admit does to a pod what the API server and its admission plugins do as far
// as scheduling can see it.
func admit(p *corev1.Pod) {
	corev1defaults.SetObjectDefaults_Pod(p)
	if p.Spec.Priority == nil {
		p.Spec.Priority = new(int32)
	}
}

// pendingPods are what a plan is wanted for.
func pendingPods(d *draft) {
	for range d.between(1, 5) {
		s := d.podSpec()
		count := d.between(1, 4)
		if d.chance(0.1) {
			count = d.between(5, 20)
		}
		for range count {
			p := d.newPod(s)
			p.Status.Conditions = []corev1.PodCondition{unschedulable()}
			d.Pods = append(d.Pods, *p)
		}
	}
}

func unschedulable() corev1.PodCondition {
	return corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, LastTransitionTime: ago(time.Minute)}
}
