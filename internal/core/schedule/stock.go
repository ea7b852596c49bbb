package schedule

import "karpenter/internal/core/world"

// Stock lists what the pool may buy, cheapest first, and apart from that what it
// could if the cloud had some left. Limits and readiness of the pool are of no
// concern.
func Stock(s *world.Snapshot, pool *world.Pool) (has, out []Option) {
	c := s.Catalogs[pool.Catalog]
	var stats Stats
	d := dimsOf(nil)
	shop := newShop(pool, newMarket(&c, &d), &d, nil, nil, nil, &stats)
	for i := shop.listed.next(0); i >= 0; i = shop.listed.next(i + 1) {
		o := shop.market.offers[i]
		at := shop.market.offering(o)
		one := Option{shop.market.kind(o).Name, at.Zone, at.CapacityType, o.price}
		if shop.offers.has(i) {
			has = append(has, one)
		} else {
			out = append(out, one)
		}
	}
	return has, out
}
