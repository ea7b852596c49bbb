package ec2

import (
	"fmt"
	"hash/fnv"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"karpenter/internal/aws/catalog"
	"karpenter/internal/core/quantity"
)

// World is what exists in a region before anything is launched. All of it may
// be written by hand; [DefaultWorld] makes a realistic one.
type World struct {
	VPCs           []VPC
	Subnets        []Subnet
	SecurityGroups []SecurityGroup
	Images         []Image
	// Parameters are the public SSM parameters.
	Parameters map[string]string
	// Types are the instance types; Offers where they are sold and at what
	// price.
	Types  []catalog.Row
	Offers []Offer
	// InstanceProfiles are the known ones besides those made by calls; nil
	// accepts every name. Roles likewise.
	InstanceProfiles []string
	Roles            []string
	// Clusters are those that EKS knows.
	Clusters []Cluster
}

// Offer is an instance type in a zone. A price of 0 means that it is not sold
// in that market.
type Offer struct {
	Type, Zone     string
	OnDemand, Spot quantity.Price
}

type offerKey struct{ typ, zone string }

func (o Offer) price(m Market) quantity.Price {
	if m == Spot {
		return o.Spot
	}
	return o.OnDemand
}

// VPC is a virtual network.
type VPC struct {
	ID   string
	CIDR string
	Tags Tags
	// Default is the VPC that every account has at first.
	Default bool
}

// Subnet is a range of addresses in one zone.
type Subnet struct {
	ID, VPC, Zone, CIDR string
	Tags                Tags
	// Public subnets give public addresses at launch; Default ones belong to the
	// default VPC.
	Public  bool
	Default bool
	// MaxAddresses limits the addresses that can be in use at once (nil: what
	// the CIDR holds, minus the five that AWS keeps).
	MaxAddresses *int
	// ReportedFree is what DescribeSubnets says, if not the truth.
	ReportedFree *int

	used map[netip.Addr]bool
	last netip.Addr
}

// SecurityGroup is a named set of firewall rules; the rules are not simulated.
type SecurityGroup struct {
	ID, Name, Description, VPC string
	Tags                       Tags
}

// Image is a machine image.
type Image struct {
	ID, Name, Description string
	// Arch is x86_64 or arm64; State available, pending or failed; Created
	// and Deprecated RFC 3339.
	Arch, State, Created, Deprecated string
	Owner, OwnerAlias                string
	// RootDevice is its device name, RootGiB its size.
	RootDevice string
	RootGiB    int
	Tags       Tags
}

// clone copies what the cloud will change.
func (w World) clone() World {
	w.Subnets, w.SecurityGroups = slices.Clone(w.Subnets), slices.Clone(w.SecurityGroups)
	w.Images, w.VPCs = slices.Clone(w.Images), slices.Clone(w.VPCs)
	w.Types, w.Offers, w.Clusters = slices.Clone(w.Types), slices.Clone(w.Offers), slices.Clone(w.Clusters)
	for i := range w.Subnets {
		w.Subnets[i].Tags, w.Subnets[i].used = maps.Clone(w.Subnets[i].Tags), nil
	}
	for i := range w.SecurityGroups {
		w.SecurityGroups[i].Tags = maps.Clone(w.SecurityGroups[i].Tags)
	}
	for i := range w.Images {
		w.Images[i].Tags = maps.Clone(w.Images[i].Tags)
	}
	for i := range w.VPCs {
		w.VPCs[i].Tags = maps.Clone(w.VPCs[i].Tags)
	}
	return w
}

// capacity is the number of addresses of a subnet; AWS keeps five of them.
func (s *Subnet) capacity() int {
	if s.MaxAddresses != nil {
		return *s.MaxAddresses
	}
	p, err := netip.ParsePrefix(s.CIDR)
	if err != nil {
		return 0
	}
	return 1<<(p.Addr().BitLen()-p.Bits()) - 5
}

func (s *Subnet) free() int { return max(s.capacity()-len(s.used), 0) }

// take hands out a free address: the one after the last, or the lowest.
func (s *Subnet) take(lowest bool) (netip.Addr, bool) {
	p, err := netip.ParsePrefix(s.CIDR)
	if err != nil || s.free() == 0 {
		return netip.Addr{}, false
	}
	first := p.Masked().Addr().Next().Next().Next().Next() // .0 to .3 are kept
	at := first
	if !lowest && s.last.IsValid() {
		at = s.last.Next()
	}
	for range 1 << (p.Addr().BitLen() - p.Bits()) {
		if !p.Contains(at) || !p.Contains(at.Next()) { // the last one is kept too
			at = first
		}
		if !s.used[at] {
			s.used[at], s.last = true, at
			return at, true
		}
		at = at.Next()
	}
	return netip.Addr{}, false
}

func (s *Subnet) release(a netip.Addr) { delete(s.used, a) }

func (c *Cloud) subnet(id string) *Subnet {
	return find(c.world.Subnets, func(s *Subnet) bool { return s.ID == id })
}

func (c *Cloud) group(id string) *SecurityGroup {
	return find(c.world.SecurityGroups, func(g *SecurityGroup) bool { return g.ID == id })
}

func (c *Cloud) image(id string) *Image {
	return find(c.world.Images, func(i *Image) bool { return i.ID == id })
}

// find returns the first item that passes, or nil.
func find[T any](items []T, f func(*T) bool) *T {
	for i := range items {
		if f(&items[i]) {
			return &items[i]
		}
	}
	return nil
}

