package main

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"karpenter/internal/aws/catalog"
	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
)

// referenceRegion has the longest price list; missing prices are estimated
// from it.
const referenceRegion = "us-east-1"

// addRegions fills in zones, prices and the factors behind estimates.
//
// A type that has a price somewhere but not in a region gets its price in the
// reference region times the region's median factor. A type without any price
// gets that of its nearest relative, times the median factor between two
// generations, or between a variant and its plainer form, where they differ in
// that. A spot price that is not listed is the on-demand price times the median
// factor between the two.
func addRegions(f *catalog.File, zones map[string]map[string][]string, list priceList) {
	regions := map[string]bool{}
	for at := range list.onDemand {
		regions[at.region] = true
	}
	for r := range zones {
		regions[r] = true
	}
	f.SpotMilli = medianMilli(list.spot, list.onDemand, func(at place) place { return at })
	factors := map[string]int64{}
	for r := range regions {
		factors[r] = regionFactor(list, r)
	}
	e := newEstimator(f.Types, list, factors)
	f.GenerationMilli, f.VariantMilli, f.Basis = e.generationMilli, e.variantMilli, e.basis

	for _, name := range slices.Sorted(maps.Keys(regions)) {
		r := catalog.FileRegion{Name: name, PriceMilli: factors[name], Zones: slices.Sorted(maps.Keys(zones[name]))}
		if len(r.Zones) > 0 {
			r.Offered = offered(f.Types, r.Zones, zones[name])
		}
		for i, t := range f.Types {
			isOffered := r.Offered != nil && r.Offered[i] != 0
			onDemand := e.onDemand(t, name, isOffered)
			r.OnDemand = append(r.OnDemand, onDemand)
			r.Spot = append(r.Spot, spot(t, list.spot[place{name, t.Name}], onDemand, f.SpotMilli))
		}
		f.Regions = append(f.Regions, r)
	}
}

// offered makes a bit set of zones for each type.
func offered(types []catalog.Row, zones []string, in map[string][]string) []uint32 {
	masks := make([]uint32, len(types))
	for bit, z := range zones {
		for _, t := range in[z] {
			if i, ok := find(types, t); ok {
				masks[i] |= 1 << bit
			}
		}
	}
	return masks
}

func find(types []catalog.Row, name string) (int, bool) {
	return slices.BinarySearchFunc(types, name, func(r catalog.Row, n string) int { return strings.Compare(r.Name, n) })
}

// spot returns the listed spot price or an estimate; 0 if the type has no spot
// market or no price.
func spot(t catalog.Row, listed quantity.Price, onDemand, milli int64) int64 {
	switch {
	case !slices.Contains(t.Markets, label.Spot):
		return 0
	case listed > 0:
		return int64(listed)
	default:
		return -times(max(onDemand, -onDemand), milli)
	}
}

func times(micros, milli int64) int64 { return (micros*milli + 999) / 1000 }

// estimator knows the price of every type in the reference region, listed or
// not.
type estimator struct {
	list            priceList
	factors         map[string]int64
	generationMilli int64
	variantMilli    int64
	reference       map[string]int64
	basis           map[string]catalog.FileBasis
}

func newEstimator(types []catalog.Row, list priceList, factors map[string]int64) estimator {
	e := estimator{list: list, factors: factors, reference: map[string]int64{}, basis: map[string]catalog.FileBasis{}}
	for _, t := range types {
		if p, ok := listedReference(t.Name, list, factors); ok {
			e.reference[t.Name] = p
		}
	}
	e.generationMilli = relativeFactor(types, list, func(k *kind) { k.generation-- })
	e.variantMilli = relativeFactor(types, list, func(k *kind) { k.variant = k.variant[:max(0, len(k.variant)-1)] })
	listed := slices.DeleteFunc(slices.Clone(types), func(t catalog.Row) bool { return e.reference[t.Name] == 0 })
	for _, t := range types {
		if e.reference[t.Name] != 0 {
			continue
		}
		if from, ok := relative(t, listed); ok {
			milli := int64(math.Ceil(e.factor(t, from) * 1000))
			e.basis[t.Name] = catalog.FileBasis{Type: from.Name, Milli: milli}
			e.reference[t.Name] = times(e.reference[from.Name], milli)
		}
	}
	return e
}

// listedReference is the listed price in the reference region, or that of the
// first region that lists the type, brought to the reference region.
func listedReference(name string, list priceList, factors map[string]int64) (int64, bool) {
	if p, ok := list.onDemand[place{referenceRegion, name}]; ok {
		return int64(p), true
	}
	for _, r := range slices.Sorted(maps.Keys(factors)) {
		if p, ok := list.onDemand[place{r, name}]; ok {
			return int64(p) * 1000 / factors[r], true
		}
	}
	return 0, false
}

