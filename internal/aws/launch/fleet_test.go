package launch

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"karpenter/internal/aws/class"
	"karpenter/internal/aws/family"
	"karpenter/internal/cloud"
	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
)

func workshopPlan() Plan {
	m6a := kind("m6a.xlarge", "amd64", 4000, "us-west-2a/on-demand/172800", "us-west-2b/on-demand/172800", "us-west-2d/on-demand/172800")
	m6g := kind("m6g.xlarge", "arm64", 4000, "us-west-2a/on-demand/154000")
	return Plan{
		Class: &class.Class{
			Ref: world.ClassRef{Kind: "AWSNodeTemplate", Name: "default"}, Family: family.AL2,
			Metadata: class.Metadata{Endpoint: "enabled", IPv6: class.AsCluster, HopLimit: 2, Tokens: "required"},
			Tags:     map[string]string{"NodeType": "karpenter-workshop", "team": "apps"},
		},
		Cluster: testCluster(),
		Request: &cloud.LaunchRequest{
			Claim: "test-abcde", Token: "0f0e", Pool: "test", PoolLabel: label.Provisioner,
			Labels: map[string]string{"env": "prod", "env-test": "true", "eks.amazonaws.com/nodegroup": "test"},
		},
		CapacityType: label.OnDemand,
		Candidates:   []Candidate{{&m6g, "ami-arm", m6g.Offerings}, {&m6a, "ami-amd", m6a.Offerings}},
		Subnets:      map[string]Subnet{"us-west-2a": {ID: "subnet-1"}, "us-west-2b": {ID: "subnet-2"}},
		Groups:       []string{"sg-2", "sg-1"},
		Profile:      "NodeProfile",
	}
}

