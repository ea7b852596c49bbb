package ec2

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
)

// order asks for one machine.
type order struct {
	typ, subnet, zone string
	market            Market
	maxPrice          float64 // USD per hour; 0: any
	data              TemplateData
	template          *Template // may be nil
	tags              []TagSpec // of the request; they beat the template's
	fleet, token      string
}

// launch starts one machine, or says why not. The result is pending.
func (c *Cloud) launch(o order) (*Instance, *Error) {
	row, known := c.types[o.typ]
	subnet := c.subnet(o.subnet)
	switch {
	case o.typ == "":
		return nil, missing("InstanceType")
	case !known:
		return nil, errorf("InvalidParameterValue", "Invalid value '%s' for InstanceType.", o.typ)
	case o.subnet == "":
		return nil, errorf("MissingInput", "No subnets found for the default VPC. Please specify a subnet.")
	case subnet == nil:
		return nil, errorf("InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", o.subnet)
	case o.zone != "" && o.zone != subnet.Zone:
		return nil, errorf("InvalidParameterValue", "The subnet '%s' is in the Availability Zone %s, not in %s.", o.subnet, subnet.Zone, o.zone)
	}
	i := &Instance{Type: o.typ, Row: *row, Zone: subnet.Zone, Market: o.market, SubnetID: subnet.ID, VPCID: subnet.VPC,
		ImageID: o.data.ImageID, FleetID: o.fleet, Token: o.token}
	price := c.offers[offerKey{o.typ, subnet.Zone}].price(o.market)
	switch {
	case price == 0:
		return nil, errorf("Unsupported", "Your requested instance type (%s) is not supported in your requested Availability Zone (%s).", o.typ, subnet.Zone)
	case o.maxPrice > 0 && price.USD() > o.maxPrice:
		return nil, errorf("SpotMaxPriceTooLow", "Your Spot request price of %g is lower than the minimum required Spot request fulfillment price of %g.", o.maxPrice, price.USD())
	}
	image, err := c.imageFor(i)
	if err != nil {
		return nil, err
	}
	if err := c.configure(i, o.data); err != nil {
		return nil, err
	}
	if err := c.mayLaunch(i, append(slices.Clone(o.data.TagSpecs), o.tags...)); err != nil {
		return nil, err
	}
	if specs := append(slices.Clone(o.data.TagSpecs), o.tags...); o.market != Spot && len(tagsFor(specs, "spot-instances-request")) > 0 {
		return nil, errorf("InvalidParameterValue", "'spot-instances-request' is not a valid taggable resource type for this operation.")
	}
	if f := c.machineFault("create", i); f != nil {
		return nil, f.err()
	}
	addr, ok := subnet.take(c.opt.ReuseAddresses)
	if !ok {
		return nil, errorf("InsufficientFreeAddressesInSubnet", "There are not enough free addresses in subnet '%s' to satisfy the requested number of instances.", subnet.ID)
	}
	i.addr, i.PrivateIP, i.PrivateDNS = addr, addr.String(), c.privateDNS(addr)
	c.register(i, o, image)
	return i, nil
}

// imageFor checks the image of a machine.
func (c *Cloud) imageFor(i *Instance) (*Image, *Error) {
	image := c.image(i.ImageID)
	switch {
	case i.ImageID == "":
		return nil, missing("ImageId")
	case image == nil:
		return nil, errorf("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", i.ImageID)
	case image.State != "" && image.State != "available":
		return nil, errorf("InvalidAMIID.Unavailable", "The image ID '[%s]' is not yet available (%s)", i.ImageID, image.State)
	case image.Arch != "" && !slices.Contains(i.Row.Arch, image.Arch):
		return nil, errorf("InvalidParameterValue", "The architecture '%s' of the specified instance type does not match the architecture '%s' of the specified AMI.", i.Row.Arch[0], image.Arch)
	}
	return image, nil
}

// configure applies what a template says, apart from image and type.
func (c *Cloud) configure(i *Instance, d TemplateData) *Error {
	i.SecurityGroups = slices.Clone(d.SecurityGroups)
	for _, n := range d.Interfaces {
		i.SecurityGroups = append(i.SecurityGroups, n.Groups...)
	}
	for _, id := range i.SecurityGroups {
		if c.group(id) == nil {
			return errorf("InvalidGroup.NotFound", "The security group '%s' does not exist", id)
		}
	}
	if len(i.SecurityGroups) == 0 {
		if g := find(c.world.SecurityGroups, func(g *SecurityGroup) bool { return g.Name == "default" && g.VPC == i.VPCID }); g != nil {
			i.SecurityGroups = []string{g.ID}
		}
	}
	if p := d.Profile; p != nil {
		name, err := c.profileFor(p)
		if err != nil {
			return err
		}
		i.InstanceProfile = name
	}
	var err error
	if i.UserData, err = decodeUserData(d.UserData); err != nil {
		return err.(*Error)
	}
	i.Monitoring = d.Monitoring != nil && d.Monitoring.Enabled
	i.Metadata = MetadataOptions{State: "applied", HTTPTokens: "optional", HopLimit: 1, HTTPEndpoint: "enabled", HTTPProtocolIPv6: "disabled", InstanceTags: "disabled"}
	if d.Metadata != nil {
		overlay(&i.Metadata, *d.Metadata)
	}
	return nil
}

