package mirror

import (
	"cmp"
	"slices"

	"karpenter/internal/core/world"
)

// moved marks the bound pods that were moved to save money: of each owner the
// ones that were made first after it, as many as had to go.
func (b *build) moved() {
	moves := map[world.OwnerKey][]world.Moved{}
	for _, r := range b.claims {
		for _, m := range r.Moved {
			moves[m.Owner] = append(moves[m.Owner], m)
		}
	}
	if len(moves) == 0 {
		return
	}
	pods := map[world.OwnerKey][]*world.Pod{}
	for node := range b.bound {
		for i := range b.bound[node] {
			p := &b.bound[node][i]
			key := world.OwnerKey{Namespace: p.Namespace, Owner: p.Owner}
			if len(moves[key]) > 0 && p.DeletedAt == nil {
				pods[key] = append(pods[key], p)
			}
		}
	}
	for key, list := range pods {
		slices.SortFunc(list, func(a, b *world.Pod) int { return cmp.Or(a.Created.Compare(b.Created), a.Compare(b.ObjectName)) })
		slices.SortFunc(moves[key], func(a, b world.Moved) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Pods, b.Pods)) })
		for _, m := range moves[key] {
			left := m.Pods
			for _, p := range list {
				if left > 0 && p.MovedAt == nil && !p.Created.Before(m.At) {
					p.MovedAt, left = &p.Created, left-1
				}
			}
		}
	}
}
