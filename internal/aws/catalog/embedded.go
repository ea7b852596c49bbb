package catalog

import (
	_ "embed" // for embedded.json.gz
	"slices"
	"strings"
	"sync"
	"time"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
)

//go:embed embedded.json.gz
var embeddedGzip []byte

// embedded is the decoded file. It is never changed after it was read.
var embedded = sync.OnceValue(func() index {
	f, err := decodeFile(embeddedGzip)
	if err != nil {
		// The file is part of the program and a test reads it: it cannot
		// fail in a program that was tested.
		panic("embedded.json.gz: " + err.Error())
	}
	return newIndex(f)
})

// index is a File with its look-ups.
type index struct {
	File
	asOf   time.Time
	branch map[string]int64
}

func newIndex(f File) index {
	x := index{File: f, branch: make(map[string]int64, len(f.Types)+len(f.BranchENIs))}
	x.asOf, _ = time.Parse(time.DateOnly, f.PricesAsOf)
	for name, n := range f.BranchENIs {
		x.branch[name] = n
	}
	for _, t := range f.Types {
		x.branch[t.Name] = t.BranchENIs
	}
	return x
}

func (x index) region(name string) (FileRegion, bool) {
	i, ok := slices.BinarySearchFunc(x.Regions, name, func(r FileRegion, n string) int { return strings.Compare(r.Name, n) })
	if !ok {
		return FileRegion{}, false
	}
	return x.Regions[i], true
}

// Embedded returns the facts about every known instance type with hardware
// virtualization and an x86_64 or arm64 processor, sorted by name. The lists
// inside the rows are shared: they must not be changed.
func Embedded() []Row { return slices.Clone(embedded().Types) }

// EmbeddedSources tells where the embedded facts and prices come from.
func EmbeddedSources() []FileSource { return slices.Clone(embedded().Sources) }

// EmbeddedPricesAsOf is the day of the embedded prices.
func EmbeddedPricesAsOf() time.Time { return embedded().asOf }

// Regions lists the regions whose zones are known, sorted.
func Regions() []string {
	var out []string
	for _, r := range embedded().Regions {
		if len(r.Zones) > 0 {
			out = append(out, r.Name)
		}
	}
	return out
}

// RegionZones lists the availability zones of a region, sorted; nothing if the
// region is not known.
func RegionZones(region string) []string {
	r, _ := embedded().region(region)
	return slices.Clone(r.Zones)
}

// ZoneOfferings tells in which zones of the region each type is offered: from
// type to sorted zones. Types that the region does not offer are left out.
func ZoneOfferings(region string) map[string][]string {
	x := embedded()
	r, ok := x.region(region)
	if !ok {
		return nil
	}
	// Few combinations of zones occur; types that share one share its list.
	lists := map[uint32][]string{}
	out := make(map[string][]string, len(x.Types))
	for i, mask := range r.Offered {
		if mask == 0 {
			continue
		}
		zones, ok := lists[mask]
		if !ok {
			for bit, z := range r.Zones {
				if mask&(1<<bit) != 0 {
					zones = append(zones, z)
				}
			}
			zones = slices.Clip(zones)
			lists[mask] = zones
		}
		out[x.Types[i].Name] = zones
	}
	return out
}

// BranchENIs returns how many branch network interfaces (security groups for
// pods) an instance type has room for; 0 if it has none or is not known. EC2's
// API does not tell.
func BranchENIs(instanceType string) int64 { return embedded().branch[instanceType] }

// EmbeddedPrices returns the listed and estimated prices of the region. A
// region that is not known gets the prices of us-east-1, as estimates.
func EmbeddedPrices(region string) Prices {
	x := embedded()
	r, known := x.region(region)
	if !known {
		r, _ = x.region(referenceRegion)
	}
	p := Prices{
		Region:      region,
		onDemand:    make(map[string]Quote, len(x.Types)),
		typicalSpot: make(map[string]Quote, len(x.Types)),
	}
	for i, t := range x.Types {
		if q, ok := x.quote(r, t.Name, label.OnDemand, r.OnDemand[i], known); ok {
			p.onDemand[t.Name] = q
		}
		if q, ok := x.quote(r, t.Name, label.Spot, r.Spot[i], known); ok {
			p.typicalSpot[t.Name] = q
		}
	}
	return p
}

// referenceRegion has the prices from which others are estimated.
const referenceRegion = "us-east-1"

func (x index) quote(r FileRegion, instanceType, market string, micros int64, known bool) (Quote, bool) {
	if micros == 0 {
		return Quote{}, false
	}
	q := Quote{Price: quantity.Price(micros), Source: Listed, AsOf: x.asOf}
	switch basis, relative := x.Basis[instanceType]; {
	case micros > 0 && known:
		return q, true
	case micros > 0:
		q.Source, q.Basis = Estimate, Basis{Region: r.Name, FactorMilli: 1000}
	case market == label.Spot:
		q.Source, q.Basis = Estimate, Basis{Market: label.OnDemand, FactorMilli: x.SpotMilli}
	case relative:
		q.Source, q.Basis = Estimate, Basis{Type: basis.Type, FactorMilli: basis.Milli}
	default:
		q.Source, q.Basis = Estimate, Basis{Region: referenceRegion, FactorMilli: r.PriceMilli}
	}
	q.Price = max(q.Price, -q.Price)
	return q, true
}
