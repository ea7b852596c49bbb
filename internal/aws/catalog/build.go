package catalog

import (
	"cmp"
	"slices"
	"strings"

	"karpenter/internal/cloud"
	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

// Build makes the instance types of one pool from the facts about them, sorted
// by name. All types are returned, also those without an available offering,
// but for what the rules hide.
//
// An error names the kubelet setting that cannot be read.
func Build(rows []Row, in Input) ([]world.InstanceType, error) {
	settings, err := readKubelet(in.Kubelet)
	if err != nil {
		return nil, err
	}
	shop := newShop(in, rows)
	types := make([]world.InstanceType, 0, len(rows))
	for i := range rows {
		r := &rows[i]
		if in.Rules.HidesOddTypes && (r.FPGA || strings.HasPrefix(r.Name, "g2.")) {
			continue
		}
		capacity := capacityOf(r, in, settings)
		offered := allocatable(r, in, settings, capacity)
		if r.Stated != nil {
			capacity, offered = settings.state(capacity, r.Stated.Capacity), settings.state(offered, r.Stated.Allocatable)
		}
		in.correct(r, &capacity, &offered)
		types = append(types, world.InstanceType{
			Name:         r.Name,
			Labels:       labelsOf(r, in.Region, capacity.Pods),
			Capacity:     capacity,
			Allocatable:  offered,
			AttachLimits: []quantity.Amount{{Name: ebsDriver, Value: ebsVolumes(r, len(in.BlockDevices))}},
			Offerings:    shop.offerings(r),
		})
	}
	slices.SortFunc(types, func(a, b world.InstanceType) int { return strings.Compare(a.Name, b.Name) })
	return types, nil
}

// shop makes the offerings of all types in one array.
type shop struct {
	in    Input
	zones map[string]bool // nil = all
	shelf []world.Offering
}

func newShop(in Input, rows []Row) *shop {
	s := &shop{in: in}
	if in.Zones != nil {
		s.zones = make(map[string]bool, len(in.Zones))
		for _, z := range in.Zones {
			s.zones[z] = true
		}
	}
	n := 0
	for i := range rows {
		n += len(rows[i].Markets) * len(in.Offered[rows[i].Name])
	}
	s.shelf = make([]world.Offering, 0, n)
	return s
}

// offerings lists where and how the type can be bought, by zone, then market.
// What cannot be bought now stays in the list, as not available.
func (s *shop) offerings(r *Row) []world.Offering {
	first := len(s.shelf)
	for _, zone := range s.in.Offered[r.Name] {
		if s.zones != nil && !s.zones[zone] {
			continue
		}
		for _, market := range r.Markets {
			// Other markets (capacity blocks) need a reservation.
			if market != label.OnDemand && market != label.Spot {
				continue
			}
			o := world.Offering{Zone: zone, CapacityType: market, Price: quantity.PriceUnknown}
			q, ok := s.in.Prices.Quote(r.Name, zone, market)
			if r.Stated != nil && r.Stated.Prices != nil {
				if q.Price, ok = r.Stated.Prices[market][zone]; !ok {
					continue
				}
			}
			if ok {
				o.Price = q.Price
				o.Available = s.in.Unavailable == nil ||
					!s.in.Unavailable(cloud.OfferingKey{Type: r.Name, Zone: zone, CapacityType: market})
			}
			s.shelf = append(s.shelf, o)
		}
	}
	mine := s.shelf[first:len(s.shelf):len(s.shelf)]
	slices.SortFunc(mine, func(a, b world.Offering) int {
		return cmp.Or(strings.Compare(a.Zone, b.Zone), strings.Compare(a.CapacityType, b.CapacityType))
	})
	return mine
}
