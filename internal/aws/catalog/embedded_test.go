package catalog

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
)

func TestEmbeddedRowsAreComplete(t *testing.T) {
	rows := Embedded()
	if len(rows) < 1200 {
		t.Errorf("%d rows", len(rows))
	}
	if !slices.IsSortedFunc(rows, func(a, b Row) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("rows are not sorted")
	}
	for _, r := range rows {
		if r.VCPU <= 0 || r.MemoryMiB <= 0 || r.MaxENIs <= 0 || r.IPv4PerENI <= 0 || len(r.Markets) == 0 {
			t.Errorf("incomplete: %+v", r)
		}
		if a := arch(r.Arch); a != "amd64" && a != "arm64" {
			t.Errorf("%s: architecture %v", r.Name, r.Arch)
		}
		if n := parseName(r.Name); n.category == "" || n.generation == "" {
			t.Errorf("%s: name %+v", r.Name, n)
		}
		for _, g := range slices.Concat(r.GPUs, r.Neuron) {
			if g.Count <= 0 || g.Name == "" {
				t.Errorf("%s: device %+v", r.Name, g)
			}
		}
	}
}

func TestEveryOfferedTypeHasAPrice(t *testing.T) {
	for _, region := range Regions() {
		prices := EmbeddedPrices(region)
		offered := ZoneOfferings(region)
		if len(offered) < 200 || len(RegionZones(region)) < 2 {
			t.Errorf("%s: %d types, zones %v", region, len(offered), RegionZones(region))
		}
		for _, r := range Embedded() {
			for _, zone := range offered[r.Name] {
				od, ok := prices.Quote(r.Name, zone, label.OnDemand)
				if !ok || od.Price <= 0 {
					t.Errorf("%s: no on-demand price for %s", region, r.Name)
				}
				spot, ok := prices.Quote(r.Name, zone, label.Spot)
				if ok != slices.Contains(r.Markets, label.Spot) || spot.Price > od.Price {
					t.Errorf("%s: spot price of %s: %v, on-demand %v", region, r.Name, spot, od)
				}
			}
		}
	}
}

func TestKnownPricesAndZones(t *testing.T) {
	if got := strings.Join(RegionZones("us-west-2"), " "); got != "us-west-2a us-west-2b us-west-2c us-west-2d" {
		t.Errorf("zones %s", got)
	}
	if RegionZones("nowhere-1") != nil || ZoneOfferings("nowhere-1") != nil {
		t.Error("unknown region has zones")
	}
	for _, c := range []struct {
		region, typ, market string
		price               quantity.Price
		says                string
	}{
		{"us-west-2", "m6a.xlarge", label.OnDemand, 172_800, "listed 2025-05-28"},
		{"us-west-2", "m6a.xlarge", label.Spot, 72_576, "listed 2025-05-28"},
		{"us-west-2", "m8i.xlarge", label.OnDemand, 214_906, "estimate: 1.066 × m7i.xlarge, 2025-05-28"},
		{"us-west-2", "m8i.xlarge", label.Spot, 73_069, "estimate: 0.340 × on-demand price, 2025-05-28"},
		{"nowhere-1", "m6a.xlarge", label.OnDemand, 172_800, "estimate: 1.000 × us-east-1, 2025-05-28"},
	} {
		q, ok := EmbeddedPrices(c.region).Quote(c.typ, "", c.market)
		if !ok || q.Price != c.price || q.String() != c.says {
			t.Errorf("%s %s %s: got %v %q, want %v %q", c.region, c.typ, c.market, q.Price, q, c.price, c.says)
		}
	}
	q, _ := EmbeddedPrices("us-west-2").Quote("m6a.xlarge", "us-west-2a", label.OnDemand)
	if age := q.Age(time.Date(2025, 5, 30, 0, 0, 0, 0, time.UTC)); age != 48*time.Hour {
		t.Errorf("age %v", age)
	}
}

func TestBranchENIs(t *testing.T) {
	for name, want := range map[string]int64{"m5.xlarge": 18, "m6a.xlarge": 18, "t3.large": 0, "x99.large": 0} {
		if got := BranchENIs(name); got != want {
			t.Errorf("%s: got %d, want %d", name, got, want)
		}
	}
}

func TestLivePricesReplaceEmbeddedOnes(t *testing.T) {
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	old := EmbeddedPrices("us-west-2")
	fresh := old.WithOnDemand(map[string]quantity.Price{"m5.large": 99_000, "m5.xlarge": 0}, now)
	if q, _ := fresh.Quote("m5.large", "", label.OnDemand); q.Price != 99_000 || q.String() != "live 2026-01-02" {
		t.Errorf("m5.large %v %v", q.Price, q)
	}
	for _, typ := range []string{"m5.xlarge", "m5.2xlarge"} {
		if q, ok := fresh.Quote(typ, "", label.OnDemand); !ok || q.Source != Listed {
			t.Errorf("%s: %v; a partial answer must not remove or zero prices", typ, q)
		}
	}
	if q, _ := old.Quote("m5.large", "", label.OnDemand); q.Price != 96_000 {
		t.Errorf("the old prices changed: %v", q)
	}

	if _, ok := fresh.WithSpot(nil, now).Quote("m5.large", "us-west-2a", label.Spot); !ok {
		t.Error("an empty answer removed the spot price")
	}
	first := fresh.WithSpot(map[TypeZone]quantity.Price{{"m5.large", "us-west-2a"}: 40_000}, now)
	second := first.WithSpot(map[TypeZone]quantity.Price{{"m5.large", "us-west-2b"}: 41_000}, now.Add(time.Hour))
	for zone, want := range map[string]quantity.Price{"us-west-2a": 40_000, "us-west-2b": 41_000, "us-west-2c": 0} {
		if q, ok := second.Quote("m5.large", zone, label.Spot); q.Price != want || ok != (want != 0) {
			t.Errorf("spot in %s: %v %v, want %v", zone, q.Price, ok, want)
		}
	}
	if _, ok := old.Quote("m5.large", "us-west-2a", "reserved"); ok {
		t.Error("price for an unknown market")
	}
}

func TestFileSurvivesEncoding(t *testing.T) {
	f, err := decodeFile(embeddedGzip)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := f.Encode(&b); err != nil {
		t.Fatal(err)
	}
	again, err := decodeFile(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(f, again); d != "" {
		t.Error(d)
	}
	if b.Len() > 1<<20 {
		t.Errorf("%d bytes", b.Len())
	}
}

func TestBrokenFilesAreErrors(t *testing.T) {
	var uneven bytes.Buffer
	if err := (File{Types: []Row{{Name: "a.b"}}, Regions: []FileRegion{{Name: "r"}}}).Encode(&uneven); err != nil {
		t.Fatal(err)
	}
	for what, data := range map[string][]byte{
		"empty": nil, "cut": embeddedGzip[:1000], "not gzip": []byte("{}"), "uneven": uneven.Bytes(),
	} {
		if _, err := decodeFile(data); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}
