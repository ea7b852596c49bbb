package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"karpenter/internal/core/quantity"
)

// priceModule is how the source code of ec2-instances-info calls itself.
const priceModule = "github.com/LeanerCloud/ec2-instances-info"

// priceList holds the prices of Linux machines with shared tenancy.
type priceList struct {
	version  string
	asOf     string // YYYY-MM-DD
	onDemand map[place]quantity.Price
	spot     map[place]quantity.Price // average over the zones
}

type place struct{ region, instanceType string }

// regionName leaves out local zones and wavelength zones, which the list
// treats as regions.
var regionName = regexp.MustCompile(`^[a-z]+(-gov)?-[a-z]+-[0-9]+$`)

// readPrices reads the data file of the module rather than calling it: its own
// reader leaves out the average spot price.
func readPrices(dir string) (priceList, error) {
	l := priceList{onDemand: map[place]quantity.Price{}, spot: map[place]quantity.Price{}}
	version, found, err := findModule(priceModule)
	if err != nil {
		return l, err
	}
	l.version = version
	if dir == "" {
		dir = found
	}
	// A version is v0.0.0-20250528091325-32acf84f42eb.
	_, stamp, _ := strings.Cut(version, "-")
	day, err := time.Parse("20060102", stamp[:min(8, len(stamp))])
	if err != nil {
		return l, fmt.Errorf("module version %q has no date: %w", version, err)
	}
	l.asOf = day.Format(time.DateOnly)

	var types []struct {
		InstanceType string `json:"instance_type"`
		Pricing      map[string]struct {
			Linux struct {
				OnDemand amount `json:"ondemand"`
				Spot     amount `json:"spot_avg"`
			} `json:"linux"`
		} `json:"pricing"`
	}
	data, err := os.ReadFile(filepath.Join(dir, "data", "instances.json"))
	if err != nil {
		return l, err
	}
	if err := json.Unmarshal(data, &types); err != nil {
		return l, err
	}
	for _, t := range types {
		for region, p := range t.Pricing {
			if !regionName.MatchString(region) {
				continue
			}
			at := place{region, t.InstanceType}
			if p.Linux.OnDemand > 0 {
				l.onDemand[at] = quantity.USDPerHour(float64(p.Linux.OnDemand))
			}
			if p.Linux.Spot > 0 {
				l.spot[at] = quantity.USDPerHour(float64(p.Linux.Spot))
			}
		}
	}
	return l, nil
}

// amount is dollars per hour, written as text. What is not a number counts as
// no price.
type amount float64

func (a *amount) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseFloat(strings.Trim(string(b), `"`), 64)
	if err == nil {
		*a = amount(v)
	}
	return nil
}

// findModule returns version and directory of a required module, after
// replacement, and downloads it if it is not here yet.
func findModule(path string) (version, dir string, err error) {
	cmd := exec.Command("go", "mod", "download", "-json", path)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", "", fmt.Errorf("go mod download %s: %w", path, err)
	}
	var m struct{ Version, Dir string }
	if err := json.Unmarshal(out, &m); err != nil {
		return "", "", fmt.Errorf("go mod download %s: %w", path, err)
	}
	return m.Version, m.Dir, nil
}
