package faults

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"karpenter/api/v1alpha5"
)

// BenchmarkDay plays a day of a cluster of 500 nodes whose workload changes
// every half an hour.
func BenchmarkDay(b *testing.B) {
	for b.Loop() {
		w := newWorld(3, "")
		w.chaos = newChaos(w)
		w.rules.limit = 4000
		p := w.pool()
		p.Spec.Limits.Resources[corev1.ResourceCPU] = resource.MustParse("4000")
		p.Spec.Requirements = append(p.Spec.Requirements, v1alpha5.Requirement{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"m5.large"}})
		w.must(w.kube.Update(ctx, p))
		w.Start()
		w.deploy("app", 500, 1700, false, false)
		for at := time.Hour; at < 24*time.Hour; at += 30 * time.Minute {
			n := int32(450 + w.rng.IntN(100))
			w.At(start.Add(at), func() { w.scale("app", n) })
		}
		w.Run(start.Add(24 * time.Hour))
		w.rules.rest()
		if len(w.rules.Broken) > 0 {
			b.Errorf("%q", w.rules.Broken)
		}
		b.ReportMetric(float64(w.rules.started), "launches")
	}
}
