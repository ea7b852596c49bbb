package ec2

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// DescribeInstancesInput asks for instances.
type DescribeInstancesInput struct {
	Common
	Page
	IDs                     []string `query:"InstanceId"`
	Filters                 []Filter `query:"Filter"`
	IncludeManagedResources bool
}

// DescribeInstancesOutput lists instances, each in a reservation of its own.
type DescribeInstancesOutput struct {
	Response
	Reservations Set[Reservation] `xml:"reservationSet"`
	NextToken    string           `xml:"nextToken,omitempty"`
}

// Reservation is the result of one launch.
type Reservation struct {
	ID        string            `xml:"reservationId"`
	Owner     string            `xml:"ownerId"`
	Groups    Set[GroupRef]     `xml:"groupSet"`
	Instances Set[InstanceInfo] `xml:"instancesSet"`
}

func (r Reservation) ids() []string {
	var out []string
	for _, i := range r.Instances {
		out = append(out, i.ID)
	}
	return out
}

// GroupRef names a security group.
type GroupRef struct {
	ID   string `xml:"groupId"`
	Name string `xml:"groupName"`
}

// StateRef is a state with its code.
type StateRef struct {
	Code int   `xml:"code"`
	Name State `xml:"name"`
}

// InstanceInfo is an instance as Describe shows it.
type InstanceInfo struct {
	ID            string              `xml:"instanceId"`
	ImageID       string              `xml:"imageId"`
	State         StateRef            `xml:"instanceState"`
	PrivateDNS    string              `xml:"privateDnsName"`
	PublicDNS     string              `xml:"dnsName"`
	Reason        string              `xml:"reason"`
	Index         int                 `xml:"amiLaunchIndex"`
	ProductCodes  Set[struct{}]       `xml:"productCodes"`
	Type          string              `xml:"instanceType"`
	Launched      time.Time           `xml:"launchTime"`
	Placement     PlacementInfo       `xml:"placement"`
	Platform      string              `xml:"platformDetails"`
	Monitoring    string              `xml:"monitoring>state"`
	Subnet        string              `xml:"subnetId,omitempty"`
	VPC           string              `xml:"vpcId,omitempty"`
	PrivateIP     string              `xml:"privateIpAddress,omitempty"`
	SourceDest    bool                `xml:"sourceDestCheck"`
	Groups        Set[GroupRef]       `xml:"groupSet"`
	StateReason   *StateReason        `xml:"stateReason"`
	Arch          string              `xml:"architecture"`
	RootType      string              `xml:"rootDeviceType"`
	RootDevice    string              `xml:"rootDeviceName"`
	Devices       Set[InstanceDevice] `xml:"blockDeviceMapping"`
	Virtual       string              `xml:"virtualizationType"`
	ClientToken   string              `xml:"clientToken"`
	Market        string              `xml:"instanceLifecycle,omitempty"`
	SpotRequest   string              `xml:"spotInstanceRequestId,omitempty"`
	Tags          Tags                `xml:"tagSet"`
	Hypervisor    string              `xml:"hypervisor"`
	Interfaces    Set[InterfaceInfo]  `xml:"networkInterfaceSet"`
	Profile       *Profile            `xml:"iamInstanceProfile"`
	EBSOptimized  bool                `xml:"ebsOptimized"`
	ENA           bool                `xml:"enaSupport"`
	Metadata      MetadataOptions     `xml:"metadataOptions"`
	HostnameType  string              `xml:"privateDnsNameOptions>hostnameType"`
	CurrentBoot   string              `xml:"currentInstanceBootMode"`
	UsageOp       string              `xml:"usageOperation"`
	CapacityReuse string              `xml:"capacityReservationSpecification>capacityReservationPreference"`
}

// PlacementInfo says where an instance is.
type PlacementInfo struct {
	Zone    string `xml:"availabilityZone"`
	ZoneID  string `xml:"availabilityZoneId"`
	Group   string `xml:"groupName"`
	Tenancy string `xml:"tenancy"`
}

// StateReason says why an instance is in its state.
type StateReason struct {
	Code    string `xml:"code"`
	Message string `xml:"message"`
}

// InstanceDevice is an attached volume.
type InstanceDevice struct {
	Device   string    `xml:"deviceName"`
	VolumeID string    `xml:"ebs>volumeId"`
	Status   string    `xml:"ebs>status"`
	Attached time.Time `xml:"ebs>attachTime"`
	Delete   bool      `xml:"ebs>deleteOnTermination"`
}

// InterfaceInfo is an attached network interface.
type InterfaceInfo struct {
	ID         string        `xml:"networkInterfaceId"`
	Subnet     string        `xml:"subnetId"`
	VPC        string        `xml:"vpcId"`
	Owner      string        `xml:"ownerId"`
	Status     string        `xml:"status"`
	PrivateIP  string        `xml:"privateIpAddress"`
	PrivateDNS string        `xml:"privateDnsName"`
	Groups     Set[GroupRef] `xml:"groupSet"`
	Type       string        `xml:"interfaceType"`
	SourceDest bool          `xml:"sourceDestCheck"`
	Attachment Attachment    `xml:"attachment"`
	Addresses  Set[Address]  `xml:"privateIpAddressesSet"`
}

