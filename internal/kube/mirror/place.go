package mirror

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/convert"
)

// node is a Node that has joined, with its claim if it has one.
func (b *build) node(n *corev1.Node, claim string) world.Node {
	out := b.mirror.cache.node(n)
	if r, owned := b.claims[claim]; owned {
		return convert.Joined(out, r)
	}
	return out
}

// inFlight is a claim whose machine has not joined. Before the launch it counts
// as the least of all that it may become, and carries the labels that all of
// them would have.
func (b *build) inFlight(r world.Record) world.Node {
	n := world.Node{
		Name: r.Name, Claim: r.Name, Pool: r.Pool, ProviderID: r.ProviderID,
		Labels: maps.Clone(r.Labels), Taints: r.Taints,
		Allocatable: r.Allocatable, Capacity: r.Capacity, Created: r.Created,
	}
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	for _, req := range r.Requirements {
		if _, set := n.Labels[req.Key]; !set && req.Op == label.In && len(req.Values) == 1 {
			n.Labels[req.Key] = req.Values[0]
		}
	}
	if !n.Allocatable.IsZero() {
		return n
	}
	var types []world.InstanceType
	for i := range b.view.Pools {
		if p := &b.view.Pools[i]; p.Name == r.Pool && (r.PoolKind == "" || p.Kind == r.PoolKind) {
			types = options(b.view.Catalogs[p.Catalog], r)
		}
	}
	for i, t := range types {
		if i == 0 {
			n.Allocatable, n.Capacity = t.Allocatable, t.Capacity
			n.Labels = merged(t.Labels, n.Labels)
			continue
		}
		n.Allocatable, n.Capacity = n.Allocatable.Min(t.Allocatable), n.Capacity.Min(t.Capacity)
		for key := range types[0].Labels {
			if t.Labels[key] != types[0].Labels[key] && r.Labels[key] == "" {
				delete(n.Labels, key)
			}
		}
	}
	return n
}

// options are the instance types that a claim may become.
func options(c world.Catalog, r world.Record) []world.InstanceType {
	var out []world.InstanceType
	for _, t := range c.Types {
		fits := true
		for _, req := range r.Requirements {
			if req.Key == label.InstanceType {
				fits = fits && req.Allows(t.Name, true)
			}
		}
		if fits {
			out = append(out, t)
		}
	}
	return out
}

func merged(under, over map[string]string) map[string]string {
	out := make(map[string]string, len(under)+len(over))
	maps.Copy(out, under)
	maps.Copy(out, over)
	return out
}
