package direct

import (
	"context"
	"slices"
	"strings"
	"time"

	"karpenter/internal/aws/catalog"
	"karpenter/internal/aws/class"
	"karpenter/internal/core/quantity"
	"karpenter/sim/ec2"
)

// InstanceTypes returns the facts about all types that a node can be, sorted
// by name.
func (a *API) InstanceTypes(ctx context.Context) ([]catalog.Row, error) {
	in := &ec2.DescribeInstanceTypesInput{
		Page: ec2.Page{MaxResults: limit(100)},
		Filters: filters([]class.Filter{
			{Name: "supported-virtualization-type", Values: []string{"hvm"}},
			{Name: "processor-info.supported-architecture", Values: []string{"x86_64", "arm64"}},
		}),
	}
	var rows []catalog.Row
	err := pages(func(token string) (string, error) {
		in.NextToken = token
		out, err := call(ctx, a, in)
		if err != nil {
			return "", err
		}
		for _, t := range out.Types {
			rows = append(rows, *t.Row)
		}
		return out.NextToken, nil
	})
	if err != nil {
		return nil, kind("asking EC2 for instance types", err)
	}
	slices.SortFunc(rows, func(a, b catalog.Row) int { return strings.Compare(a.Name, b.Name) })
	return rows, nil
}

// Offerings tells in which zones of the region each instance type is offered,
// sorted.
func (a *API) Offerings(ctx context.Context) (map[string][]string, error) {
	in := &ec2.DescribeInstanceTypeOfferingsInput{Page: ec2.Page{MaxResults: limit(1000)}, LocationType: "availability-zone"}
	zones := map[string][]string{}
	err := pages(func(token string) (string, error) {
		in.NextToken = token
		out, err := call(ctx, a, in)
		if err != nil {
			return "", err
		}
		for _, o := range out.Offerings {
			zones[o.Type] = append(zones[o.Type], o.Location)
		}
		return out.NextToken, nil
	})
	if err != nil {
		return nil, kind("asking EC2 where instance types are offered", err)
	}
	for _, z := range zones {
		slices.Sort(z)
	}
	return zones, nil
}

// OnDemandPrices returns the list prices of Linux machines in the region, by
// type. What arrived is returned also with an error.
func (a *API) OnDemandPrices(ctx context.Context) (map[string]quantity.Price, error) {
	prices := map[string]quantity.Price{}
	for _, kinds := range [][2]string{{"Shared", "Compute Instance"}, {"Dedicated", "Compute Instance (bare metal)"}} {
		in := &ec2.GetProductsInput{ServiceCode: "AmazonEC2", Filters: []ec2.ProductFilter{
			{Type: "TERM_MATCH", Field: "regionCode", Value: a.Region()},
			{Type: "TERM_MATCH", Field: "tenancy", Value: kinds[0]},
			{Type: "TERM_MATCH", Field: "productFamily", Value: kinds[1]},
		}}
		err := pages(func(token string) (string, error) {
			in.NextToken = token
			out, err := call(ctx, a, in)
			if err != nil {
				return "", err
			}
			for _, p := range out.Products {
				prices[p.Type] = p.Price
			}
			return out.NextToken, nil
		})
		if err != nil {
			return prices, kind("asking for the price list", err)
		}
	}
	return prices, nil
}

// SpotPrices returns what spot machines cost at the time, by type and zone.
func (a *API) SpotPrices(ctx context.Context, at time.Time) (map[catalog.TypeZone]quantity.Price, error) {
	in := &ec2.DescribeSpotPriceHistoryInput{
		Page: ec2.Page{MaxResults: limit(1000)}, StartTime: &at, Products: []string{"Linux/UNIX", "Linux/UNIX (Amazon VPC)"},
	}
	prices := map[catalog.TypeZone]quantity.Price{}
	err := pages(func(token string) (string, error) {
		in.NextToken = token
		out, err := call(ctx, a, in)
		if err != nil {
			return "", err
		}
		for _, p := range out.Prices {
			prices[catalog.TypeZone{Type: p.Type, Zone: p.Zone}] = p.Amount
		}
		return out.NextToken, nil
	})
	if err != nil {
		return nil, kind("asking EC2 for spot prices", err)
	}
	return prices, nil
}
