package world

import "slices"

// Without returns the snapshot as if the named nodes were on their way out:
// they take no pods, and a plan finds another place for the pods on them. A name
// is that of a Node or of a NodeClaim. The receiver is not changed; everything
// but the list of nodes is shared with it.
func (s *Snapshot) Without(names ...string) *Snapshot {
	out := *s
	out.Nodes = slices.Clone(s.Nodes)
	for i := range out.Nodes {
		n := &out.Nodes[i]
		if slices.Contains(names, n.Name) || n.Claim != "" && slices.Contains(names, n.Claim) {
			n.Deleting = true
		}
	}
	return &out
}