func order(t *testing.T, p Plan) Order {
	t.Helper()
	o, err := p.Order()
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestOrder(t *testing.T) { goldenJSON(t, "order-workshop.json", order(t, workshopPlan())) }

func TestOrderOfSpotWithEverythingSet(t *testing.T) {
	p := workshopPlan()
	p.CapacityType = label.Spot
	c := *p.Class
	c.Context, p.Profile, c.DetailedMonitoring = "ctx", "Mine", true
	c.Metadata = class.Metadata{Tokens: "optional"}
	c.BlockDevices = []class.BlockDevice{{Device: "/dev/xvda", SizeGiB: 100, Type: "io1", IOPS: new(int64(1000)), Encrypted: new(false)}}
	c.Tags = map[string]string{"Name": "mine", ClaimTag: "theirs", TokenTag: "theirs", OwnedTag("workshop"): "shared"}
	p.Class = &c
	goldenJSON(t, "order-everything.json", order(t, p))
}

func TestTemplateOfTheUserIsUsedAsItIs(t *testing.T) {
	p := workshopPlan()
	c := *p.Class
	c.LaunchTemplate = "mine"
	p.Class = &c
	for i := range p.Candidates {
		p.Candidates[i].ImageID = ""
	}
	o := order(t, p)
	if len(o.Templates) != 0 || len(o.Fleet.Configs) != 1 || o.Fleet.Configs[0].Template != "mine" || len(o.Fleet.Configs[0].Overrides) != 3 {
		t.Errorf("order = %+v, want one config with template mine and three overrides", o)
	}
}

// TestNameFollowsContent: what does not change the machine does not change the
// name of its template, everything else does.
func TestNameFollowsContent(t *testing.T) {
	name := func(change func(p *Plan)) string {
		p := workshopPlan()
		p.Request.Taints = []world.Taint{{Key: "a", Effect: world.NoSchedule}, {Key: "b", Effect: world.NoSchedule}}
		c, cl := *p.Class, *p.Cluster
		p.Class, p.Cluster = &c, &cl
		change(&p)
		return order(t, p).Templates[0].Name
	}
	base := name(func(*Plan) {})
	if !strings.HasPrefix(base, "Karpenter-workshop-") {
		t.Errorf("name = %s", base)
	}
	for what, change := range map[string]func(p *Plan){
		"claim":           func(p *Plan) { p.Request.Claim, p.Request.Token = "other", "other" },
		"order of groups": func(p *Plan) { slices.Reverse(p.Groups) },
		"order of taints": func(p *Plan) { slices.Reverse(p.Request.Taints) },
		"instance types":  func(p *Plan) { p.Candidates = p.Candidates[:1] },
		"subnets":         func(p *Plan) { p.Subnets = map[string]Subnet{"us-west-2a": {ID: "other"}} },
	} {
		if got := name(change); got != base {
			t.Errorf("%s changed the name to %s", what, got)
		}
	}
	for what, change := range map[string]func(p *Plan){
		"pool":           func(p *Plan) { p.Request.Pool = "other" },
		"labels":         func(p *Plan) { p.Request.Labels = map[string]string{"x": "y"} },
		"taints":         func(p *Plan) { p.Request.Taints = p.Request.Taints[:1] },
		"groups":         func(p *Plan) { p.Groups = []string{"sg-1"} },
		"image":          func(p *Plan) { p.Candidates[0].ImageID = "ami-new" },
		"capacity type":  func(p *Plan) { p.CapacityType = label.Spot },
		"kubelet":        func(p *Plan) { p.Request.Kubelet.MaxPods = new(int32(9)) },
		"profile":        func(p *Plan) { p.Profile = "other" },
		"monitoring":     func(p *Plan) { p.Class.DetailedMonitoring = true },
		"metadata":       func(p *Plan) { p.Class.Metadata = class.Metadata{} },
		"devices":        func(p *Plan) { p.Class.BlockDevices = []class.BlockDevice{{Device: "/dev/xvda", SizeGiB: 30}} },
		"tags":           func(p *Plan) { p.Class.Tags = nil },
		"public address": func(p *Plan) { p.Class.PublicIP = new(true) },
		"disks":          func(p *Plan) { p.Class.RAID0 = true },
		"family":         func(p *Plan) { p.Class.Family = family.AL2023 },
		"endpoint":       func(p *Plan) { p.Cluster.Endpoint = "https://other" },
	} {
		if name(change) == base {
			t.Errorf("another %s must give another name", what)
		}
	}
}

func TestLongClusterNameFits(t *testing.T) {
	p := workshopPlan()
	cl := *p.Cluster
	cl.Name = strings.Repeat("c", 100)
	p.Cluster = &cl
	if n := len(order(t, p).Templates[0].Name); n > 128 {
		t.Errorf("name has %d characters, EC2 allows 128", n)
	}
}

func TestPreparedIsReadBackByteForByte(t *testing.T) {
	small := Order{Fleet: Fleet{CapacityType: "spot", Tags: []Tag{{"a", "b"}}}}
	large := order(t, workshopPlan())
	for name, o := range map[string]Order{"plain": small, "packed": large} {
		first, err := Encode(o)
		if err != nil {
			t.Fatal(err)
		}
		if packed := strings.HasPrefix(string(first), "gz:"); packed != (name == "packed") {
			t.Errorf("%s: text starts with %.10q", name, first)
		}
		read, err := Decode(first)
		if err != nil {
			t.Fatal(err)
		}
		second, err := Encode(read)
		if err != nil {
			t.Fatal(err)
		}
		if first != second {
			t.Errorf("%s: written again it is\n%s, not\n%s", name, second, first)
		}
		if diff := cmp.Diff(o, read); diff != "" {
			t.Errorf("%s (-written +read):\n%s", name, diff)
		}
	}
	for _, broken := range []cloud.Prepared{"", "gz:", "gz:AAAA", "{", "gz:H4sIAAAA"} {
		if _, err := Decode(broken); err == nil {
			t.Errorf("%q was read", broken)
		}
	}
}

func TestUserDataThatIsNotMIMEIsTheFaultOfTheClass(t *testing.T) {
	p := workshopPlan()
	c := *p.Class
	c.UserData = "#!/bin/sh"
	p.Class = &c
	_, err := p.Order()
	var bad *cloud.BadClassError
	if !errors.As(err, &bad) || bad.Field != "spec.userData" || bad.Class.Name != "default" {
		t.Errorf("err = %v, want a BadClassError about spec.userData", err)
	}
}

func TestNoSubnetLeftMeansNoCapacity(t *testing.T) {
	p := workshopPlan()
	p.Subnets = nil
	_, err := p.Order()
	var none *cloud.NoCapacityError
	if !errors.As(err, &none) {
		t.Errorf("err = %v, want a NoCapacityError", err)
	}
}

func TestRefusals(t *testing.T) {
	for code, want := range map[string][2]bool{ // marks the offering, another request helps
		"InsufficientInstanceCapacity":      {true, true},
		"UnfulfillableCapacity":             {true, true},
		"InsufficientFreeAddressesInSubnet": {false, true},
		TemplateGoneCode:                    {false, true},
		"UnauthorizedOperation":             {false, false},
	} {
		r := Refusal{Code: code}
		if got := [2]bool{r.NoCapacity(), r.OtherRequestHelps()}; got != want {
			t.Errorf("%s: %v, want %v", code, got, want)
		}
	}
	text := Describe([]Refusal{{Code: "B", Message: "two."}, {Code: "A", Message: "one"}, {Code: "B", Message: "two"}})
	if text != "A: one; B: two" {
		t.Errorf("text = %q", text)
	}
}
