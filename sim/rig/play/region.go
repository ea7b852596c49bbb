package play

import (
	"fmt"
	"slices"
	"strings"

	"karpenter/internal/aws/catalog"
	"karpenter/internal/core/quantity"
	"karpenter/internal/kube/convert"
	"karpenter/internal/scenario/cases"
	"karpenter/sim/ec2"
)

const (
	regionName  = "case-region"
	network     = "vpc-case"
	kubeVersion = "1.33"
	// all is a tag on everything that the class "std" selects.
	all = "cases/std"
	// account owns the images.
	account = "123456789012"
)

// regionOf makes the region of a case.
func (p *player) regionOf() ec2.World {
	c := &p.c.Cloud
	w := ec2.World{VPCs: []ec2.VPC{{ID: network, CIDR: "10.0.0.0/8"}}, Clusters: []ec2.Cluster{{Name: p.cluster(), Version: kubeVersion}}}
	w.Images, w.Parameters = ec2.StandardImages()
	for i := range c.InstanceTypes {
		t := &c.InstanceTypes[i]
		w.Types = append(w.Types, row(t, c.Zones))
		for _, zone := range c.Zones {
			o := ec2.Offer{Type: t.Name, Zone: zone}
			if usd, ok := t.USD("on-demand", zone); ok {
				o.OnDemand = price(usd)
			}
			if usd, ok := t.USD("spot", zone); ok {
				o.Spot = price(usd)
			}
			if o.OnDemand > 0 || o.Spot > 0 {
				w.Offers = append(w.Offers, o)
			}
		}
	}
	p.places(&w)
	if p.sold != nil {
		w.Types, w.Offers = p.sold.Types, p.sold.Offers
	}
	p.images(&w)
	return w
}

func price(usd float64) quantity.Price { return quantity.Price(usd*1e6 + 0.5) }

// row is what EC2 says about a type of a case: enough to be believed, and
// beside it what the case says.
func row(t *cases.InstanceType, zones []string) catalog.Row {
	r := catalog.Row{Name: t.Name, Arch: []string{"x86_64"}, Hypervisor: "nitro", MaxENIs: 8, IPv4PerENI: 30, EBSVolumes: 28,
		NetworkMbps: 10_000, CPUManufacturer: "intel"}
	if t.Arch == "arm64" {
		r.Arch = []string{"arm64"}
	}
	capacity := convert.Resources(t.Capacity, false)
	r.VCPU, r.MemoryMiB = (capacity.MilliCPU+999)/1000, capacity.MemoryBytes>>20
	if n := capacity.Get("nvidia.com/gpu"); n > 0 {
		r.GPUs = []catalog.Accelerator{{Manufacturer: "NVIDIA", Name: "T4", Count: n, MemoryMiB: 16384}}
	}
	r.Stated = &catalog.Stated{
		Capacity: capacity.Amounts(), Allocatable: convert.Resources(t.Counted(), false).Amounts(), Labels: t.Labels,
		Prices: map[string]map[string]quantity.Price{},
	}
	for _, market := range sorted(t.Price) {
		r.Markets = append(r.Markets, market)
		r.Stated.Prices[market] = map[string]quantity.Price{}
		for _, zone := range zones {
			if usd, ok := t.USD(market, zone); ok {
				r.Stated.Prices[market][zone] = price(usd)
			}
		}
	}
	return r
}

// places makes subnets and security groups. Those that are not in the file are
// selected by every class of the case.
func (p *player) places(w *ec2.World) {
	c := &p.c.Cloud
	subnets := c.Subnets
	if subnets == nil {
		for _, zone := range c.Zones {
			subnets = append(subnets, cases.Subnet{ID: "subnet-" + zone, Zone: zone, Tags: p.wanted("subnet")})
		}
	}
	for i, s := range subnets {
		n := ec2.Subnet{ID: s.ID, VPC: network, Zone: s.Zone, CIDR: fmt.Sprintf("10.%d.0.0/16", i+1), Tags: tags(s.Tags), MaxAddresses: s.Free, ReportedFree: s.ReportedFree}
		if s.ActualFree != nil {
			n.MaxAddresses = s.ActualFree
		}
		w.Subnets = append(w.Subnets, n)
	}
	groups := c.SecurityGroups
	if groups == nil {
		groups = []cases.SecurityGroup{{ID: "sg-case", Name: "case", Tags: p.wanted("securityGroup")}}
	}
	for _, g := range groups {
		n := ec2.SecurityGroup{ID: g.ID, Name: g.Name, VPC: network, Tags: tags(g.Tags)}
		if g.Default {
			n.Name = "default"
		}
		w.SecurityGroups = append(w.SecurityGroups, n)
	}
}

