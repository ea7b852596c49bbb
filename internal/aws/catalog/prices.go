package catalog

import (
	"fmt"
	"maps"
	"time"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
)

// Source says where a price comes from.
type Source string

// The sources of prices.
const (
	// Live prices were answered by the cloud.
	Live Source = "live"
	// Listed prices are those of the embedded price list.
	Listed Source = "listed"
	// Estimate prices are computed from the price of something else, which
	// [Basis] names.
	Estimate Source = "estimate"
)

// Quote is a price and what is known about it.
type Quote struct {
	Price  quantity.Price
	Source Source
	// AsOf is when the price (for an estimate: the price behind it) held.
	AsOf time.Time
	// Basis is set for estimates.
	Basis Basis
}

// Basis tells what an estimate was made from: the price of another type, region or market, whichever is set, times FactorMilli thousandths.
type Basis struct {
	Type        string
	Region      string
	Market      string
	FactorMilli int64
}

// Age returns how old the price is.
func (q Quote) Age(now time.Time) time.Duration { return now.Sub(q.AsOf) }

// String writes the source for people, e.g. "listed 2025-05-28" or "estimate:
// 1.050 × m7g.large, 2025-05-28".
func (q Quote) String() string {
	day := q.AsOf.Format(time.DateOnly)
	if q.Source != Estimate {
		return string(q.Source) + " " + day
	}
	what := q.Basis.Type + q.Basis.Region
	if q.Basis.Market != "" {
		what = q.Basis.Market + " price"
	}
	return fmt.Sprintf("estimate: %d.%03d × %s, %s", q.Basis.FactorMilli/1000, q.Basis.FactorMilli%1000, what, day)
}

// TypeZone names an instance type in a zone.
type TypeZone struct{ Type, Zone string }

// Prices knows what the offerings of one region cost. It is a value: the
// methods that take news return a new one. The zero value knows no price.
type Prices struct {
	Region   string
	onDemand map[string]Quote
	// typicalSpot serves every zone until the first live spot prices; from
	// then on a zone without a live price has no spot offering.
	typicalSpot map[string]Quote
	spot        map[TypeZone]Quote
}

// Quote returns the price of an offering, or false if it is not known.
func (p Prices) Quote(instanceType, zone, capacityType string) (Quote, bool) {
	var q Quote
	var ok bool
	switch {
	case capacityType == label.OnDemand:
		q, ok = p.onDemand[instanceType]
	case capacityType != label.Spot:
	case p.spot != nil:
		q, ok = p.spot[TypeZone{instanceType, zone}]
	default:
		q, ok = p.typicalSpot[instanceType]
	}
	return q, ok
}

// WithOnDemand returns the prices with live on-demand prices by type. Prices of
// types that are not mentioned stay as they are: an answer may be partial.
func (p Prices) WithOnDemand(live map[string]quantity.Price, asOf time.Time) Prices {
	p.onDemand = merge(p.onDemand, live, asOf)
	return p
}

// WithSpot returns the prices with live spot prices by type and zone. Older
// live prices that are not mentioned stay. An empty answer changes nothing.
func (p Prices) WithSpot(live map[TypeZone]quantity.Price, asOf time.Time) Prices {
	if len(live) > 0 {
		p.spot = merge(p.spot, live, asOf)
	}
	return p
}

func merge[K comparable](old map[K]Quote, live map[K]quantity.Price, asOf time.Time) map[K]Quote {
	out := make(map[K]Quote, len(old)+len(live))
	maps.Copy(out, old)
	for k, price := range live {
		if price > 0 && price != quantity.PriceUnknown {
			out[k] = Quote{Price: price, Source: Live, AsOf: asOf}
		}
	}
	return out
}
