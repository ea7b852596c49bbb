// Package schedule decides where pending pods go: onto nodes that exist or are
// on their way, or onto machines to be bought.
//
// It imports world and below, and works like a compiler: pods are grouped into
// classes of equals, labels and taints are lowered to bit sets over nodes and
// offerings, amounts to vectors; that is solved and raised again. What always
// holds: the answer is a function of the snapshot's content, never of the order
// in which it is listed; no place is filled beyond its allocatable; a pod that
// cannot be placed never changes what happens to the others.
package schedule

import (
	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/reason"
	"karpenter/internal/core/world"
)

// Options change how a plan is made, not what is legal.
type Options struct {
	// MaxOptions is the most offerings that a planned machine keeps, cheapest
	// first; 0 means 300.
	MaxOptions int
}

// Plan says where every pending pod goes.
type Plan struct {
	// Placements are the pods that go to places in the snapshot, by pod.
	Placements []Placement `json:"placements,omitempty"`
	// Machines are to be bought, in the order in which they were decided.
	Machines []Machine `json:"machines,omitempty"`
	// Unplaced are the pods that stay pending, by pod.
	Unplaced []Unplaced `json:"unplaced,omitempty"`
	// Order lists all placed pods in an order in which kube-scheduler accepts
	// each of them, once all machines have joined. It is empty if there are no
	// rules between pods: then any order will do.
	Order []world.ObjectName `json:"order,omitempty"`
	Stats Stats              `json:"stats"`
}

// Placement puts a pod on a node, or on a claim whose machine has not joined.
type Placement struct {
	Pod   world.ObjectName `json:"pod"`
	Node  string           `json:"node,omitempty"`  // empty until the node joins
	Claim string           `json:"claim,omitempty"` // empty on foreign nodes
}

// Machine is a machine to be bought. Every one of its options suits all its
// pods and the daemon pods that will run there. Machines may share slices,
// which nobody may change.
type Machine struct {
	Pool string `json:"pool"`
	// PoolKind tells pools of one name apart.
	PoolKind string             `json:"poolKind,omitempty"`
	Pods     []world.ObjectName `json:"pods"`
	// Requests is what pods and daemons ask for; where daemons depend on the
	// option, the least.
	Requests quantity.Resources `json:"requests"`
	// Requirements describe the options by instance type, zone and capacity
	// type, and repeat what else the pool and the decided labels demand.
	Requirements []label.Requirement `json:"requirements"`
	// Labels are the pool's labels and the values decided for keys that the
	// pool leaves open.
	Labels map[string]string `json:"labels,omitempty"`
	// Options are sorted by price, then type, zone and capacity type.
	Options []Option `json:"options"`
	// Price is that of the first option.
	Price quantity.Price `json:"price"`
}

// Option is an offering that would do.
type Option struct {
	Type         string         `json:"type"`
	Zone         string         `json:"zone"`
	CapacityType string         `json:"capacityType"`
	Price        quantity.Price `json:"price"`
}

// Unplaced is a pod that stays pending.
type Unplaced struct {
	Pod world.ObjectName `json:"pod"`
	// Reasons has one entry per pool, the pool that came closest first.
	Reasons []reason.Reason `json:"reasons"`
}

// Stats counts what was there and the work that was done.
type Stats struct {
	Pods     int `json:"pods"`
	Classes  int `json:"classes"`  // groups of pods with equal demands
	Profiles int `json:"profiles"` // different sets of constraints
	Offers   int `json:"offers"`   // offerings, over all catalogues
	// Evaluations counts how often a class was held against a node or an
	// offering.
	Evaluations int64 `json:"evaluations"`
}

// Price is the price of all machines to be bought.
func (p *Plan) Price() quantity.Price {
	var sum quantity.Price
	for i := range p.Machines {
		if p.Machines[i].Price == quantity.PriceUnknown {
			return quantity.PriceUnknown
		}
		sum += p.Machines[i].Price
	}
	return sum
}
