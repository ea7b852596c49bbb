package world

import "slices"

// Without returns the snapshot as if the named nodes were on their way out:
// they take no pods, and the pods on them that need a place elsewhere are
// pending; room that was kept for these elsewhere is free. A name is that of a
// Node or of a NodeClaim. The receiver is not changed; what stays the same is
// shared with it.
func (s *Snapshot) Without(names ...string) *Snapshot {
	out := *s
	out.Nodes = slices.Clone(s.Nodes)
	out.Pending = slices.Clone(s.Pending)
	moved := map[ObjectName]bool{}
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
				moved[p.ObjectName] = true
			}
		}
	}
	for i := range out.Nodes {
		n := &out.Nodes[i]
		kept := func(p Pod) bool { return p.Node != n.Name && moved[p.ObjectName] }
		if !n.Deleting && slices.ContainsFunc(n.Pods, kept) {
			n.Pods = slices.DeleteFunc(slices.Clone(n.Pods), kept)
		}
	}
	SortPending(out.Pending)
	return &out
}

// Expecting returns the snapshot as if room were kept for pending pods on the
// nodes to which they go, and no other pods waited. The receiver is not changed.
func (s *Snapshot) Expecting(to map[ObjectName]string) *Snapshot {
	out := *s
	out.Pending = nil
	coming := map[string][]Pod{}
	for _, p := range s.Pending {
		if node := to[p.ObjectName]; node != "" {
			coming[node] = append(coming[node], p)
		}
	}
	if len(coming) > 0 {
		out.Nodes = slices.Clone(s.Nodes)
		arrive(out.Nodes, coming)
	}
	return &out
}

// arrive adds pods to nodes, by name; the nodes' lists of pods are replaced.
func arrive(nodes []Node, coming map[string][]Pod) {
	for i := range nodes {
		n := &nodes[i]
		if some := coming[n.Name]; len(some) > 0 {
			n.Pods = slices.Concat(n.Pods, some)
			slices.SortFunc(n.Pods, func(a, b Pod) int { return a.Compare(b.ObjectName) })
		}
	}
}

// After returns the snapshot as if the named nodes were gone, and their pods
// were on the nodes to which they move. Pods that move to no node are left out:
// they are on a machine that is not there yet. The receiver is not changed.
func (s *Snapshot) After(gone []string, moves map[ObjectName]string) *Snapshot {
	out := *s
	out.Nodes = make([]Node, 0, len(s.Nodes))
	coming := map[string][]Pod{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if !slices.Contains(gone, n.Name) {
			out.Nodes = append(out.Nodes, *n)
			continue
		}
		for _, p := range n.Pods {
			if to, ok := moves[p.ObjectName]; ok && to != "" {
				p.Node = to
				coming[to] = append(coming[to], p)
			}
		}
	}
	arrive(out.Nodes, coming)
	return &out
}
