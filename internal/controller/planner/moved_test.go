package planner

import (
	"testing"
	"time"

	apiv1 "karpenter/api/v1"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/convert"
)

// What a machine remembers of pods that were moved is not lost when it goes: they
// may be on others.
func TestAnEmptyMachineHandsOnWhichPodsWereMoved(t *testing.T) {
	a := machine("a", emptySince(t0))
	owner := world.OwnerKey{Namespace: "default", Owner: world.Owner{Kind: "ReplicaSet", Name: "rs"}}
	recent, old := world.Moved{Owner: owner, At: t0.Add(-20 * time.Minute), Pods: 2}, world.Moved{Owner: owner, At: t0.Add(-3 * time.Hour), Pods: 5}
	claim := a[0].(*apiv1.NodeClaim)
	convert.AddMoved(claim, t0.Add(-3*time.Hour), []world.Moved{old})
	convert.AddMoved(claim, t0.Add(-100*time.Minute), []world.Moved{recent})
	r := newRig(t, append(append(a, machine("b", emptySince(t0.Add(time.Hour)))...), provisioner(), pending("p", "1", on("b")))...)
	r.pass(39 * time.Second)
	r.pass(40 * time.Second)
	c := &apiv1.NodeClaim{}
	if r.get("claim-a", c); c.DeletionTimestamp == nil {
		t.Fatal("a stays")
	}
	r.get("claim-b", c)
	if moved := convert.Record(c).Moved; len(moved) != 1 || moved[0].Owner != owner || !moved[0].At.Equal(recent.At) || moved[0].Pods != 2 {
		t.Errorf("b knows %+v, want what a knew, without what was long ago", moved)
	}
}
