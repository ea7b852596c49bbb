package ec2

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"karpenter/internal/aws/catalog"
	"karpenter/internal/core/quantity"
)

// DescribeSpotPriceHistoryInput asks for spot prices.
type DescribeSpotPriceHistoryInput struct {
	Common
	Page
	StartTime *time.Time
	EndTime   *time.Time
	Types     []string `query:"InstanceType"`
	Products  []string `query:"ProductDescription"`
	Zone      string   `query:"AvailabilityZone"`
	Filters   []Filter `query:"Filter"`
}

// SpotPrice is a price that holds since Since.
type SpotPrice struct {
	Zone    string    `xml:"availabilityZone"`
	ZoneID  string    `xml:"availabilityZoneId"`
	Type    string    `xml:"instanceType"`
	Product string    `xml:"productDescription"`
	Price   string    `xml:"spotPrice"`
	Since   time.Time `xml:"timestamp"`

	// Amount is Price as a number, for callers in process.
	Amount quantity.Price `xml:"-"`
}

// DescribeSpotPriceHistoryOutput lists spot prices.
type DescribeSpotPriceHistoryOutput struct {
	Response
	Prices    Set[SpotPrice] `xml:"spotPriceHistorySet"`
	NextToken string         `xml:"nextToken"`
}

// do lists the price that holds now, once per type and zone; spot prices do
// not change here unless the world is edited.
func (in *DescribeSpotPriceHistoryInput) do(c *Cloud) (*DescribeSpotPriceHistoryOutput, error) {
	const product = "Linux/UNIX"
	since := c.now().Truncate(time.Hour)
	var items []Offer
	if len(in.Products) == 0 || slices.ContainsFunc(in.Products, func(p string) bool { return p == product || p == product+" (Amazon VPC)" }) {
		for _, o := range c.sold {
			if o.Spot != 0 && (in.Zone == "" || in.Zone == o.Zone) && (len(in.Types) == 0 || slices.Contains(in.Types, o.Type)) {
				items = append(items, o)
			}
		}
	}
	part, next, err := listing[Offer]{
		items: items, key: Offer.key, inOrder: true, filters: in.Filters, bounds: bounds{least: 1, most: 1000, size: 1000},
		attributes: attributes[Offer]{
			"availability-zone":    one(func(o Offer) string { return o.Zone }),
			"availability-zone-id": one(func(o Offer) string { return zoneID(o.Zone) }),
			"instance-type":        one(func(o Offer) string { return o.Type }),
			"product-description":  one(func(Offer) string { return product }),
			"spot-price":           one(func(o Offer) string { return usd(o.Spot, 6) }),
		},
	}.page(in.Page)
	return &DescribeSpotPriceHistoryOutput{NextToken: next, Prices: each(part, func(o Offer) SpotPrice {
		return SpotPrice{Zone: o.Zone, ZoneID: zoneID(o.Zone), Type: o.Type, Product: product, Price: usd(o.Spot, 6), Since: since, Amount: o.Spot}
	})}, err
}

// usd writes a price with so many decimals.
func usd(p quantity.Price, decimals int) string {
	return strconv.FormatFloat(p.USD(), 'f', decimals, 64)
}

// GetProductsInput asks the price list.
type GetProductsInput struct {
	ServiceCode   string
	FormatVersion string
	Filters       []ProductFilter
	NextToken     string
	MaxResults    *int
}

// ProductFilter wants an attribute to have a value.
type ProductFilter struct{ Type, Field, Value string }

// ProductPrice is an entry of the price list in short.
type ProductPrice struct {
	Type  string
	Price quantity.Price
}

// GetProductsOutput is a part of the price list; every entry is a JSON
// document.
type GetProductsOutput struct {
	FormatVersion string
	PriceList     []string
	NextToken     string `json:",omitempty"`

	// Products is the same in short, for callers in process.
	Products []ProductPrice `json:"-"`
}

func (in *GetProductsInput) service() string { return "pricing" }

type product struct {
	row        *catalog.Row
	price      quantity.Price
	family     string
	attributes map[string]string
}

func (p product) id() string { return p.row.Name }

