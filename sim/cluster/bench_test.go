package cluster

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// BenchmarkDay is a day of a cluster of 500 nodes with 100 Deployments, some of
// them spread over zones and with a budget, and 4,000 pods, of which ten are
// evicted a minute, while every ten minutes a Deployment changes its size and
// every half an hour a node is replaced. No controllers of ours run.
func BenchmarkDay(b *testing.B) {
	for b.Loop() {
		b.ReportMetric(float64(day(b, 500, 100, 40, 24*time.Hour)), "writes/op")
	}
}

func day(t testing.TB, nodes, deployments int, replicas int32, length time.Duration) uint64 {
	var objects []client.Object
	size := func(n *corev1.Node) {
		n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("32Gi"), "pods": resource.MustParse("58")}
	}
	zones := []string{"x", "y", "z"}
	for i := range nodes {
		objects = append(objects, node(fmt.Sprintf("node-%04d", i), zones[i%3], size))
	}
	least := intstr.FromString("80%")
	for i := range deployments {
		d := deployment(replicas, template("700m"))
		d.Name = fmt.Sprintf("app-%03d", i)
		d.Spec.Template.Labels = map[string]string{"app": d.Name}
		selector := &metav1.LabelSelector{MatchLabels: d.Spec.Template.Labels}
		if i%4 == 0 {
			d.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 2, TopologyKey: "topology.kubernetes.io/zone",
				WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector}}
			objects = append(objects, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: d.Name},
				Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &least, Selector: selector}})
		}
		objects = append(objects, d)
	}
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "log"}, Spec: appsv1.DaemonSetSpec{Template: template("100m")}}
	set.Spec.Template.Labels = map[string]string{"app": "log"}
	w := newTown(t, Options{}, append(objects, set)...)
	rng := rand.New(rand.NewPCG(1, 1))
	for minute := 0; time.Duration(minute)*time.Minute < length; minute++ {
		w.run(time.Minute)
		if err := w.disturb(t, rng, minute, nodes, size); err != nil {
			t.Fatal(err)
		}
	}
	return w.kube.Version()
}

func (w *town) disturb(t testing.TB, rng *rand.Rand, minute, nodes int, size func(*corev1.Node)) error {
	var pods corev1.PodList
	if err := w.List(t.Context(), &pods, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for range 10 {
		_ = w.evict(pods.Items[rng.IntN(len(pods.Items))].Name) // a budget may refuse
	}
	if minute%10 == 0 {
		var all appsv1.DeploymentList
		if err := w.List(t.Context(), &all); err != nil {
			return err
		}
		d := &all.Items[rng.IntN(len(all.Items))]
		n := max(1, *d.Spec.Replicas+int32(rng.IntN(11))-5)
		d.Spec.Replicas = &n
		if err := w.Update(t.Context(), d); err != nil {
			return err
		}
	}
	if minute%30 != 0 {
		return nil
	}
	old := node(fmt.Sprintf("node-%04d", minute/30), "")
	if err := w.Delete(t.Context(), old); err != nil {
		return err
	}
	return w.Create(t.Context(), node(fmt.Sprintf("node-%04d", nodes+minute/30), "x", size))
}