// Edit changes the world while the cloud runs, as an operator would: an image
// deregistered, a subnet retagged. Maps of tags must be replaced, not changed.
func (c *Cloud) Edit(f func(*World)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.world)
	c.index()
}

// DefaultWorld is the network that the workshop's manifests look for, images
// of all families for Kubernetes 1.21 to 1.39 on both architectures, and the
// instance types, zones and prices of the embedded catalogue.
func DefaultWorld(region string, zones []string, seed uint64) World {
	w := World{}
	w.addNetwork(zones)
	w.addImages()
	w.addOffers(region, zones, seed)
	return w
}

// addOffers sells every type in the zones for which the embedded catalogue has
// it, and in all zones that the catalogue does not know. Spot prices differ a little by zone.
func (w *World) addOffers(region string, zones []string, seed uint64) {
	offered, prices, known := catalog.ZoneOfferings(region), catalog.EmbeddedPrices(region), catalog.RegionZones(region)
	for _, t := range catalog.Embedded() {
		before := len(w.Offers)
		for _, zone := range zones {
			if slices.Contains(known, zone) && !slices.Contains(offered[t.Name], zone) {
				continue
			}
			o := Offer{Type: t.Name, Zone: zone}
			if q, ok := prices.Quote(t.Name, zone, string(OnDemand)); ok && slices.Contains(t.Markets, string(OnDemand)) {
				o.OnDemand = q.Price
			}
			if q, ok := prices.Quote(t.Name, zone, string(Spot)); ok && slices.Contains(t.Markets, string(Spot)) {
				o.Spot = zonal(q.Price, seed, t.Name, zone)
			}
			w.Offers = append(w.Offers, o)
		}
		if len(w.Offers) > before {
			w.Types = append(w.Types, t)
		}
	}
}

// zonal varies a price by up to 5 % in either direction, to a hundredth of a
// cent as EC2 quotes spot prices.
func zonal(p quantity.Price, seed uint64, typ, zone string) quantity.Price {
	h := fnv.New64a()
	fmt.Fprint(h, seed, typ, zone)
	varied := p * quantity.Price(950+h.Sum64()%101) / 1000
	return max(varied/100*100, 100)
}

// The names that the workshop uses.
const (
	workshopCluster = "birenchong-k8s-cluster"
	workshopStack   = "birenchong-eks-vpc-stack"
	// WorkshopGroup is the security group that its manifests name by id.
	WorkshopGroup = "sg-0xxxxxxxxxxxxxxxxx6"
	vpcID         = "vpc-0a1b2c3d4e5f60718"
)

func (w *World) addNetwork(zones []string) {
	w.VPCs = []VPC{{ID: vpcID, CIDR: "192.168.0.0/16", Tags: Tags{"Name": workshopStack + "-VPC"}}}
	shared := "kubernetes.io/cluster/" + workshopCluster
	for i, zone := range zones {
		for k, kind := range []string{"Public", "Private"} {
			role := "kubernetes.io/role/elb"
			tags := Tags{"Name": fmt.Sprintf("%s-%sSubnet%d", workshopStack, kind, i+1), shared: "shared"}
			if kind == "Private" {
				role = "kubernetes.io/role/internal-elb"
				tags["karpenter.sh/discovery"] = workshopCluster
			}
			tags[role] = "1"
			block := 2*i + k // of /20, sixteen in all
			w.Subnets = append(w.Subnets, Subnet{
				ID:  fmt.Sprintf("subnet-0%x%x00000000000%03x", i+1, k, block),
				VPC: vpcID, Zone: zone, Public: kind == "Public",
				CIDR: fmt.Sprintf("192.168.%d.0/20", block*16), Tags: tags,
			})
		}
	}
	w.SecurityGroups = []SecurityGroup{
		{ID: "sg-0default0000000001", Name: "default", Description: "default VPC security group", VPC: vpcID},
		{ID: WorkshopGroup, Name: workshopStack + "-ControlPlaneSecurityGroup", Description: "Cluster communication with worker nodes", VPC: vpcID,
			Tags: Tags{"Name": workshopStack + "-ControlPlaneSecurityGroup"}},
		{ID: "sg-0c1u57e2000000003", Name: "eks-cluster-sg-" + workshopCluster, Description: "EKS created security group applied to ENI that is attached to EKS Control Plane master nodes, as well as any managed workloads.", VPC: vpcID,
			Tags: Tags{"Name": "eks-cluster-sg-" + workshopCluster, "karpenter.sh/discovery": workshopCluster, "aws:eks:cluster-name": workshopCluster, "kubernetes.io/cluster/" + workshopCluster: "owned"}},
	}
}

// zoneID is the account-independent name of a zone: us-west-2a → usw2-az1.
func zoneID(zone string) string {
	parts := strings.Split(zone, "-")
	if len(parts) != 3 || len(parts[2]) != 2 {
		return zone
	}
	direction := parts[1]
	for long, short := range map[string]string{"northeast": "ne", "northwest": "nw", "southeast": "se", "southwest": "sw"} {
		if direction == long {
			direction = short
		}
	}
	if direction == parts[1] {
		direction = direction[:1]
	}
	return fmt.Sprintf("%s%s%c-az%d", parts[0], direction, parts[2][0], parts[2][1]-'a'+1)
}
