// Command catalog writes the instance types, zones and prices that are
// embedded in internal/aws/catalog. It joins three public sources, named in the
// NOTICE file at the root of the repository:
//
//   - the Python package moto: DescribeInstanceTypes answers, and the zones in
//     which types are offered;
//   - the Go module amazon-vpc-resource-controller-k8s: branch network
//     interfaces;
//   - the Go module ec2-instances-info: on-demand and spot prices.
//
// It is run by hand when one of them has news, and its output is committed:
//
//	pip install moto
//	cd tools/catalog
//	go run . -moto "$(python -c 'import moto; print(moto.__path__[0])')"
//
// The same sources give the same bytes.
package main

import (
	"flag"
	"fmt"
	"os"

	"karpenter/internal/aws/catalog"
)

func main() {
	motoDir := flag.String("moto", "", "directory of the installed Python package moto (required)")
	pricesDir := flag.String("prices", "", "directory of the module ec2-instances-info (default: as downloaded by go)")
	out := flag.String("out", "../../internal/aws/catalog/embedded.json.gz", "file to write")
	flag.Parse()
	if *motoDir == "" {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*motoDir, *pricesDir, *out); err != nil {
		fmt.Fprintln(os.Stderr, "catalog:", err)
		os.Exit(1)
	}
}

func run(motoDir, pricesDir, out string) error {
	facts, err := readMoto(motoDir)
	if err != nil {
		return fmt.Errorf("reading moto: %w", err)
	}
	list, err := readPrices(pricesDir)
	if err != nil {
		return fmt.Errorf("reading prices: %w", err)
	}
	f := catalog.File{
		Sources: []catalog.FileSource{
			{Name: "moto", Version: facts.version, Licence: "Apache-2.0", Has: "instance types and their zones"},
			{Name: "amazon-vpc-resource-controller-k8s", Version: limitsVersion(), Licence: "Apache-2.0", Has: "branch network interfaces"},
			{Name: "ec2-instances-info", Version: list.version, Licence: "MIT", Has: "on-demand and spot prices"},
		},
		PricesAsOf: list.asOf,
		Types:      facts.rows,
	}
	f.BranchENIs = addBranchENIs(f.Types)
	addRegions(&f, facts.zones, list)
	report(f)

	w, err := os.Create(out)
	if err != nil {
		return err
	}
	if err := f.Encode(w); err != nil {
		return err
	}
	return w.Close()
}

// report prints what the file holds, for the one who commits it.
func report(f catalog.File) {
	fmt.Printf("%d types; prices of %s; generation × %.3f, variant × %.3f, spot × %.3f\n", len(f.Types), f.PricesAsOf,
		float64(f.GenerationMilli)/1000, float64(f.VariantMilli)/1000, float64(f.SpotMilli)/1000)
	for _, r := range f.Regions {
		var listed, estimated, unknown int
		for i, p := range r.OnDemand {
			switch {
			case p > 0:
				listed++
			case p < 0:
				estimated++
			case len(r.Zones) > 0 && r.Offered[i] != 0:
				unknown++
			}
		}
		fmt.Printf("%-16s × %.3f  %d zones, on-demand prices: %4d listed, %3d estimated, %3d unknown\n",
			r.Name, float64(r.PriceMilli)/1000, len(r.Zones), listed, estimated, unknown)
	}
}
