package catalog

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
)

// File is the form of embedded.json.gz, which the generator in tools/catalog
// writes. Lists named "by type" run parallel to Types.
type File struct {
	Sources []FileSource `json:"sources"`
	// PricesAsOf is the day of the listed prices, as YYYY-MM-DD.
	PricesAsOf string `json:"pricesAsOf"`
	// GenerationMilli is the factor, in thousandths, from the price of a type
	// to that of its successor; VariantMilli from a plainer type to a variant
	// (m8g to m8gn); SpotMilli from the on-demand to the spot price. They serve
	// types without a listed price.
	GenerationMilli int64 `json:"generationMilli"`
	VariantMilli    int64 `json:"variantMilli"`
	SpotMilli       int64 `json:"spotMilli"`
	// Types are sorted by name.
	Types []Row `json:"types"`
	// Basis tells, for each type that no price list has, how its price was
	// estimated.
	Basis map[string]FileBasis `json:"basis"`
	// Regions are sorted by name.
	Regions []FileRegion `json:"regions"`
	// BranchENIs holds the branch interfaces of types that Types does not
	// have.
	BranchENIs map[string]int64 `json:"branchENIs"`
}

// FileSource names one origin of the data.
type FileSource struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Licence string `json:"licence"`
	Has     string `json:"has"`
}

// FileBasis is the type whose price, times a number of thousandths, is an
// estimate.
type FileBasis struct {
	Type  string `json:"type"`
	Milli int64  `json:"milli"`
}

// FileRegion holds the zones and prices of one region.
type FileRegion struct {
	Name string `json:"name"`
	// PriceMilli is the median factor, in thousandths, from prices in
	// us-east-1 to prices here. It serves types without a price here.
	PriceMilli int64    `json:"priceMilli"`
	Zones      []string `json:"zones,omitempty"`
	// Offered has, by type, a bit for each zone that offers the type: bit i
	// for Zones[i].
	Offered []uint32 `json:"offered,omitempty"`
	// OnDemand and Spot are micro-dollars per hour, by type: 0 is unknown, a
	// negative number an estimate of that amount.
	OnDemand []int64 `json:"onDemand"`
	Spot     []int64 `json:"spot"`
}

// Encode writes the file, gzipped. Equal files give equal bytes.
func (f File) Encode(w io.Writer) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(z).Encode(f); err != nil {
		return err
	}
	return z.Close()
}

// decodeFile reads what Encode wrote and checks that its lists match.
func decodeFile(gz []byte) (File, error) {
	var f File
	z, err := gzip.NewReader(bytes.NewReader(gz))
	if err != nil {
		return f, err
	}
	if err := json.NewDecoder(z).Decode(&f); err != nil {
		return f, err
	}
	for _, r := range f.Regions {
		n := len(f.Types)
		if len(r.OnDemand) != n || len(r.Spot) != n || (len(r.Zones) > 0 && len(r.Offered) != n) {
			return f, fmt.Errorf("region %s: its lists do not have one entry for each of %d types", r.Name, n)
		}
	}
	return f, nil
}
