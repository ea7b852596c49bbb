package awsapi

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	pricingtypes "github.com/aws/aws-sdk-go-v2/service/pricing/types"

	"karpenter/internal/aws/catalog"
	"karpenter/internal/core/quantity"
)

// priceListRegion returns the region whose price list serves a region: it has
// endpoints in a few only.
func priceListRegion(region string) string {
	if strings.HasPrefix(region, "ap-") {
		return "ap-south-1"
	}
	return "us-east-1"
}

// OnDemandPrices returns the list prices of Linux machines in the region, by
// type. What arrived is returned also with an error.
func (a *API) OnDemandPrices(ctx context.Context) (map[string]quantity.Price, error) {
	prices := map[string]quantity.Price{}
	for _, kinds := range [][2]string{{"Shared", "Compute Instance"}, {"Dedicated", "Compute Instance (bare metal)"}} {
		if err := a.listPrices(ctx, kinds[0], kinds[1], prices); err != nil {
			return prices, err
		}
	}
	return prices, nil
}

func (a *API) listPrices(ctx context.Context, tenancy, family string, into map[string]quantity.Price) error {
	match := [][2]string{
		{"regionCode", a.region}, {"serviceCode", "AmazonEC2"}, {"preInstalledSw", "NA"}, {"operatingSystem", "Linux"},
		{"capacitystatus", "Used"}, {"marketoption", "OnDemand"}, {"tenancy", tenancy}, {"productFamily", family},
	}
	in := &pricing.GetProductsInput{ServiceCode: aws.String("AmazonEC2")}
	for _, m := range match {
		in.Filters = append(in.Filters, pricingtypes.Filter{Type: pricingtypes.FilterTypeTermMatch, Field: aws.String(m[0]), Value: aws.String(m[1])})
	}
	pages := pricing.NewGetProductsPaginator(a.pricing, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return kind("asking for the price list", err)
		}
		for _, text := range page.PriceList {
			name, price, err := listPrice(text)
			if err != nil {
				return fmt.Errorf("reading the price list: %w", err)
			}
			if price > 0 {
				into[name] = price
			}
		}
	}
	return nil
}

// listPrice reads one entry of the price list. An entry without a price in
// dollars has price 0.
func listPrice(text string) (string, quantity.Price, error) {
	var entry struct {
		Product struct {
			Attributes struct {
				InstanceType string `json:"instanceType"`
			} `json:"attributes"`
		} `json:"product"`
		Terms struct {
			OnDemand map[string]struct {
				PriceDimensions map[string]struct {
					PricePerUnit struct {
						USD string `json:"USD"`
					} `json:"pricePerUnit"`
				} `json:"priceDimensions"`
			} `json:"OnDemand"`
		} `json:"terms"`
	}
	if err := json.Unmarshal([]byte(text), &entry); err != nil {
		return "", 0, err
	}
	var price quantity.Price
	for _, term := range entry.Terms.OnDemand {
		for _, d := range term.PriceDimensions {
			if usd, err := strconv.ParseFloat(d.PricePerUnit.USD, 64); err == nil && usd > 0 {
				price = max(price, quantity.USDPerHour(usd))
			}
		}
	}
	return entry.Product.Attributes.InstanceType, price, nil
}

// SpotPrices returns what spot machines cost at the time, by type and zone.
func (a *API) SpotPrices(ctx context.Context, at time.Time) (map[catalog.TypeZone]quantity.Price, error) {
	pages := ec2.NewDescribeSpotPriceHistoryPaginator(a.ec2, &ec2.DescribeSpotPriceHistoryInput{
		ProductDescriptions: []string{"Linux/UNIX", "Linux/UNIX (Amazon VPC)"},
		StartTime:           aws.Time(at),
		MaxResults:          aws.Int32(1000),
	})
	prices := map[catalog.TypeZone]quantity.Price{}
	newest := map[catalog.TypeZone]time.Time{}
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, kind("asking EC2 for spot prices", err)
		}
		for _, s := range page.SpotPriceHistory {
			key := catalog.TypeZone{Type: string(s.InstanceType), Zone: aws.ToString(s.AvailabilityZone)}
			price, ok := spotPrice(s)
			since := aws.ToTime(s.Timestamp)
			if !ok || since.Before(newest[key]) {
				continue
			}
			if since.Equal(newest[key]) {
				price = max(price, prices[key])
			}
			prices[key], newest[key] = price, since
		}
	}
	return prices, nil
}

func spotPrice(s types.SpotPrice) (quantity.Price, bool) {
	usd, err := strconv.ParseFloat(aws.ToString(s.SpotPrice), 64)
	return quantity.USDPerHour(usd), err == nil && usd > 0
}
