package ec2

import (
	"fmt"
	"strconv"
	"strings"
)

// ——— Regions and zones

// DescribeRegionsInput asks for the regions: there is one.
type DescribeRegionsInput struct {
	Common
	Names      []string `query:"RegionName"`
	AllRegions bool
	Filters    []Filter `query:"Filter"`
}

// RegionInfo is a region.
type RegionInfo struct {
	Name     string `xml:"regionName"`
	Endpoint string `xml:"regionEndpoint"`
	OptIn    string `xml:"optInStatus"`
}

// DescribeRegionsOutput lists regions.
type DescribeRegionsOutput struct {
	Response
	Regions Set[RegionInfo] `xml:"regionInfo"`
}

func (in *DescribeRegionsInput) do(c *Cloud) (*DescribeRegionsOutput, error) {
	all := []RegionInfo{{Name: c.opt.Region, Endpoint: "ec2." + c.opt.Region + ".amazonaws.com", OptIn: "opt-in-not-required"}}
	name := func(r RegionInfo) string { return r.Name }
	items, _, err := listing[RegionInfo]{
		items: all, key: name, filters: in.Filters, bounds: paged,
		named: []named[RegionInfo]{{in.Names, name, "InvalidParameterValue", "region"}},
		attributes: attributes[RegionInfo]{
			"region-name": one(name),
			"endpoint":    one(func(r RegionInfo) string { return r.Endpoint }),
		},
	}.page(Page{})
	return &DescribeRegionsOutput{Regions: items}, err
}

// DescribeAvailabilityZonesInput asks for zones.
type DescribeAvailabilityZonesInput struct {
	Common
	Names    []string `query:"ZoneName"`
	IDs      []string `query:"ZoneId"`
	AllZones bool     `query:"AllAvailabilityZones"`
	Filters  []Filter `query:"Filter"`
}

// ZoneInfo is a zone.
type ZoneInfo struct {
	State  string `xml:"zoneState"`
	OptIn  string `xml:"optInStatus"`
	Region string `xml:"regionName"`
	Name   string `xml:"zoneName"`
	ID     string `xml:"zoneId"`
	Group  string `xml:"groupName"`
	Border string `xml:"networkBorderGroup"`
	Type   string `xml:"zoneType"`
}

// DescribeAvailabilityZonesOutput lists zones.
type DescribeAvailabilityZonesOutput struct {
	Response
	Zones Set[ZoneInfo] `xml:"availabilityZoneInfo"`
}

func (in *DescribeAvailabilityZonesInput) do(c *Cloud) (*DescribeAvailabilityZonesOutput, error) {
	var all []ZoneInfo
	for _, z := range c.opt.Zones {
		all = append(all, ZoneInfo{State: "available", OptIn: "opt-in-not-required", Region: c.opt.Region,
			Name: z, ID: zoneID(z), Group: c.opt.Region, Border: c.opt.Region, Type: "availability-zone"})
	}
	name, id := func(z ZoneInfo) string { return z.Name }, func(z ZoneInfo) string { return z.ID }
	items, _, err := listing[ZoneInfo]{
		items: all, key: name, filters: in.Filters, bounds: paged,
		named: []named[ZoneInfo]{{in.Names, name, "InvalidParameterValue", "availability zone"}, {in.IDs, id, "InvalidParameterValue", "availability zone"}},
		attributes: attributes[ZoneInfo]{
			"zone-name":     one(name),
			"zone-id":       one(id),
			"region-name":   one(func(z ZoneInfo) string { return z.Region }),
			"state":         one(func(z ZoneInfo) string { return z.State }),
			"zone-type":     one(func(z ZoneInfo) string { return z.Type }),
			"opt-in-status": one(func(z ZoneInfo) string { return z.OptIn }),
		},
	}.page(Page{})
	return &DescribeAvailabilityZonesOutput{Zones: items}, err
}

// ——— VPCs

// DescribeVpcsInput asks for virtual networks.
type DescribeVpcsInput struct {
	Common
	Page
	IDs     []string `query:"VpcId"`
	Filters []Filter `query:"Filter"`
}

