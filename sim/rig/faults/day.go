package faults

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"karpenter/api/v1alpha5"
)

// Day is the life of a cluster in which nothing goes wrong.
type Day struct {
	// Nodes is how big the cluster is at noon, in machines.
	Nodes int
	// For is how long it is played.
	For time.Duration
	// Seed decides how its workload changes.
	Seed uint64
	// Consolidate: machines may be had for less; otherwise empty ones go.
	Consolidate bool
}

// DayResult is what came of it.
type DayResult struct {
	// Broken are the rules that were broken.
	Broken []string
	// Launches and Pods count what was started and made, Nodes and Running what
	// there is at the end.
	Launches, Pods, Nodes, Running int
	// Passes is how often each part acted.
	Passes map[string]int
}

const (
	// dayPodMilli is what a pod of the day asks for: one fits on a machine of the
	// smallest type, beside its daemon.
	dayPodMilli = 1700
	// dayChange is how often the workload changes.
	dayChange = 30 * time.Minute
)

// Play plays the day. With every change up to a tenth of the pods come or go.
func (d Day) Play() DayResult {
	w := newWorld(d.Seed, "", shape{Consolidate: d.Consolidate})
	w.chaos = newChaos(w)
	w.rules.limit = math.MaxInt64
	p := w.provisioner()
	p.Spec.Limits.Resources[corev1.ResourceCPU] = *resource.NewQuantity(int64(d.Nodes)*8, resource.DecimalSI)
	p.Spec.Requirements = append(p.Spec.Requirements, v1alpha5.Requirement{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"m5.large"}})
	w.must(w.kube.Update(ctx, p))
	var out DayResult
	size := d.Nodes
	w.Start()
	w.deploy("app", int32(size), dayPodMilli, false, false)
	out.Pods = size
	for at := 2 * dayChange; at < d.For; at += dayChange {
		before := size
		size = d.Nodes*19/20 + w.rng.IntN(max(d.Nodes/10, 1))
		out.Pods += max(size-before, 0)
		n := int32(size)
		w.At(start.Add(at), func() { w.scale("app", n) })
	}
	w.Run(start.Add(d.For))
	out.Broken = append(w.rules.Broken, w.rules.rest()...)
	out.Launches, out.Passes = w.rules.started, w.Passes
	var nodes corev1.NodeList
	var pods corev1.PodList
	w.must(w.kube.List(ctx, &nodes))
	w.must(w.kube.List(ctx, &pods))
	out.Nodes = len(nodes.Items)
	for i := range pods.Items {
		if p := &pods.Items[i]; p.Labels["app"] == "app" && p.Status.Phase == corev1.PodRunning {
			out.Running++
		}
	}
	return out
}
