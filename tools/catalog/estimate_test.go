package main

import (
	"testing"

	"karpenter/internal/aws/catalog"
	"karpenter/internal/core/quantity"
)

func TestEstimates(t *testing.T) {
	size := func(name string, cpus int64) catalog.Row {
		return catalog.Row{Name: name, VCPU: cpus, Markets: []string{"on-demand", "spot"}}
	}
	f := catalog.File{Types: []catalog.Row{
		size("m6g.large", 2), size("m6gd.large", 2),
		size("m7g.large", 2), size("m7g.xlarge", 4),
		size("m8g.2xlarge", 8), size("m8g.large", 2), size("m8gd.large", 2), size("x1.large", 2),
	}}
	list := priceList{
		onDemand: map[place]quantity.Price{
			{"us-east-1", "m6g.large"}: 100, {"us-east-1", "m6gd.large"}: 120,
			{"us-east-1", "m7g.large"}: 110, {"us-east-1", "m7g.xlarge"}: 220,
			{"eu-west-1", "m6g.large"}: 200,
		},
		spot: map[place]quantity.Price{{"us-east-1", "m6g.large"}: 40},
	}
	zones := map[string]map[string][]string{}
	for _, region := range []string{"us-east-1", "eu-west-1"} {
		for _, typ := range f.Types {
			if zones[region] == nil {
				zones[region] = map[string][]string{}
			}
			zones[region][region+"a"] = append(zones[region][region+"a"], typ.Name)
		}
	}
	addRegions(&f, zones, list)

	if f.GenerationMilli != 1100 || f.VariantMilli != 1200 || f.SpotMilli != 400 || f.Regions[0].PriceMilli != 2000 {
		t.Errorf("factors: generation %d, variant %d, spot %d, region %d", f.GenerationMilli, f.VariantMilli, f.SpotMilli, f.Regions[0].PriceMilli)
	}
	us, eu := f.Regions[1], f.Regions[0]
	for i, want := range []struct{ us, eu, spot int64 }{
		{100, 200, 40},     // m6g.large: listed
		{120, -240, -48},   // m6gd.large: us-east-1 × 2
		{110, -220, -44},   // m7g.large
		{220, -440, -88},   // m7g.xlarge
		{-484, -968, -194}, // m8g.2xlarge: m7g.xlarge × 2 × 1.1
		{-121, -242, -49},  // m8g.large: m7g.large × 1.1
		{-132, -264, -53},  // m8gd.large: m6gd.large × 1.1, the nearest with a d
		{0, 0, 0},          // x1.large: no relative
	} {
		if us.OnDemand[i] != want.us || eu.OnDemand[i] != want.eu || us.Spot[i] != want.spot {
			t.Errorf("%s: us-east-1 %d, eu-west-1 %d, spot %d, want %v", f.Types[i].Name, us.OnDemand[i], eu.OnDemand[i], us.Spot[i], want)
		}
	}
}

func TestParse(t *testing.T) {
	for name, want := range map[string]kind{
		"r8gb.metal-24xl":  {"r", "gb", "metal-24xl", 8},
		"u-6tb1.112xlarge": {"u-6tb", "", "112xlarge", 1},
		"p6-b200.48xlarge": {"p", "-b200", "48xlarge", 6},
		"mac-m4.metal":     {},
	} {
		if got := parse(name); got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}