// VPCInfo is a virtual network.
type VPCInfo struct {
	ID      string `xml:"vpcId"`
	Owner   string `xml:"ownerId"`
	State   string `xml:"state"`
	CIDR    string `xml:"cidrBlock"`
	Tenancy string `xml:"instanceTenancy"`
	Default bool   `xml:"isDefault"`
	Tags    Tags   `xml:"tagSet"`

	Blocks Set[VPCBlock] `xml:"cidrBlockAssociationSet"`
}

// VPCBlock is a range of addresses of a VPC.
type VPCBlock struct {
	ID    string `xml:"associationId"`
	CIDR  string `xml:"cidrBlock"`
	State string `xml:"cidrBlockState>state"`
}

// DescribeVpcsOutput lists virtual networks.
type DescribeVpcsOutput struct {
	Response
	VPCs      Set[VPCInfo] `xml:"vpcSet"`
	NextToken string       `xml:"nextToken,omitempty"`
}

func (in *DescribeVpcsInput) do(c *Cloud) (*DescribeVpcsOutput, error) {
	id := func(v *VPC) string { return v.ID }
	part, next, err := listing[*VPC]{
		items: pointers(c.world.VPCs), key: id, filters: in.Filters, bounds: paged,
		named:      []named[*VPC]{{in.IDs, id, "InvalidVpcID.NotFound", "vpc ID"}},
		attributes: attributes[*VPC]{"vpc-id": one(id), "cidr": one(func(v *VPC) string { return v.CIDR })},
		tags:       func(v *VPC) Tags { return v.Tags },
	}.page(in.Page)
	return &DescribeVpcsOutput{NextToken: next, VPCs: each(part, func(v *VPC) VPCInfo {
		return VPCInfo{ID: v.ID, Owner: c.opt.Account, State: "available", CIDR: v.CIDR, Tenancy: "default", Default: v.Default, Tags: v.Tags,
			Blocks: []VPCBlock{{"vpc-cidr-assoc-" + strings.TrimPrefix(v.ID, "vpc-"), v.CIDR, "associated"}}}
	})}, err
}

// ——— Subnets

// DescribeSubnetsInput asks for subnets.
type DescribeSubnetsInput struct {
	Common
	Page
	IDs     []string `query:"SubnetId"`
	Filters []Filter `query:"Filter"`
}

// SubnetInfo is a subnet.
type SubnetInfo struct {
	ID       string `xml:"subnetId"`
	ARN      string `xml:"subnetArn"`
	State    string `xml:"state"`
	Owner    string `xml:"ownerId"`
	VPC      string `xml:"vpcId"`
	CIDR     string `xml:"cidrBlock"`
	Free     int    `xml:"availableIpAddressCount"`
	Zone     string `xml:"availabilityZone"`
	ZoneID   string `xml:"availabilityZoneId"`
	Default  bool   `xml:"defaultForAz"`
	PublicIP bool   `xml:"mapPublicIpOnLaunch"`
	IPv6     bool   `xml:"assignIpv6AddressOnCreation"`
	IPv6Only bool   `xml:"ipv6Native"`
	HostName string `xml:"privateDnsNameOptionsOnLaunch>hostnameType"`
	NameA    bool   `xml:"privateDnsNameOptionsOnLaunch>enableResourceNameDnsARecord"`
	NameAAAA bool   `xml:"privateDnsNameOptionsOnLaunch>enableResourceNameDnsAAAARecord"`
	Tags     Tags   `xml:"tagSet"`
}

// DescribeSubnetsOutput lists subnets.
type DescribeSubnetsOutput struct {
	Response
	Subnets   Set[SubnetInfo] `xml:"subnetSet"`
	NextToken string          `xml:"nextToken,omitempty"`
}

var subnetFilters = attributes[*Subnet]{
	"subnet-id":                  one(func(s *Subnet) string { return s.ID }),
	"vpc-id":                     one(func(s *Subnet) string { return s.VPC }),
	"availability-zone":          one(func(s *Subnet) string { return s.Zone }),
	"availability-zone-id":       one(func(s *Subnet) string { return zoneID(s.Zone) }),
	"cidr-block":                 one(func(s *Subnet) string { return s.CIDR }),
	"state":                      one(func(*Subnet) string { return "available" }),
	"map-public-ip-on-launch":    one(func(s *Subnet) string { return strconv.FormatBool(s.Public) }),
	"available-ip-address-count": one(func(s *Subnet) string { return strconv.Itoa(s.reported()) }),
}

