package awsapi

import "testing"

func TestListPrice(t *testing.T) {
	const entry = `{"product":{"attributes":{"instanceType":"m5.large"}},"terms":{"OnDemand":{"a":{"priceDimensions":{"b":{"pricePerUnit":{"USD":"0.0960000000"}}}}}}}`
	if name, price, err := listPrice(entry); name != "m5.large" || price != 96_000 || err != nil {
		t.Errorf("%s %d %v", name, price, err)
	}
	for _, none := range []string{
		`{"product":{"attributes":{"instanceType":"m5.large"}},"terms":{"OnDemand":{"a":{"priceDimensions":{"b":{"pricePerUnit":{"USD":"0.0"}}}}}}}`,
		`{"product":{"attributes":{"instanceType":"m5.large"}},"terms":{"OnDemand":{"a":{"priceDimensions":{"b":{"pricePerUnit":{"CNY":"1.0"}}}}}}}`,
		`{"product":{"attributes":{"instanceType":"m5.large"}}}`,
	} {
		if _, price, err := listPrice(none); price != 0 || err != nil {
			t.Errorf("%s: %d %v, want no price", none, price, err)
		}
	}
}

func TestPriceListRegion(t *testing.T) {
	for region, want := range map[string]string{"us-west-2": "us-east-1", "eu-west-1": "us-east-1", "ap-northeast-2": "ap-south-1"} {
		if got := priceListRegion(region); got != want {
			t.Errorf("%s: %s, want %s", region, got, want)
		}
	}
}
