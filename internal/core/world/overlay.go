package world

import "slices"

// Without returns the snapshot as if the named nodes were on their way out:
// they take no pods, and the pods on them that need a place elsewhere are
// pending. A name is that of a Node or of a NodeClaim. The receiver is not
// changed; what stays the same is shared with it.
func (s *Snapshot) Without(names ...string) *Snapshot {
	out := *s
	out.Nodes = slices.Clone(s.Nodes)
	out.Pending = slices.Clone(s.Pending)
	for i := range out.Nodes {
		n := &out.Nodes[i]
		if !slices.Contains(names, n.Name) && (n.Claim == "" || !slices.Contains(names, n.Claim)) {
			continue
		}
		n.Deleting = true
		for _, p := range n.Pods {
			if p.Leaves(n) {
				p.Node = ""
				out.Pending = append(out.Pending, p)
			}
		}
	}
	SortPending(out.Pending)
	return &out
}
