package convert

import (
	"maps"
	"slices"
	"strings"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

// Booting translates a record whose machine has not joined. Once launched it
// counts as what its instance type promises; before that, as the least of all
// instance types of the catalogue that it may become, with the labels that all
// of them have, and a choice for each label in which they differ.
func Booting(r world.Record, c world.Catalog) world.Node {
	n := world.Node{
		Name: r.Name, Claim: r.Name, Pool: r.Pool, PoolKind: r.PoolKind, ProviderID: r.ProviderID,
		Labels: maps.Clone(r.Labels), Annotations: ours(r.Annotations), Taints: r.Taints,
		Allocatable: r.Allocatable, Capacity: r.Capacity, Created: r.Created,
		Deleting: r.DeletedAt != nil,
	}
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	options := Options(r, c)
	if n.Allocatable.IsZero() {
		for i, t := range options {
			if i == 0 {
				n.Allocatable, n.Capacity = t.Allocatable, t.Capacity
			}
			n.Allocatable, n.Capacity = n.Allocatable.Min(t.Allocatable), n.Capacity.Min(t.Capacity)
		}
	}
	n.AttachLimits = PromisedLimits(nil, options)
	for _, choice := range choices(r, options) {
		if _, decided := n.Labels[choice.Key]; decided {
			continue
		}
		if len(choice.Values) == 1 && !choice.Absent {
			n.Labels[choice.Key] = choice.Values[0]
		} else {
			n.Choices = append(n.Choices, choice)
		}
	}
	return n
}

// Options are the instance types of the catalogue that the machine may become:
// those that are offered, now or ever, where it may be; the one that it is, if
// that is decided.
func Options(r world.Record, c world.Catalog) []*world.InstanceType {
	var out []*world.InstanceType
	for i := range c.Types {
		t := &c.Types[i]
		if decided := r.Labels[label.InstanceType]; decided == t.Name || decided == "" && allows(r, label.InstanceType, t.Name) && offered(r, t) {
			out = append(out, t)
		}
	}
	return out
}

// offered reports whether the type is offered where the machine may be.
func offered(r world.Record, t *world.InstanceType) bool {
	return slices.ContainsFunc(t.Offerings, func(o world.Offering) bool {
		return allows(r, label.Zone, o.Zone) && allows(r, label.CapacityType, o.CapacityType)
	})
}

// allows reports whether the requirements of the record on the key hold for the
// value.
func allows(r world.Record, key, value string) bool {
	return !slices.ContainsFunc(r.Requirements, func(q label.Requirement) bool { return q.Key == key && !q.Allows(value, true) })
}

// choices lists the labels of the machine with all values that they may get, by
// key: from its instance types and their offerings, and from the requirements
// that list values.
func choices(r world.Record, options []*world.InstanceType) []world.Choice {
	values := map[string]map[string]int{} // key → value → number of types
	note := func(key, value string) {
		if allows(r, key, value) {
			if values[key] == nil {
				values[key] = map[string]int{}
			}
			values[key][value]++
		}
	}
	for _, t := range options {
		for key, value := range t.Labels {
			note(key, value)
		}
		for _, o := range t.Offerings {
			if allows(r, label.Zone, o.Zone) && allows(r, label.CapacityType, o.CapacityType) {
				note(label.Zone, o.Zone)
				note(label.CapacityType, o.CapacityType)
			}
		}
	}
	for _, q := range r.Requirements {
		if _, known := values[q.Key]; !known && q.Op == label.In {
			for _, v := range q.Values {
				note(q.Key, v)
			}
		}
	}
	var out []world.Choice
	for _, key := range slices.Sorted(maps.Keys(values)) {
		types := 0
		for _, n := range values[key] {
			types += n
		}
		demanded := slices.ContainsFunc(r.Requirements, func(q label.Requirement) bool { return q.Key == key && !q.Allows("", false) })
		out = append(out, world.Choice{Key: key, Values: slices.Sorted(maps.Keys(values[key])), Absent: !demanded && types < len(options)})
	}
	return out
}

// PromisedLimits are the attach limits of a node that is not initialised: what
// its CSI drivers have told (see [Lookups.AttachLimits]), and for those that have
// not told yet the least of the instance types that it may be.
func PromisedLimits(told []quantity.Amount, options []*world.InstanceType) []quantity.Amount {
	out := slices.Clone(told)
	at := func(driver string) int {
		return slices.IndexFunc(out, func(a quantity.Amount) bool { return a.Name == driver })
	}
	for _, t := range options {
		for _, limit := range t.AttachLimits {
			switch i := at(limit.Name); {
			case i < 0:
				out = append(out, limit)
			case i >= len(told):
				out[i].Value = min(out[i].Value, limit.Value)
			}
		}
	}
	slices.SortFunc(out, func(a, b quantity.Amount) int { return strings.Compare(a.Name, b.Name) })
	return out
}
