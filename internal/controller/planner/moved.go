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
func (p *Planner) marks(ctx context.Context, v *mirror.View, command string, checked disrupt.Command) map[string]string {
	claim := &apiv1.NodeClaim{}
	if moves := p.moves(ctx, v, checked); len(moves) > 0 {
		convert.AddMoved(claim, p.Now(), moves)
	}
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, intent.ReplacesAnnotation, command)
	return claim.Annotations
}

// noteMoves writes the same on the machine that gets the first of the pods, where
// nothing is bought, or on any that stays. Without it they may be moved again too
// soon, which is no reason not to go on.
func (p *Planner) noteMoves(ctx context.Context, v *mirror.View, checked disrupt.Command) {
	moves := p.moves(ctx, v, checked)
	target := heir(v.Snapshot, checked)
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

// moves are the pods that a command moves to save money, and what its machines
// remember of earlier ones: that would go with them.
func (p *Planner) moves(ctx context.Context, v *mirror.View, checked disrupt.Command) []world.Moved {
	var out []world.Moved
	if checked.Method == disrupt.Consolidation {
		out = p.movesOf(v.Snapshot, checked)
	}
	for _, t := range checked.Remove {
		if claim, _, err := p.read(ctx, t); err == nil {
			out = append(out, convert.Record(claim).Moved...)
		}
	}
	return out
}

// heir is the machine that remembers for those that go: the one that gets the
// first of their pods, or the first that stays.
func heir(s *world.Snapshot, checked disrupt.Command) string {
	for _, m := range checked.Moves {
		if m.Claim != "" {
			return m.Claim
		}
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		goes := slices.ContainsFunc(checked.Remove, func(t disrupt.Target) bool { return t.Claim == n.Claim })
		if n.Claim != "" && !goes && !n.Deleting && n.Disruption == "" {
			return n.Claim
		}
	}
	return ""
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
