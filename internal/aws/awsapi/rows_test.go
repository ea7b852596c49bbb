package awsapi_test

import (
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"karpenter/internal/aws/awsapi"
	"karpenter/internal/aws/catalog"
	"karpenter/sim/ec2"
)

// TestCatalogueSurvivesTheWire: what the simulation serves is what arrives,
// over all pages, field by field.
func TestCatalogueSurvivesTheWire(t *testing.T) {
	sim := ec2.New(ec2.Options{})
	server := httptest.NewServer(sim.Handler())
	t.Cleanup(server.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "simulated")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "simulated")
	api, err := awsapi.New(t.Context(), awsapi.Config{Region: sim.Region(), Endpoint: server.URL, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := api.InstanceTypes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	zones := catalog.ZoneOfferings("us-west-2")
	want := slices.DeleteFunc(catalog.Embedded(), func(r catalog.Row) bool { return zones[r.Name] == nil })
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("types (-embedded +arrived):\n%.3000s", diff)
	}
	offered, err := api.Offerings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(zones, offered); diff != "" {
		t.Errorf("zones (-embedded +arrived):\n%.3000s", diff)
	}
	counts := sim.CallCounts()
	if counts["DescribeInstanceTypes"] < 5 || counts["DescribeInstanceTypeOfferings"] < 2 {
		t.Errorf("calls %v, want several pages", counts)
	}
	testPrices(t, api)
}

func testPrices(t *testing.T, api *awsapi.API) {
	listed := catalog.EmbeddedPrices("us-west-2")
	onDemand, err := api.OnDemandPrices(t.Context())
	if err != nil || len(onDemand) < 500 {
		t.Fatalf("%d on-demand prices, %v", len(onDemand), err)
	}
	for name, price := range onDemand {
		if q, _ := listed.Quote(name, "us-west-2a", "on-demand"); q.Price != price {
			t.Errorf("%s costs %s, want %s", name, price, q.Price)
		}
	}
	spot, err := api.SpotPrices(t.Context(), time.Now())
	if err != nil || len(spot) < 1000 {
		t.Fatalf("%d spot prices, %v", len(spot), err)
	}
	for k, price := range spot {
		q, _ := listed.Quote(k.Type, k.Zone, "spot")
		if price < q.Price*9/10-100 || price > q.Price*11/10+100 {
			t.Errorf("%s in %s costs %s, want about %s", k.Type, k.Zone, price, q.Price)
		}
	}
}
