package schedule

import (
	"cmp"
	"slices"
	"strings"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

// market is a compiled catalogue: its offerings, numbered from the cheapest.
type market struct {
	catalog *world.Catalog
	offers  []offer
	typed   map[string]bool // keys that some instance type carries
	table   *table
	for_    *dims
	room    []int64 // per type: allocatable, without daemons
	sets    [][]valueSet
	values  [][]int32 // per topology key that rules look at, per offer
}

// offer is one offering of one instance type.
type offer struct {
	kind  int32 // index into catalog.Types
	at    int32 // index into its offerings
	price quantity.Price
}

func newMarket(c *world.Catalog, d *dims) *market {
	m := &market{catalog: c, for_: d, typed: map[string]bool{}}
	for t := range c.Types {
		it := &c.Types[t]
		for k := range it.Labels {
			m.typed[label.Normalize(k)] = true
		}
		for o := range it.Offerings {
			m.offers = append(m.offers, offer{int32(t), int32(o), it.Offerings[o].Price})
		}
		m.room = append(m.room, d.room(it.Allocatable, it.AttachLimits, nil)...)
	}
	slices.SortFunc(m.offers, func(a, b offer) int {
		if c := cmp.Compare(a.price, b.price); c != 0 {
			return c
		}
		x, y := m.offering(a), m.offering(b)
		return cmp.Or(strings.Compare(m.kind(a).Name, m.kind(b).Name),
			strings.Compare(x.Zone, y.Zone), strings.Compare(x.CapacityType, y.CapacityType))
	})
	m.table = newTable(len(m.offers), m.label)
	return m
}

func (m *market) kind(o offer) *world.InstanceType { return &m.catalog.Types[o.kind] }
func (m *market) offering(o offer) *world.Offering { return &m.kind(o).Offerings[o.at] }

// label is the value of a machine's label, as far as the cloud decides it.
func (m *market) label(i int, key string) (string, bool) {
	o := m.offers[i]
	switch key {
	case label.Zone:
		return m.offering(o).Zone, true
	case label.CapacityType:
		return m.offering(o).CapacityType, true
	case label.InstanceType:
		return m.kind(o).Name, true
	}
	if v, ok := m.kind(o).Labels[key]; ok {
		return v, true
	}
	if key == label.Region && m.catalog.Region != "" {
		return m.catalog.Region, true
	}
	return "", false
}

// decides reports whether the cloud decides the label, so that a requirement on
// it is a choice among offerings.
func (m *market) decides(key string) bool {
	return m.typed[key] || label.WellKnown(key) && key != label.Provisioner && key != label.NodePool
}
