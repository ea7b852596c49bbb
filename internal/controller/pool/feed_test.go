package pool

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apiv1 "karpenter/api/v1"
)

func TestAPoolLooksWhenItsMachinesCountDifferently(t *testing.T) {
	for _, c := range []struct {
		what    string
		change  func(*apiv1.NodeClaim)
		matters bool
	}{
		{"nothing", func(*apiv1.NodeClaim) {}, false},
		{"its node is ready", func(c *apiv1.NodeClaim) {
			c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: apiv1.ConditionInitialized, Status: metav1.ConditionTrue})
		}, false},
		{"it has registered", func(c *apiv1.NodeClaim) {
			c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: apiv1.ConditionRegistered, Status: metav1.ConditionTrue})
		}, true},
		{"it has a size", func(c *apiv1.NodeClaim) {
			c.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
		}, true},
		{"it goes", func(c *apiv1.NodeClaim) { c.DeletionTimestamp = &metav1.Time{} }, true},
		{"it has another pool", func(c *apiv1.NodeClaim) { c.Labels = map[string]string{"karpenter.sh/nodepool": "other"} }, true},
	} {
		before := &apiv1.NodeClaim{}
		after := before.DeepCopy()
		c.change(after)
		if got := claimChanged(before, after); got != c.matters {
			t.Errorf("%s: %v", c.what, got)
		}
	}
}
