package aws_test

import (
	"testing"
	"time"

	"karpenter/internal/aws/catalog"
	"karpenter/internal/aws/launch"
	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
	"karpenter/sim/ec2"
)

// TestWideRequestStaysSmall: the order for sixty types in four zones must fit
// into an annotation many times over (Kubernetes allows 256 KiB for all).
func TestWideRequestStaysSmall(t *testing.T) {
	w := ec2.DefaultWorld("us-west-2", catalog.RegionZones("us-west-2"), 0)
	r := newRig(t, ec2.Options{World: &w})
	req := request("t1")
	req.Requirements = []label.Requirement{in(label.CapacityType, "spot", "on-demand"), in(label.Arch, "amd64", "arm64")}
	prepared := r.prepare(req)
	order, err := launch.Decode(prepared)
	if err != nil {
		t.Fatal(err)
	}
	if len(order.Types) != launch.MaxTypes || len(order.Fleet.Configs) != 2 {
		t.Errorf("%d types with %d images, want %d with 2", len(order.Types), len(order.Fleet.Configs), launch.MaxTypes)
	}
	if len(prepared) > 16<<10 {
		t.Errorf("%d types and %d offerings take %d bytes", len(order.Types), len(order.Fleet.Keys()), len(prepared))
	}
	if n := len(order.Fleet.Keys()); n > launch.MostOverrides {
		t.Errorf("%d offerings in one request", n)
	}
	t.Logf("%d types, %d offerings: %d bytes", len(order.Types), len(order.Fleet.Keys()), len(prepared))
	if got := r.launch("t1", prepared); got.CapacityType != label.Spot {
		t.Errorf("launched %s", got.CapacityType)
	}
}

// BenchmarkRefresh asks for everything and builds a catalogue of all instance
// types, over the wire; the time of the simulated EC2 is in it.
func BenchmarkRefresh(b *testing.B) {
	w := ec2.DefaultWorld("us-west-2", catalog.RegionZones("us-west-2"), 0)
	r := newRig(b, ec2.Options{World: &w})
	b.ReportAllocs()
	for b.Loop() {
		r.clock.pass(13 * time.Hour)
		if err := r.Refresh(b.Context()); err != nil {
			b.Fatal(err)
		}
		cat, err := r.Catalog(b.Context(), ref("default"), world.Kubelet{})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(cat.Types)), "types")
	}
}