// Attachment is where a network interface is attached.
type Attachment struct {
	ID       string    `xml:"attachmentId"`
	Device   int       `xml:"deviceIndex"`
	Card     int       `xml:"networkCardIndex"`
	Status   string    `xml:"status"`
	Attached time.Time `xml:"attachTime"`
	Delete   bool      `xml:"deleteOnTermination"`
}

// Address is an address of a network interface.
type Address struct {
	IP      string `xml:"privateIpAddress"`
	DNS     string `xml:"privateDnsName"`
	Primary bool   `xml:"primary"`
}

func (i *Instance) key() string { return fmt.Sprintf("%012d", i.seq) }

// visibleInstances are those that Describe calls show.
func (c *Cloud) visibleInstances() []*Instance {
	now := c.now()
	out := make([]*Instance, 0, len(c.instances))
	for _, i := range c.instances {
		if !i.visible.After(now) {
			out = append(out, i)
		}
	}
	return out
}

// named returns the visible instances with these ids, in the order of the ids,
// or the error that names those that do not exist.
func (c *Cloud) named(ids []string) ([]*Instance, error) {
	var out []*Instance
	var lost []string
	now := c.now()
	for _, id := range ids {
		if !strings.HasPrefix(id, "i-") {
			return nil, errorf("InvalidInstanceID.Malformed", "Invalid id: \"%s\"", id)
		}
		i, ok := c.byID[id]
		switch {
		case !ok || i.visible.After(now):
			lost = append(lost, id)
		case !slices.Contains(out, i):
			out = append(out, i)
		}
	}
	if len(lost) > 0 {
		return nil, noInstances(lost...)
	}
	return out, nil
}

var instanceFilters = attributes[*Instance]{
	"instance-id":              one(func(i *Instance) string { return i.ID }),
	"instance-state-name":      one(func(i *Instance) string { return string(i.State) }),
	"instance-state-code":      one(func(i *Instance) string { return strconv.Itoa(stateCodes[i.State]) }),
	"instance-type":            one(func(i *Instance) string { return i.Type }),
	"instance-lifecycle":       one(func(i *Instance) string { return i.lifecycle() }),
	"availability-zone":        one(func(i *Instance) string { return i.Zone }),
	"subnet-id":                one(func(i *Instance) string { return i.SubnetID }),
	"vpc-id":                   one(func(i *Instance) string { return i.VPCID }),
	"image-id":                 one(func(i *Instance) string { return i.ImageID }),
	"client-token":             one((*Instance).shownToken),
	"private-dns-name":         one(func(i *Instance) string { return i.PrivateDNS }),
	"private-ip-address":       one(func(i *Instance) string { return i.PrivateIP }),
	"architecture":             func(i *Instance) []string { return i.Row.Arch },
	"instance.group-id":        func(i *Instance) []string { return i.SecurityGroups },
	"iam-instance-profile.arn": one(func(i *Instance) string { return i.InstanceProfile }),
	"launch-time":              one(func(i *Instance) string { return i.Launched.Format("2006-01-02T15:04:05.000Z") }),
}

// shownToken is the client token that EC2 shows: the fleet service starts its
// instances with tokens of its own, so the fleet's is not found here.
func (i *Instance) shownToken() string { return cmp.Or(i.FleetID, i.Token) }

// lifecycle is empty for on-demand instances.
func (i *Instance) lifecycle() string {
	if i.Market == Spot {
		return string(Spot)
	}
	return ""
}

func (in *DescribeInstancesInput) do(c *Cloud) (*DescribeInstancesOutput, error) {
	if len(in.IDs) > 0 && in.MaxResults != nil {
		return nil, errorf("InvalidParameterCombination", "The parameter instancesSet cannot be used with the parameter maxResults")
	}
	var items []*Instance
	var err error
	if len(in.IDs) == 0 {
		items = c.visibleInstances()
	} else if items, err = c.named(in.IDs); err != nil {
		return nil, err
	}
	now := c.now()
	part, next, err := listing[*Instance]{
		items: items, key: (*Instance).key, inOrder: len(in.IDs) == 0, filters: in.Filters, attributes: instanceFilters, bounds: paged,
		tags: func(i *Instance) Tags { return i.tagsAt(now) },
	}.page(in.Page)
	return &DescribeInstancesOutput{NextToken: next, Reservations: each(part, func(i *Instance) Reservation { return c.reservation([]*Instance{i}) })}, err
}

// reservation describes instances as one; its id is made from the first.
func (c *Cloud) reservation(list []*Instance) Reservation {
	r := Reservation{Owner: c.opt.Account}
	for _, i := range list {
		r.Instances = append(r.Instances, c.instanceInfo(i))
	}
	if len(list) > 0 {
		r.ID = "r-" + strings.TrimPrefix(list[0].ID, "i-")
	}
	return r
}

