package replace

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apiv1 "karpenter/api/v1"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/convert"
)

// Pods are moved when their machine goes, not when its replacement was bought: an
// owner that was scaled up in between has made others first. What was handed on
// from earlier commands stays as it was.
func TestPodsAreMovedWhenTheirMachineGoes(t *testing.T) {
	s := newStage(t, nil)
	fresh := &apiv1.NodeClaim{}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: "new"}, fresh); err != nil {
		t.Fatal(err)
	}
	if err := s.Client.Delete(t.Context(), fresh); err != nil {
		t.Fatal(err)
	}
	fresh.ResourceVersion, fresh.CreationTimestamp = "", metav1.NewTime(t0)
	web := world.OwnerKey{Namespace: "default", Owner: world.Owner{Kind: "ReplicaSet", Name: "web"}}
	convert.AddMoved(fresh, t0, []world.Moved{{Owner: web, At: t0.Add(-20 * time.Minute), Pods: 3}, {Owner: web, At: t0, Pods: 2}})
	if err := s.Client.Create(t.Context(), fresh); err != nil {
		t.Fatal(err)
	}
	s.reconcile(t)
	if s.state(t) != "gone" {
		t.Fatalf("the old machine is %s", s.state(t))
	}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: "new"}, fresh); err != nil {
		t.Fatal(err)
	}
	moved := convert.Record(fresh).Moved
	if len(moved) != 2 || !moved[0].At.Equal(t0.Add(-20*time.Minute)) || !moved[1].At.Equal(s.now) || moved[1].Pods != 2 {
		t.Errorf("%+v: want the two pods to be moved at %s, and the others as before", moved, s.now)
	}
}