func (in *GetProductsInput) do(c *Cloud) (*GetProductsOutput, error) {
	if in.ServiceCode != "AmazonEC2" {
		return nil, errorf("InvalidParameterException", "The simulation has prices of AmazonEC2 only, not of %q.", in.ServiceCode)
	}
	var items []product
	for _, r := range pointers(c.world.Types) {
		if p, sold := c.product(r); sold {
			items = append(items, p)
		}
	}
	for _, f := range in.Filters {
		if f.Type != "TERM_MATCH" && f.Type != "EQUALS" {
			return nil, errorf("InvalidParameterException", "The simulation knows the filter type TERM_MATCH only, not %q.", f.Type)
		}
		items = slices.DeleteFunc(items, func(p product) bool {
			have, ok := p.attributes[strings.ToLower(f.Field)]
			return !ok || !strings.EqualFold(have, f.Value)
		})
	}
	part, next, err := page(items, Page{in.MaxResults, in.NextToken}, bounds{least: 1, most: 100, size: 100}, product.id)
	if err != nil {
		return nil, errorf("InvalidParameterException", "%v", err)
	}
	out := &GetProductsOutput{FormatVersion: "aws_v1", PriceList: []string{}, NextToken: next}
	for _, p := range part {
		out.PriceList = append(out.PriceList, p.document())
		out.Products = append(out.Products, ProductPrice{p.row.Name, p.price})
	}
	return out, nil
}

// product describes the on-demand offer of a type in the region: Linux, shared
// tenancy, or dedicated for bare metal as the price list has it.
func (c *Cloud) product(r *catalog.Row) (product, bool) {
	p := product{row: r, family: "Compute Instance"}
	tenancy := "Shared"
	if r.BareMetal {
		p.family, tenancy = "Compute Instance (bare metal)", "Dedicated"
	}
	for _, z := range c.opt.Zones {
		if o := c.offers[offerKey{r.Name, z}]; o.OnDemand > 0 {
			p.price = o.OnDemand
			break
		}
	}
	p.attributes = map[string]string{
		"servicecode": "AmazonEC2", "productfamily": p.family, "regioncode": c.opt.Region, "locationtype": "AWS Region",
		"instancetype": r.Name, "tenancy": tenancy, "operatingsystem": "Linux", "preinstalledsw": "NA", "capacitystatus": "Used",
		"marketoption": "OnDemand", "licensemodel": "No License required", "operation": "RunInstances",
		"vcpu": strconv.FormatInt(r.VCPU, 10), "memory": milli(r.MemoryMiB*1000/1024) + " GiB",
	}
	return p, p.price > 0
}

// attributeNames are the names of attributes in documents.
var attributeNames = map[string]string{
	"servicecode": "servicecode", "regioncode": "regionCode", "locationtype": "locationType", "instancetype": "instanceType",
	"operatingsystem": "operatingSystem", "preinstalledsw": "preInstalledSw", "capacitystatus": "capacitystatus",
	"marketoption": "marketoption", "licensemodel": "licenseModel", "tenancy": "tenancy", "operation": "operation", "vcpu": "vcpu", "memory": "memory",
}

func (p product) document() string {
	h := fnv.New64a()
	fmt.Fprint(h, p.attributes["regioncode"], p.row.Name)
	sku := fmt.Sprintf("%016X", h.Sum64())
	const term, rate = "JRTCKXETXF", "6YS6EN2CT7"
	named := map[string]string{}
	for k, v := range p.attributes {
		if n, ok := attributeNames[k]; ok {
			named[n] = v
		}
	}
	type m = map[string]any
	doc := m{
		"serviceCode": "AmazonEC2", "version": "20250528000000", "publicationDate": "2025-05-28T00:00:00Z",
		"product": m{"productFamily": p.family, "sku": sku, "attributes": named},
		"terms": m{"OnDemand": m{sku + "." + term: m{
			"sku": sku, "offerTermCode": term, "effectiveDate": "2025-05-01T00:00:00Z", "termAttributes": m{},
			"priceDimensions": m{sku + "." + term + "." + rate: m{
				"unit": "Hrs", "beginRange": "0", "endRange": "Inf", "appliesTo": []string{}, "rateCode": sku + "." + term + "." + rate,
				"description":  fmt.Sprintf("$%s per On Demand Linux %s Instance Hour", usd(p.price, 6), p.row.Name),
				"pricePerUnit": m{"USD": usd(p.price, 10)},
			}},
		}}},
	}
	b, _ := json.Marshal(doc) // strings and maps only
	return string(b)
}
