package planner

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apiv1 "karpenter/api/v1"
	"karpenter/internal/core/disrupt"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/convert"
	"karpenter/internal/kube/intent"
	"karpenter/internal/kube/mirror"
)

// marks are the annotations of a replacement: of which command it is, and which
// pods the command moves to save money, so that they are left alone for a while.
func (p *Planner) marks(v *mirror.View, command string, checked disrupt.Command) map[string]string {
	claim := &apiv1.NodeClaim{}
	if checked.Method == disrupt.Consolidation {
		convert.AddMoved(claim, p.Now(), p.movesOf(v.Snapshot, checked))
	}
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, intent.ReplacesAnnotation, command)
	return claim.Annotations
}

// noteMoves writes the same on the machine that gets the first of the pods, where
// nothing is bought. Without it they may be moved again too soon, which is no
// reason not to go on.
func (p *Planner) noteMoves(ctx context.Context, v *mirror.View, checked disrupt.Command) {
	if checked.Method != disrupt.Consolidation {
		return
	}
	target := ""
	for _, m := range checked.Moves {
		target = cmp.Or(target, m.Claim)
	}
	moves := p.movesOf(v.Snapshot, checked)
	if target == "" || len(moves) == 0 {
		return
	}
	claim := &apiv1.NodeClaim{}
	err := p.Client.Get(ctx, client.ObjectKey{Name: target}, claim)
	if err == nil {
		before := claim.DeepCopy()
		convert.AddMoved(claim, p.Now(), moves)
		err = p.Client.Patch(ctx, claim, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}
	if err != nil {
		p.Log.Info("could not write down which pods were moved", "nodeclaim", target, "error", err.Error())
	}
}

// movesOf counts the pods that have to go, by owner.
func (p *Planner) movesOf(s *world.Snapshot, checked disrupt.Command) []world.Moved {
	count := map[world.OwnerKey]int{}
	for _, t := range checked.Remove {
		for i := range s.Nodes {
			n := &s.Nodes[i]
			if n.Name != t.Node {
				continue
			}
			for j := range n.Pods {
				if q := &n.Pods[j]; q.Leaves(n) && q.Owner.Name != "" {
					count[world.OwnerKey{Namespace: q.Namespace, Owner: q.Owner}]++
				}
			}
		}
	}
	var out []world.Moved
	for owner, n := range count {
		out = append(out, world.Moved{Owner: owner, At: p.Now().UTC().Truncate(time.Second), Pods: n})
	}
	slices.SortFunc(out, func(a, b world.Moved) int {
		return cmp.Or(strings.Compare(a.Owner.Namespace, b.Owner.Namespace), strings.Compare(a.Owner.Kind, b.Owner.Kind), strings.Compare(a.Owner.Name, b.Owner.Name))
	})
	return out
}