func (p *player) images(w *ec2.World) {
	list := p.c.Cloud.Images
	if list == nil {
		want := p.wanted("ami")
		if len(want) == 0 && p.wantedName() == "" {
			return // the families' own will do
		}
		list = []cases.Image{{ID: "ami-case", Name: p.wantedName(), State: "available", Created: p.c.Now.AddDate(0, -1, 0), Tags: want}}
	}
	for _, i := range list {
		n := ec2.Image{ID: i.ID, Name: i.Name, Arch: "x86_64", State: i.State, Created: i.Created.UTC().Format("2006-01-02T15:04:05.000Z"),
			Owner: account, RootDevice: "/dev/xvda", RootGiB: 20, Tags: tags(i.Tags)}
		if i.Arch == "arm64" {
			n.Arch = "arm64"
		}
		if n.Name == "" {
			n.Name = i.ID
		}
		if n.State == "" {
			n.State = "available"
		}
		w.Images = append(w.Images, n)
	}
}

// wanted are the tags by which the classes of the case select something.
func (p *player) wanted(what string) map[string]string {
	out := map[string]string{}
	for _, o := range p.raw {
		spec, _ := o["spec"].(map[string]any)
		if list, ok := spec[what+"SelectorTerms"].([]any); ok { // v1
			for _, term := range list {
				t, _ := term.(map[string]any)
				copyTags(out, t["tags"])
			}
		}
		copyTags(out, spec[what+"Selector"]) // v1alpha5
		if provider, ok := spec["provider"].(map[string]any); ok {
			copyTags(out, provider[what+"Selector"])
		}
	}
	return out
}

// wantedName is a name that the image selectors of the case match.
func (p *player) wantedName() string {
	for _, o := range p.raw {
		spec, _ := o["spec"].(map[string]any)
		list, _ := spec["amiSelectorTerms"].([]any)
		for _, term := range list {
			if t, _ := term.(map[string]any); t["name"] != nil {
				return strings.ReplaceAll(fmt.Sprint(t["name"]), "*", "x")
			}
		}
	}
	return ""
}

func copyTags(into map[string]string, from any) {
	m, _ := from.(map[string]any)
	for _, key := range sorted(m) {
		if !strings.HasPrefix(key, "aws") {
			into[key] = strings.ReplaceAll(fmt.Sprint(m[key]), "*", "x")
		}
	}
}

func tags(given map[string]string) ec2.Tags {
	out := ec2.Tags{all: "true"}
	for k, v := range given {
		out[k] = v
	}
	return out
}

// wholeCall are errors that answer a create call as a whole; others refuse
// single choices.
func wholeCall(f cases.Fault) bool {
	code := strings.Fields(f.Error + " x")[0]
	return f.Match == cases.Match{} && !strings.HasPrefix(code, "Insufficient") && code != "UnfulfillableCapacity" && code != "Unsupported"
}

// faults injects those of the case.
func (p *player) faults() error {
	for _, f := range p.c.Cloud.Faults {
		in := ec2.Fault{On: f.On, Message: f.Error, Times: f.Times}
		if words := strings.Fields(f.Error); len(words) > 0 {
			in.Error = words[0]
		}
		if f.Until != nil {
			in.Until = p.c.Now.Add(f.Until.Duration)
		}
		match := ec2.Match{Type: f.Match.InstanceType, Zone: f.Match.Zone, Market: f.Match.CapacityType, Subnet: f.Match.Subnet, Image: f.Match.Image}
		switch {
		case f.On == "create" && wholeCall(f):
			in.On = "CreateFleet"
		case f.On == "create", f.On == "boot":
			in.Match = match
		case f.On == "describeInstanceTypes":
			in.On = "DescribeInstanceTypes"
		case f.On == "describeLaunchTemplate":
			in.On = "DescribeLaunchTemplates"
		case f.On == "terminate":
			in.On = "TerminateInstances"
		}
		if _, err := p.rig.Cloud.Inject(in); err != nil {
			return err
		}
	}
	return nil
}

// typ returns a type of the case.
func (p *player) typ(name string) *cases.InstanceType {
	for i := range p.c.Cloud.InstanceTypes {
		if t := &p.c.Cloud.InstanceTypes[i]; t.Name == name {
			return t
		}
	}
	return nil
}

// first returns the first of a list, or nothing.
func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