// register gives a machine its identity and lets it begin to boot.
func (c *Cloud) register(i *Instance, o order, image *Image) {
	now := c.now()
	c.launched++
	i.ID, i.NetworkInterface, i.seq = c.newID("i"), c.newID("eni"), c.launched
	i.Launched, i.visible = now, now.Add(c.opt.Lag)
	specs := append(slices.Clone(o.data.TagSpecs), o.tags...)
	i.Tags, i.NetworkTags = tagsFor(specs, "instance"), tagsFor(specs, "network-interface")
	if t := o.template; t != nil {
		i.TemplateID, i.TemplateVersion = t.ID, 1
		i.Tags["aws:ec2launchtemplate:id"], i.Tags["aws:ec2launchtemplate:version"] = t.ID, "1"
	}
	if o.fleet != "" {
		i.Tags["aws:ec2:fleet-id"] = o.fleet
	}
	c.attach(i, o.data.Devices, image, tagsFor(specs, "volume"))
	if f := c.machineFault("boot", i); f != nil {
		i.slow, i.NeverJoins = f.Delay, f.Delay == 0
	}
	if f := c.machineFault("visible", i); f != nil {
		i.visible = i.visible.Add(f.Delay)
	}
	c.instances = append(c.instances, i)
	c.byID[i.ID] = i
	c.move(i, Pending, now)
}

// attach makes the volumes: those of the image, as changed by the template,
// and the template's own.
func (c *Cloud) attach(i *Instance, devices []BlockDevice, image *Image, tags Tags) {
	if !slices.ContainsFunc(devices, func(d BlockDevice) bool { return d.Device == image.RootDevice }) {
		devices = append(image.devices(), devices...)
	}
	for _, d := range devices {
		if d.EBS == nil || d.None != nil {
			continue
		}
		v := &Volume{ID: c.newID("vol"), Instance: i.ID, Device: d.Device, Zone: i.Zone, Created: i.Launched, EBS: *d.EBS,
			DeleteOnTermination: d.EBS.DeleteOnTermination == nil || *d.EBS.DeleteOnTermination, Tags: maps.Clone(tags)}
		if v.EBS.SizeGiB == nil {
			size := int64(image.RootGiB)
			v.EBS.SizeGiB = &size
		}
		if v.EBS.Type == "" {
			v.EBS.Type = "gp2"
		}
		c.volumes = append(c.volumes, v)
		i.Volumes, i.disks = append(i.Volumes, v.ID), append(i.disks, v)
	}
}

// overlay copies the fields of over that are set onto base.
func overlay[T any](base *T, over T) {
	b, o := reflect.ValueOf(base).Elem(), reflect.ValueOf(over)
	for k := range o.NumField() {
		if !o.Field(k).IsZero() {
			b.Field(k).Set(o.Field(k))
		}
	}
}

// ——— RunInstances

// RunInstancesInput starts machines of one kind.
type RunInstancesInput struct {
	Common
	TemplateData
	ClientToken string
	MinCount    int
	MaxCount    int
	SubnetID    string `query:"SubnetId"`
	Placement   struct{ AvailabilityZone string }
	Template    *TemplateRef `query:"LaunchTemplate"`
	Market      struct {
		MarketType  Market
		SpotOptions struct{ MaxPrice string }
	} `query:"InstanceMarketOptions"`
}

func (in *RunInstancesInput) clientToken() string { return in.ClientToken }

// RunInstancesOutput describes what was started.
type RunInstancesOutput struct {
	Response
	Reservation
}

func (o *RunInstancesOutput) instanceIDs() []string { return o.ids() }

// do starts MaxCount machines, or as many as are to be had. If they are fewer
// than MinCount, those started are terminated again.
func (in *RunInstancesInput) do(c *Cloud) (*RunInstancesOutput, error) {
	if in.MinCount < 1 || in.MaxCount < in.MinCount {
		return nil, invalid("maxCount", fmt.Sprint(in.MaxCount), "minCount must be at least 1 and maxCount at least minCount.")
	}
	o := order{subnet: in.SubnetID, zone: in.Placement.AvailabilityZone, market: OnDemand, token: in.ClientToken, data: in.TemplateData}
	if in.Market.MarketType == Spot {
		o.market = Spot
		o.maxPrice, _ = strconv.ParseFloat(in.Market.SpotOptions.MaxPrice, 64)
	}
	if in.Template != nil {
		t, err := c.resolve(*in.Template)
		if err != nil {
			return nil, err
		}
		o.template, o.data = t, t.Data
		overlay(&o.data, in.TemplateData)
		o.tags, o.data.TagSpecs = in.TagSpecs, t.Data.TagSpecs
	}
	if err := checkSpecs(in.TagSpecs); err != nil {
		return nil, err
	}
	o.typ = o.data.InstanceType
	if len(o.data.Interfaces) > 0 && o.subnet == "" {
		o.subnet = o.data.Interfaces[0].SubnetID
	}
	var started []*Instance
	for range in.MaxCount {
		i, err := c.launch(o)
		if err != nil && len(started) >= in.MinCount {
			break
		}
		if err != nil {
			for _, i := range started {
				c.terminate(i, "Server.InternalError", "Server.InternalError: launch was taken back")
			}
			return nil, err
		}
		started = append(started, i)
	}
	return &RunInstancesOutput{Reservation: c.reservation(started)}, nil
}
