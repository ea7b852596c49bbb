package launch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"karpenter/internal/cloud"
	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

// kind makes an instance type with offerings written as "zone/market/price",
// price in micro-dollars; a "!" in front means refused.
func kind(name, arch string, milliCPU int64, offerings ...string) world.InstanceType {
	family, size, _ := strings.Cut(name, ".")
	r := quantity.Resources{MilliCPU: milliCPU, MemoryBytes: 8 << 30, Pods: 29}
	t := world.InstanceType{Name: name, Capacity: r, Allocatable: r, Labels: map[string]string{
		label.InstanceType: name, label.Arch: arch, label.OS: "linux", label.Region: "us-west-2",
		"karpenter.k8s.aws/instance-family": family, sizeLabel: size,
	}}
	for _, o := range offerings {
		var price int64
		part := strings.Split(strings.TrimPrefix(o, "!"), "/")
		if _, err := fmt.Sscan(part[2], &price); err != nil {
			panic(err)
		}
		t.Offerings = append(t.Offerings, world.Offering{
			Zone: part[0], CapacityType: part[1], Price: quantity.Price(price), Available: !strings.HasPrefix(o, "!"),
		})
	}
	return t
}

func with(t world.InstanceType, resource string, n int64) world.InstanceType {
	t.Capacity, t.Allocatable = t.Capacity.With(resource, n), t.Allocatable.With(resource, n)
	return t
}

func in(key string, values ...string) label.Requirement {
	return label.Requirement{Key: key, Op: label.In, Values: values}
}

// chosen writes the outcome as "market: type@zone,zone type@zone".
func chosen(types []world.InstanceType, req cloud.LaunchRequest) string {
	candidates := Fitting(types, &req)
	if len(candidates) == 0 {
		return NothingFits(types, &req).Error()
	}
	market, list := Choose(candidates, &cloud.LaunchRequest{}, false)
	out := market + ":"
	for _, c := range list {
		var zones []string
		for _, o := range c.Offerings {
			zones = append(zones, o.Zone)
		}
		out += " " + c.Type.Name + "@" + strings.Join(zones, ",")
	}
	return out
}

