package convert

import (
	"maps"

	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
)

// Booting translates a record whose machine has not joined. Once launched it
// counts as what its instance type promises; before that, as the least of all
// instance types of the catalogue that it may become, with the labels that all
// of them have.
func Booting(r world.Record, c world.Catalog) world.Node {
	n := world.Node{
		Name: r.Name, Claim: r.Name, Pool: r.Pool, ProviderID: r.ProviderID,
		Labels: maps.Clone(r.Labels), Annotations: ours(r.Annotations), Taints: r.Taints,
		Allocatable: r.Allocatable, Capacity: r.Capacity, Created: r.Created,
		Deleting: r.DeletedAt != nil,
	}
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	for _, req := range r.Requirements {
		if _, set := n.Labels[req.Key]; !set && req.Op == label.In && len(req.Values) == 1 {
			n.Labels[req.Key] = req.Values[0]
		}
	}
	if n.Allocatable.IsZero() {
		least(&n, r, c)
	}
	return n
}

// least gives the node what it has whichever of its options is bought.
func least(n *world.Node, r world.Record, c world.Catalog) {
	var common map[string]string
	for i := range c.Types {
		t := &c.Types[i]
		if !mayBecome(r, t.Name) {
			continue
		}
		if common == nil {
			common = maps.Clone(t.Labels)
			n.Allocatable, n.Capacity = t.Allocatable, t.Capacity
			continue
		}
		n.Allocatable, n.Capacity = n.Allocatable.Min(t.Allocatable), n.Capacity.Min(t.Capacity)
		maps.DeleteFunc(common, func(key, value string) bool { return t.Labels[key] != value })
	}
	for key, value := range common {
		if _, set := n.Labels[key]; !set {
			n.Labels[key] = value
		}
	}
}

func mayBecome(r world.Record, instanceType string) bool {
	for _, req := range r.Requirements {
		if req.Key == label.InstanceType && !req.Allows(instanceType, true) {
			return false
		}
	}
	return true
}
