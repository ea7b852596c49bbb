package disrupt

import (
	"strconv"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

// EvictionCost is how bad it is to move a pod: 1 for an ordinary one, from −10
// to 10. Source of the formula: the public disruption documentation of the v1
// release; a deletion cost of 2^27 or a priority of 2^25 counts as much as one
// more pod. An annotation that is not a number is ignored.
func EvictionCost(p *world.Pod) float64 {
	cost := 1 + float64(p.Priority)/(1<<25)
	if d, err := strconv.ParseFloat(p.DeletionCost, 64); err == nil {
		cost += d / (1 << 27)
	}
	return max(-10, min(10, cost))
}

// disturbance of removing a machine: 1, and what it costs to move its pods.
func disturbance(n *world.Node) float64 {
	sum := 1.0
	for i := range n.Pods {
		if p := &n.Pods[i]; p.Leaves(n) {
			sum += max(0, EvictionCost(p))
		}
	}
	return sum
}

// prices knows what machines cost, by catalogue.
type prices map[world.CatalogKey]map[offering]quantity.Price

type offering struct{ kind, zone, market string }

// of is what the machine costs per hour; quantity.PriceUnknown if nothing is
// known about its offering.
func (p prices) of(s *world.Snapshot, pool *world.Pool, n *world.Node) quantity.Price {
	if pool == nil {
		return quantity.PriceUnknown
	}
	known := p[pool.Catalog]
	if known == nil {
		known = map[offering]quantity.Price{}
		for _, t := range s.Catalogs[pool.Catalog].Types {
			for _, o := range t.Offerings {
				known[offering{t.Name, o.Zone, o.CapacityType}] = o.Price
			}
		}
		p[pool.Catalog] = known
	}
	price, ok := known[offering{n.Labels[label.InstanceType], n.Labels[label.Zone], n.Labels[label.CapacityType]}]
	if !ok {
		return quantity.PriceUnknown
	}
	return price
}
