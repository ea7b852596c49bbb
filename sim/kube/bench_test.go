package kube

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// full is a cluster with so many pods, ten on each node, and a cache.
func full(b *testing.B, pods int) (*Cluster, *Cache, *Client) {
	b.Helper()
	c := New(Options{Scheme: testScheme(), Now: func() time.Time { return noon }, Seed: 1})
	for i := range pods {
		p := pod(fmt.Sprintf("pod-%05d", i), func(p *corev1.Pod) {
			p.Spec.NodeName = fmt.Sprintf("node-%04d", i/10)
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: noon}}}
		})
		if err := c.Import(p); err != nil {
			b.Fatal(err)
		}
	}
	cache := c.Cache("bench")
	_ = cache.IndexField(context.Background(), &corev1.Pod{}, "spec.nodeName", podFields["spec.nodeName"])
	return c, cache, c.Client("bench")
}

func BenchmarkImport(b *testing.B) {
	for b.Loop() {
		full(b, 5000)
	}
}

func BenchmarkListUnshared(b *testing.B) {
	_, cache, _ := full(b, 5000)
	for b.Loop() {
		var list corev1.PodList
		if err := cache.List(b.Context(), &list); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkListShared(b *testing.B) {
	for _, n := range []int{5000, 50000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			_, cache, _ := full(b, n)
			for b.Loop() {
				var list corev1.PodList
				if err := cache.List(b.Context(), &list, client.UnsafeDisableDeepCopy); err != nil || len(list.Items) != n {
					b.Fatal(err, len(list.Items))
				}
			}
		})
	}
}

func BenchmarkListOfANode(b *testing.B) {
	_, cache, _ := full(b, 5000)
	for b.Loop() {
		var list corev1.PodList
		if err := cache.List(b.Context(), &list, client.MatchingFields{"spec.nodeName": "node-0100"}, client.UnsafeDisableDeepCopy); err != nil || len(list.Items) != 10 {
			b.Fatal(err, len(list.Items))
		}
	}
}

func BenchmarkGet(b *testing.B) {
	_, _, c := full(b, 5000)
	for b.Loop() {
		if err := c.Get(b.Context(), client.ObjectKey{Namespace: "default", Name: "pod-02500"}, &corev1.Pod{}); err != nil {
			b.Fatal(err)
		}
	}
}

// The writes below are each seen by a cache.
func BenchmarkStatusUpdate(b *testing.B) {
	_, cache, c := full(b, 5000)
	p := &corev1.Pod{}
	_ = c.Get(b.Context(), client.ObjectKey{Namespace: "default", Name: "pod-02500"}, p)
	for i := 0; b.Loop(); i++ {
		p.Status.Message = fmt.Sprint(i)
		if err := c.Status().Update(b.Context(), p); err != nil {
			b.Fatal(err)
		}
		cache.Deliver(-1)
	}
}

func BenchmarkMergePatch(b *testing.B) {
	_, cache, c := full(b, 5000)
	p := &corev1.Pod{}
	_ = c.Get(b.Context(), client.ObjectKey{Namespace: "default", Name: "pod-02500"}, p)
	for i := 0; b.Loop(); i++ {
		before := p.DeepCopy()
		p.Labels["x"] = fmt.Sprint(i)
		if err := c.Patch(b.Context(), p, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			b.Fatal(err)
		}
		cache.Deliver(-1)
	}
}

func BenchmarkCreateAndDelete(b *testing.B) {
	_, cache, c := full(b, 5000)
	for b.Loop() {
		p := pod("pod-02500-x")
		if err := c.Create(b.Context(), p); err != nil {
			b.Fatal(err)
		}
		if err := c.Delete(b.Context(), p); err != nil {
			b.Fatal(err)
		}
		cache.Deliver(-1)
	}
}