func TestChoose(t *testing.T) {
	both := []label.Requirement{in(label.CapacityType, "spot", "on-demand")}
	large := kind("m5.large", "amd64", 2000, "a/on-demand/96", "b/on-demand/96", "a/spot/40", "b/spot/38")
	xlarge := kind("m5.xlarge", "amd64", 4000, "a/on-demand/192", "a/spot/39")
	arm := kind("m6g.large", "arm64", 2000, "a/on-demand/77")
	metal := kind("m5.metal", "amd64", 96000, "a/on-demand/4608")
	gpu := with(kind("g4dn.xlarge", "amd64", 4000, "a/on-demand/10"), nvidiaGPU, 1)
	all := []world.InstanceType{gpu, large, metal, xlarge, arm}
	small := quantity.Resources{MilliCPU: 1000}

	for name, tt := range map[string]struct {
		types []world.InstanceType
		req   cloud.LaunchRequest
		want  string
	}{
		"spot first, cheapest zone first": {all, cloud.LaunchRequest{Requirements: both, Requests: small}, "spot: m5.large@b,a m5.xlarge@a"},
		"on-demand only, no metal, no accelerator": {
			all, cloud.LaunchRequest{Requirements: []label.Requirement{in(label.CapacityType, "on-demand"), in(label.Arch, "amd64")}, Requests: small},
			"on-demand: m5.large@a,b m5.xlarge@a",
		},
		"metal if asked for":      {all, cloud.LaunchRequest{Requirements: []label.Requirement{in(sizeLabel, "metal")}}, "on-demand: m5.metal@a"},
		"accelerator if it needs": {all, cloud.LaunchRequest{Requests: small.With(nvidiaGPU, 1)}, "on-demand: g4dn.xlarge@a"},
		"labels are requirements": {all, cloud.LaunchRequest{Labels: map[string]string{label.Arch: "arm64", "team": "x"}}, "on-demand: m6g.large@a"},
		"custom keys were decided by the planner": {
			all, cloud.LaunchRequest{PoolLabel: label.Provisioner, Pool: "p", Requests: small, Requirements: []label.Requirement{
				in("team", "x"), in(label.Provisioner, "p"), in(label.InstanceType, "m5.large"), {Key: "beta.kubernetes.io/arch", Op: label.NotIn, Values: []string{"arm64"}}, in(label.CapacityType, "on-demand"),
			}},
			"on-demand: m5.large@a,b",
		},
		"zone": {all, cloud.LaunchRequest{Requirements: append([]label.Requirement{in(label.Zone, "b")}, both...)}, "spot: m5.large@b"},
		"refused spot falls back to on-demand": {
			[]world.InstanceType{kind("m5.large", "amd64", 2000, "a/on-demand/96", "!a/spot/40", "!b/spot/38")},
			cloud.LaunchRequest{Requirements: both}, "on-demand: m5.large@a",
		},
		"nothing is large enough": {
			all, cloud.LaunchRequest{Requests: quantity.Resources{MilliCPU: 100_000}},
			"no capacity: none of 5 instance types offers cpu 100 with the labels asked for",
		},
		"all that fits was refused": {
			[]world.InstanceType{kind("m5.large", "amd64", 2000, "!a/spot/40"), kind("m5.xlarge", "amd64", 4000, "b/spot/50")},
			cloud.LaunchRequest{Requirements: []label.Requirement{in(label.Zone, "a")}},
			"no capacity: every offering that fits was refused a short while ago (refused: spot:m5.large:a)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := chosen(tt.types, tt.req); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestTheSixtyCheapestAreAskedFor(t *testing.T) {
	var types []world.InstanceType
	for i := range 100 {
		types = append(types, kind(fmt.Sprintf("m%02d.large", i), "amd64", 2000, fmt.Sprintf("a/on-demand/%d", 1000-i)))
	}
	_, got := Choose(Fitting(types, &cloud.LaunchRequest{}), &cloud.LaunchRequest{}, false)
	if len(got) != 60 || got[0].Type.Name != "m99.large" || got[59].Type.Name != "m40.large" {
		t.Errorf("%d types, %s to %s; want 60, m99.large to m40.large", len(got), got[0].Type.Name, got[len(got)-1].Type.Name)
	}
}

func TestVarietyThatIsAskedFor(t *testing.T) {
	var types []world.InstanceType
	for i := range 100 {
		types = append(types, kind(fmt.Sprintf("m%02d.large", i), "amd64", 2000, fmt.Sprintf("a/on-demand/%d", i+1)))
	}
	for i := range 3 { // dear ones of other families, one of them special
		types = append(types, kind(fmt.Sprintf("c%d.large", i), "amd64", 2000, fmt.Sprintf("a/on-demand/%d", 1000+i)))
	}
	types = append(types, with(kind("g5.large", "amd64", 2000, "a/on-demand/2000"), nvidiaGPU, 1))
	for i := range types {
		types[i].Labels["karpenter.k8s.aws/instance-category"] = types[i].Name[:1]
	}
	for least, want := range map[int]int{0: 1, 2: 2, 3: 3, 9: 3} {
		req := &cloud.LaunchRequest{Requirements: []label.Requirement{{Key: "karpenter.k8s.aws/instance-category", Op: label.Exists, MinValues: least}}}
		_, got := Choose(Fitting(types, req), req, true)
		categories := map[string]bool{}
		for _, c := range got {
			categories[c.Type.Name[:1]] = true
		}
		if len(got) != MaxTypes || len(categories) != want || got[0].Type.Name != "m00.large" {
			t.Errorf("at least %d categories: %d of %d types, first %s; want %d", least, len(categories), len(got), got[0].Type.Name, want)
		}
	}
}

// TestSpotDearerThanOnDemand: by the newer rules nobody pays more for a machine
// that may be taken away.
func TestSpotDearerThanOnDemand(t *testing.T) {
	types := []world.InstanceType{
		kind("m5.large", "amd64", 2000, "a/on-demand/100", "a/spot/90", "b/spot/120"),
		kind("m6.large", "amd64", 2000, "a/on-demand/150", "a/spot/110"),
	}
	offered := func(newer bool) (string, int) {
		market, got := Choose(Fitting(types, &cloud.LaunchRequest{}), &cloud.LaunchRequest{}, newer)
		n := 0
		for _, c := range got {
			n += len(c.Offerings)
		}
		return market, n
	}
	if market, n := offered(false); market != label.Spot || n != 3 {
		t.Errorf("older rules: %d offerings of %s", n, market)
	}
	if market, n := offered(true); market != label.Spot || n != 1 {
		t.Errorf("newer rules: %d offerings of %s, want the one that costs less than the cheapest on demand", n, market)
	}
	types[0].Offerings[1].Price = 101
	if market, n := offered(true); market != label.OnDemand || n != 2 {
		t.Errorf("all of spot is dearer: %d offerings of %s", n, market)
	}
}

func TestBestSubnets(t *testing.T) {
	got := BestSubnets([]Subnet{{"s1", "a", "", 10}, {"s2", "a", "", 20}, {"s4", "b", "", 5}, {"s3", "b", "", 5}})
	want := map[string]Subnet{"a": {"s2", "a", "", 20}, "b": {"s3", "b", "", 5}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("subnets (-want +got):\n%s", diff)
	}
}

func TestImages(t *testing.T) {
	amd, arm := kind("m5.large", "amd64", 1), kind("m6g.large", "arm64", 1)
	images := []Image{
		{ID: "old", Arch: "x86_64", Created: "2029-01-01T00:00:00.000Z"},
		{ID: "metal-only", Arch: "x86_64", Created: "2031-01-01T00:00:00.000Z", Tags: map[string]string{sizeLabel: "metal", "Name": "x"}},
		{ID: "new", Arch: "x86_64", Created: "2030-01-01T00:00:00.000Z", Tags: map[string]string{"Name": "x"}},
		{ID: "arm", Arch: "arm64", Created: "2028-01-01T00:00:00.000Z", DeprecatedAt: "2029-01-01T00:00:00.000Z"},
		{ID: "newer but deprecated", Arch: "x86_64", Created: "2030-02-01T00:00:00.000Z", DeprecatedAt: "2030-03-01T00:00:00.000Z"},
	}
	images = Usable(images, "2032-01-01T00:00:00.000Z")
	if len(images) != 3 {
		t.Errorf("of the images for the same types only the newest is of use: %+v", images)
	}
	metal := kind("m5.metal", "amd64", 1)
	for _, tt := range []struct {
		t    world.InstanceType
		want string
	}{{amd, "new"}, {arm, "arm"}, {metal, "metal-only"}} {
		if got, _ := MatchImage(images, &tt.t); got != tt.want {
			t.Errorf("%s boots %q, want %q", tt.t.Name, got, tt.want)
		}
	}
	if got, ok := MatchImage(images[:2], &arm); ok {
		t.Errorf("arm64 boots %q, want nothing", got)
	}
}

// TestRequestIsKeptSmall: what is too much for one request goes from the dear end,
// and every type keeps a place where it can be bought.
func TestRequestIsKeptSmall(t *testing.T) {
	market := func(prices ...int) (out []string) {
		for i, price := range prices {
			out = append(out, fmt.Sprintf("z%d/on-demand/%d", i, price))
		}
		return out
	}
	types := []world.InstanceType{
		kind("a.large", "amd64", 2000, market(1, 4, 6)...), kind("b.large", "amd64", 2000, market(2, 5, 6)...), kind("c.large", "amd64", 2000, market(9, 9, 9)...),
	}
	places := map[string]Subnet{"z0": {ID: "s0"}, "z1": {ID: "s1"}, "z2": {ID: "s2"}}
	few := func(most int, places map[string]Subnet) string {
		_, list := Choose(Fitting(types, &cloud.LaunchRequest{}), &cloud.LaunchRequest{}, false)
		var out []string
		for _, c := range fewer(list, places, most) {
			for _, o := range c.Offerings {
				out = append(out, c.Type.Name[:1]+o.Zone[1:])
			}
		}
		return strings.Join(out, " ")
	}
	for most, want := range map[int]string{
		9: "a0 a1 a2 b0 b1 b2 c0 c1 c2", 8: "a0 a1 a2 b0 b1 b2 c0 c1", 6: "a0 a1 a2 b0 b1 c0", 5: "a0 a1 b0 b1 c0", 4: "a0 a1 b0 c0", 3: "a0 b0 c0", 0: "a0 b0 c0",
	} {
		if got := few(most, places); got != want {
			t.Errorf("at most %d: %s, want %s", most, got, want)
		}
	}
	delete(places, "z0")
	if got, want := few(9, places), "a1 a2 b1 b2 c1 c2"; got != want {
		t.Errorf("a zone without a subnet: %s, want %s", got, want)
	}
}
