// Package census counts what there is: machines, their price, how full they are,
// and what pools have used, as Prometheus metrics of the last snapshot.
//
// It may import core, the API types of pods and nodes, and Prometheus. What always
// holds: a number is computed when it is asked for, from a snapshot that was taken
// for a decision anyway, so a metric costs nothing between scrapes, and the series
// of an object goes with the object.
package census

import (
	"cmp"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

// Census is a collector of metrics over the last snapshot.
type Census struct {
	// Last returns the last snapshot, which nobody changes; nil: there is none, as
	// on a replica that does not lead.
	Last func() *world.Snapshot
	// PerObject adds a series for each node and pod, and for each offering.
	PerObject bool
}

var (
	price = desc("karpenter_nodes_price_per_hour", "Sum of the prices of the machines, in dollars per hour, by what they are.", "nodepool", "capacity_type", "instance_type")
	dear  = desc("karpenter_nodes_without_price", "Machines of which no price is known, by pool; they are missing in karpenter_nodes_price_per_hour.", "nodepool")
	nodes = desc("karpenter_cluster_state_nodes", "Nodes and machines that will be nodes, by pool (empty: not ours) and phase: launching, booting, ready, leaving.", "nodepool", "phase")
	known = desc("karpenter_cluster_state_synced", "1 if this replica knows the cluster and decides; 0 if it follows or has just started.")
	usage = desc("karpenter_nodepools_usage", "What the machines of a pool have, by resource: cores, bytes or pieces.", "nodepool", "resource_type")
	limit = desc("karpenter_nodepools_limit", "What the machines of a pool may have, by resource: cores, bytes or pieces.", "nodepool", "resource_type")
	going = desc("karpenter_nodepools_nodes_consuming_budgets", "Machines of a pool that go or were chosen to go.", "nodepool")
	full  = desc("karpenter_cluster_utilization_ratio", "Share of what ready nodes offer that pods ask for, by resource.", "resource_type")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Describe lists the metrics.
func (c *Census) Describe(to chan<- *prometheus.Desc) {
	all := []*prometheus.Desc{price, dear, nodes, known, usage, limit, going, full}
	if c.PerObject {
		all = append(all, perObject...)
	}
	for _, d := range all {
		to <- d
	}
}

// Collect counts.
func (c *Census) Collect(to chan<- prometheus.Metric) {
	s := c.Last()
	if s == nil {
		gauge(to, known, 0)
		return
	}
	gauge(to, known, 1)
	c.machines(to, s)
	pools(to, s)
	if c.PerObject {
		objects(to, s)
	}
}

func gauge(to chan<- prometheus.Metric, d *prometheus.Desc, value float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

// kind of machine, or of node where the rest is empty.
type kind struct{ pool, second, third string }

func (c *Census) machines(to chan<- prometheus.Metric, s *world.Snapshot) {
	prices := newPrices(s)
	cost, unknown, phases, leaving := map[kind]float64{}, map[string]int{}, map[kind]int{}, map[string]int{}
	var asked, offered quantity.Resources
	for i := range s.Nodes {
		n := &s.Nodes[i]
		phases[kind{n.Pool, phase(n), ""}]++
		if n.Initialized {
			asked, offered = asked.Add(n.Requested()), offered.Add(n.Allocatable)
		}
		if n.Pool == "" {
			continue
		}
		if n.Deleting || n.Disruption != "" {
			leaving[n.Pool]++
		}
		if p, ok := prices.of(n); ok {
			cost[kind{n.Pool, n.Labels[label.CapacityType], n.Labels[label.InstanceType]}] += p.USD()
		} else if n.ProviderID != "" { // what is not launched costs nothing yet
			unknown[n.Pool]++
		}
	}
	for k, v := range cost {
		gauge(to, price, v, k.pool, k.second, k.third)
	}
	for pool, n := range unknown {
		gauge(to, dear, float64(n), pool)
	}
	for k, n := range phases {
		gauge(to, nodes, float64(n), k.pool, k.second)
	}
	for i := range s.Pools {
		if p := &s.Pools[i]; first(s.Pools[:i], p.Name) {
			gauge(to, going, float64(leaving[p.Name]), p.Name)
		}
	}
	for _, a := range offered.Amounts() {
		if a.Value > 0 {
			gauge(to, full, float64(asked.Get(a.Name))/float64(a.Value), resource(a.Name))
		}
	}
}

// phase is how far a node has come.
func phase(n *world.Node) string {
	switch {
	case n.Deleting:
		return "leaving"
	case n.Initialized || n.Claim == "":
		return "ready"
	case n.ProviderID != "":
		return "booting"
	}
	return "launching"
}

// first reports whether none of the pools has the name: two kinds of pools may
// share one, and a series stands for both.
func first(pools []world.Pool, name string) bool {
	for i := range pools {
		if pools[i].Name == name {
			return false
		}
	}
	return true
}

func pools(to chan<- prometheus.Metric, s *world.Snapshot) {
	used, most := map[kind]float64{}, map[kind]float64{}
	for i := range s.Pools {
		p := &s.Pools[i]
		for _, a := range p.Used.Amounts() {
			used[kind{p.Name, a.Name, ""}] += units(a)
		}
		for _, a := range p.Limits {
			most[kind{p.Name, a.Name, ""}] += units(a)
		}
	}
	for k, v := range used {
		gauge(to, usage, v, k.pool, resource(k.second))
	}
	for k, v := range most {
		gauge(to, limit, v, k.pool, resource(k.second))
	}
}

// units is the amount in cores, bytes or pieces.
func units(a quantity.Amount) float64 {
	if a.Name == quantity.CPU {
		return float64(a.Value) / 1000
	}
	return float64(a.Value)
}

// resource is the name of a resource as the value of a label.
func resource(name string) string { return strings.ReplaceAll(strings.ToLower(name), "-", "_") }

// prices are those of the catalogues, by pool.
type prices struct {
	catalogs map[kind]world.CatalogKey // by pool and its kind
	types    map[world.CatalogKey]map[string][]world.Offering
}

func newPrices(s *world.Snapshot) *prices {
	p := &prices{catalogs: map[kind]world.CatalogKey{}, types: map[world.CatalogKey]map[string][]world.Offering{}}
	for i := range s.Pools {
		p.catalogs[kind{s.Pools[i].Name, s.Pools[i].Kind, ""}] = s.Pools[i].Catalog
	}
	for key, c := range s.Catalogs {
		byName := make(map[string][]world.Offering, len(c.Types))
		for i := range c.Types {
			byName[c.Types[i].Name] = c.Types[i].Offerings
		}
		p.types[key] = byName
	}
	return p
}

func (p *prices) of(n *world.Node) (quantity.Price, bool) {
	zone, market := n.Labels[label.Zone], cmp.Or(n.Labels[label.CapacityType], label.OnDemand)
	for _, o := range p.types[p.catalogs[kind{n.Pool, n.PoolKind, ""}]][n.Labels[label.InstanceType]] {
		if o.Zone == zone && o.CapacityType == market && o.Price != quantity.PriceUnknown {
			return o.Price, true
		}
	}
	return 0, false
}