// onDemand returns a listed price, or an estimate as a negative number if the
// type is offered, or 0.
func (e estimator) onDemand(t catalog.Row, region string, isOffered bool) int64 {
	if p, ok := e.list.onDemand[place{region, t.Name}]; ok {
		return int64(p)
	}
	if !isOffered {
		return 0
	}
	return -times(e.reference[t.Name], e.factors[region])
}

// kind is a type name taken apart: r8gb.metal-24xl is category r, generation
// 8, variant gb.
type kind struct {
	category, variant, size string
	generation              int
}

var nameParts = regexp.MustCompile(`^(u-[0-9]+tb|[a-z]+)([0-9]+)([^.]*)\.(.+)$`)

func parse(name string) kind {
	m := nameParts.FindStringSubmatch(name)
	if m == nil {
		return kind{}
	}
	g, _ := strconv.Atoi(m[2])
	return kind{category: m[1], generation: g, variant: m[3], size: m[4]}
}

// name puts the parts together again.
func (k kind) name() string {
	return k.category + strconv.Itoa(k.generation) + k.variant + "." + k.size
}

// relative picks from the listed types the one that is nearest to t: of the
// category, with as much as possible of the variant (r8gb: gb, then g, then
// none), of the youngest generation that is not younger; then of the same size,
// else the nearest number of processors.
func relative(t catalog.Row, listed []catalog.Row) (catalog.Row, bool) {
	k := parse(t.Name)
	var best catalog.Row
	var bestRank []int
	for _, c := range listed {
		o := parse(c.Name)
		if o.category != k.category || o.generation > k.generation || !strings.HasPrefix(k.variant, o.variant) {
			continue
		}
		size := 0
		if o.size != k.size {
			size = 1 + int(1000*math.Abs(math.Log2(float64(t.VCPU)/float64(c.VCPU))))
		}
		rank := []int{len(k.variant) - len(o.variant), k.generation - o.generation, size}
		if bestRank == nil || slices.Compare(rank, bestRank) < 0 {
			best, bestRank = c, rank
		}
	}
	return best, bestRank != nil
}

// factor is what the price of from is multiplied by to give that of t.
func (e estimator) factor(t, from catalog.Row) float64 {
	f := scale(t, from)
	a, b := parse(from.Name), parse(t.Name)
	if a.generation != b.generation {
		f *= float64(e.generationMilli) / 1000
	}
	if a.variant != b.variant {
		f *= float64(e.variantMilli) / 1000
	}
	return f
}

// scale is how many times bigger t is than from: by accelerators if both have
// some, else by processors. The same size of another generation counts as
// equally big.
func scale(t, from catalog.Row) float64 {
	if parse(t.Name).size == parse(from.Name).size {
		return 1
	}
	if a, b := count(t), count(from); a > 0 && b > 0 && a != b {
		return float64(a) / float64(b)
	}
	return float64(t.VCPU) / float64(from.VCPU)
}

func count(t catalog.Row) (n int64) {
	for _, a := range slices.Concat(t.GPUs, t.Neuron) {
		n += a.Count
	}
	return n
}

func regionFactor(list priceList, region string) int64 {
	here := map[place]quantity.Price{}
	for at, p := range list.onDemand {
		if at.region == region {
			here[at] = p
		}
	}
	return medianMilli(here, list.onDemand, func(at place) place { return place{referenceRegion, at.instanceType} })
}

// relativeFactor is the median price, in the reference region, of a type over
// that of the type which differs from it by the change.
func relativeFactor(types []catalog.Row, list priceList, change func(*kind)) int64 {
	relatives := map[place]place{}
	prices := map[place]quantity.Price{}
	for _, t := range types {
		at := place{referenceRegion, t.Name}
		p, listed := list.onDemand[at]
		k := parse(t.Name)
		change(&k)
		if other := k.name(); listed && other != t.Name {
			relatives[at] = place{referenceRegion, other}
			prices[at] = p
		}
	}
	return medianMilli(prices, list.onDemand, func(at place) place { return relatives[at] })
}

// medianMilli is the median of a[at] / b[to(at)] in thousandths, over all
// entries of a that have a partner in b; 1000 if none has.
func medianMilli(a, b map[place]quantity.Price, to func(place) place) int64 {
	var ratios []int64
	for at, p := range a {
		if q, ok := b[to(at)]; ok && q > 0 {
			ratios = append(ratios, int64(math.Round(float64(p)*1000/float64(q))))
		}
	}
	if len(ratios) == 0 {
		return 1000
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}