// reported is the number of free addresses that the subnet shows.
func (s *Subnet) reported() int {
	if s.ReportedFree != nil {
		return *s.ReportedFree
	}
	return s.free()
}

func (in *DescribeSubnetsInput) do(c *Cloud) (*DescribeSubnetsOutput, error) {
	part, next, err := listing[*Subnet]{
		items: pointers(c.world.Subnets), key: (*Subnet).id, filters: in.Filters, attributes: subnetFilters, bounds: paged,
		named: []named[*Subnet]{{in.IDs, (*Subnet).id, "InvalidSubnetID.NotFound", "subnet ID"}},
		tags:  func(s *Subnet) Tags { return s.Tags },
	}.page(in.Page)
	return &DescribeSubnetsOutput{NextToken: next, Subnets: each(part, func(s *Subnet) SubnetInfo {
		return SubnetInfo{
			ID: s.ID, ARN: fmt.Sprintf("arn:aws:ec2:%s:%s:subnet/%s", c.opt.Region, c.opt.Account, s.ID),
			State: "available", Owner: c.opt.Account, VPC: s.VPC, CIDR: s.CIDR, Free: s.reported(),
			Zone: s.Zone, ZoneID: zoneID(s.Zone), Default: s.Default, PublicIP: s.Public, HostName: "ip-name", Tags: s.Tags,
		}
	})}, err
}

func (s *Subnet) id() string        { return s.ID }
func (g *SecurityGroup) id() string { return g.ID }
func (i *Image) id() string         { return i.ID }

// ——— Security groups

// DescribeSecurityGroupsInput asks for security groups.
type DescribeSecurityGroupsInput struct {
	Common
	Page
	IDs     []string `query:"GroupId"`
	Names   []string `query:"GroupName"`
	Filters []Filter `query:"Filter"`
}

// SecurityGroupInfo is a security group.
type SecurityGroupInfo struct {
	ID          string        `xml:"groupId"`
	ARN         string        `xml:"securityGroupArn"`
	Name        string        `xml:"groupName"`
	Description string        `xml:"groupDescription"`
	Owner       string        `xml:"ownerId"`
	VPC         string        `xml:"vpcId"`
	Ingress     Set[struct{}] `xml:"ipPermissions"`
	Egress      Set[struct{}] `xml:"ipPermissionsEgress"`
	Tags        Tags          `xml:"tagSet"`
}

// DescribeSecurityGroupsOutput lists security groups.
type DescribeSecurityGroupsOutput struct {
	Response
	Groups    Set[SecurityGroupInfo] `xml:"securityGroupInfo"`
	NextToken string                 `xml:"nextToken,omitempty"`
}

func (in *DescribeSecurityGroupsInput) do(c *Cloud) (*DescribeSecurityGroupsOutput, error) {
	part, next, err := listing[*SecurityGroup]{
		items: pointers(c.world.SecurityGroups), key: (*SecurityGroup).id, filters: in.Filters, bounds: paged,
		named: []named[*SecurityGroup]{
			{in.IDs, (*SecurityGroup).id, "InvalidGroup.NotFound", "security group"},
			{in.Names, func(g *SecurityGroup) string { return g.Name }, "InvalidGroup.NotFound", "security group"},
		},
		attributes: attributes[*SecurityGroup]{
			"group-id":    one((*SecurityGroup).id),
			"group-name":  one(func(g *SecurityGroup) string { return g.Name }),
			"vpc-id":      one(func(g *SecurityGroup) string { return g.VPC }),
			"description": one(func(g *SecurityGroup) string { return g.Description }),
			"owner-id":    one(func(*SecurityGroup) string { return c.opt.Account }),
		},
		tags: func(g *SecurityGroup) Tags { return g.Tags },
	}.page(in.Page)
	return &DescribeSecurityGroupsOutput{NextToken: next, Groups: each(part, func(g *SecurityGroup) SecurityGroupInfo {
		return SecurityGroupInfo{ID: g.ID, ARN: fmt.Sprintf("arn:aws:ec2:%s:%s:security-group/%s", c.opt.Region, c.opt.Account, g.ID), Name: g.Name, Description: g.Description, Owner: c.opt.Account, VPC: g.VPC, Tags: g.Tags}
	})}, err
}