func (c *Cloud) instanceInfo(i *Instance) InstanceInfo {
	info := InstanceInfo{
		ID: i.ID, ImageID: i.ImageID, State: stateRef(i.State), PrivateDNS: i.PrivateDNS, Reason: i.Reason, Type: i.Type,
		Launched: i.Launched, Placement: PlacementInfo{Zone: i.Zone, ZoneID: zoneID(i.Zone), Tenancy: "default"},
		Platform: "Linux/UNIX", Monitoring: "disabled", SourceDest: true, RootType: "ebs", Virtual: "hvm", Hypervisor: "xen",
		ClientToken: i.shownToken(), Market: i.lifecycle(), Tags: i.tagsAt(c.now()), EBSOptimized: true, ENA: true, Metadata: i.Metadata,
		HostnameType: "ip-name", CurrentBoot: "legacy-bios", UsageOp: "RunInstances", CapacityReuse: "open",
	}
	if i.Monitoring {
		info.Monitoring = "enabled"
	}
	if len(i.Row.Arch) > 0 {
		info.Arch = i.Row.Arch[0]
	}
	if i.Market == Spot {
		info.SpotRequest = "sir-" + i.ID[len(i.ID)-8:]
	}
	if i.ReasonCode != "" {
		info.StateReason = &StateReason{i.ReasonCode, i.ReasonCode + ": " + i.Reason}
	}
	if i.InstanceProfile != "" {
		arn := i.InstanceProfile
		if !strings.HasPrefix(arn, "arn:") {
			arn = fmt.Sprintf("arn:aws:iam::%s:instance-profile/%s", c.opt.Account, arn)
		}
		info.Profile = &Profile{ARN: arn}
	}
	if image := c.image(i.ImageID); image != nil {
		info.RootDevice = image.RootDevice
		if image.Arch != "" {
			info.Arch = image.Arch
		}
	}
	if i.State != Terminated {
		c.addAttached(&info, i)
	}
	return info
}

// addAttached adds what an instance loses when it is terminated.
func (c *Cloud) addAttached(info *InstanceInfo, i *Instance) {
	info.Subnet, info.VPC, info.PrivateIP = i.SubnetID, i.VPCID, i.PrivateIP
	for _, id := range i.SecurityGroups {
		ref := GroupRef{ID: id}
		if g := c.group(id); g != nil {
			ref.Name = g.Name
		}
		info.Groups = append(info.Groups, ref)
	}
	info.Interfaces = []InterfaceInfo{{ID: i.NetworkInterface, Subnet: i.SubnetID, VPC: i.VPCID, Owner: c.opt.Account, Status: "in-use",
		PrivateIP: i.PrivateIP, PrivateDNS: i.PrivateDNS, Groups: info.Groups, Type: "interface", SourceDest: true,
		Attachment: Attachment{ID: "eni-attach-" + strings.TrimPrefix(i.NetworkInterface, "eni-"), Status: "attached", Attached: i.Launched, Delete: true},
		Addresses:  []Address{{i.PrivateIP, i.PrivateDNS, true}}}}
	for _, v := range i.disks {
		info.Devices = append(info.Devices, InstanceDevice{Device: v.Device, VolumeID: v.ID, Status: "attached", Attached: v.Created, Delete: v.DeleteOnTermination})
	}
}

func stateRef(s State) StateRef { return StateRef{stateCodes[s], s} }

// ——— Terminate

// TerminateInstancesInput ends instances.
type TerminateInstancesInput struct {
	Common
	IDs            []string `query:"InstanceId"`
	Force          bool
	SkipOsShutdown bool
}

// StateChange is an instance with its state before and after.
type StateChange struct {
	ID       string   `xml:"instanceId"`
	Current  StateRef `xml:"currentState"`
	Previous StateRef `xml:"previousState"`
}

// TerminateInstancesOutput lists what was ended.
type TerminateInstancesOutput struct {
	Response
	Changes Set[StateChange] `xml:"instancesSet"`
}

func (o *TerminateInstancesOutput) instanceIDs() []string {
	var out []string
	for _, i := range o.Changes {
		out = append(out, i.ID)
	}
	return out
}

func (in *TerminateInstancesInput) do(c *Cloud) (*TerminateInstancesOutput, error) {
	if len(in.IDs) == 0 {
		return nil, missing("InstanceId")
	}
	list, err := c.named(in.IDs)
	if err != nil {
		return nil, err
	}
	out := &TerminateInstancesOutput{}
	for _, i := range list {
		before := i.State
		c.terminate(i, "Client.UserInitiatedShutdown", "User initiated ("+c.now().Format("2006-01-02 15:04:05 MST")+")")
		out.Changes = append(out.Changes, StateChange{i.ID, stateRef(i.State), stateRef(before)})
	}
	return out, nil
}
