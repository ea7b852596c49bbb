package direct

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"karpenter/internal/aws/class"
	"karpenter/internal/aws/launch"
	"karpenter/sim/ec2"
)

// HasTemplate reports whether a launch template of that name exists.
func (a *API) HasTemplate(ctx context.Context, name string) (bool, error) {
	out, err := call(ctx, a, &ec2.DescribeLaunchTemplatesInput{Names: []string{name}})
	if notFound(code(err)) {
		return false, nil
	}
	if err != nil {
		return false, kind("asking EC2 for launch template "+name, err)
	}
	return len(out.Templates) > 0, nil
}

// CreateTemplate makes a launch template. It is no error if there is one of
// that name: the name tells the content.
func (a *API) CreateTemplate(ctx context.Context, t launch.Template) error {
	_, err := call(ctx, a, templateInput(t))
	if code(err) == "InvalidLaunchTemplateName.AlreadyExistsException" {
		return nil
	}
	return kind("making launch template "+t.Name, err)
}

func templateInput(t launch.Template) *ec2.CreateLaunchTemplateInput {
	return &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: t.Name,
		Data:               templateData(&t.Data),
		TagSpecs:           []ec2.TagSpec{{ResourceType: "launch-template", Tags: tags(t.Tags)}},
	}
}

// Templates lists the launch templates that match all filters, by name.
func (a *API) Templates(ctx context.Context, match []class.Filter) ([]launch.TemplateInfo, error) {
	in := &ec2.DescribeLaunchTemplatesInput{Page: ec2.Page{MaxResults: limit(200)}, Filters: filters(match)}
	var list []launch.TemplateInfo
	err := pages(func(token string) (string, error) {
		in.NextToken = token
		out, err := call(ctx, a, in)
		if err != nil {
			return "", err
		}
		for _, t := range out.Templates {
			list = append(list, launch.TemplateInfo{Name: t.Name, Created: t.Created})
		}
		return out.NextToken, nil
	})
	if err != nil {
		return nil, kind("asking EC2 for launch templates", err)
	}
	slices.SortFunc(list, func(a, b launch.TemplateInfo) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// DeleteTemplate deletes a launch template. It is no error if there is none of
// that name.
func (a *API) DeleteTemplate(ctx context.Context, name string) error {
	_, err := call(ctx, a, &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: name})
	if notFound(code(err)) {
		return nil
	}
	return kind("deleting launch template "+name, err)
}

func templateData(d *launch.TemplateData) ec2.TemplateData {
	out := ec2.TemplateData{
		ImageID:        d.ImageID,
		Monitoring:     &ec2.Monitoring{Enabled: d.Monitoring},
		SecurityGroups: d.SecurityGroups,
		UserData:       d.UserData,
		Metadata: &ec2.MetadataOptions{
			HTTPEndpoint: d.Metadata.Endpoint, HTTPProtocolIPv6: d.Metadata.IPv6, HTTPTokens: d.Metadata.Tokens, HopLimit: d.Metadata.HopLimit,
		},
	}
	if d.PublicIP != nil || d.IPv6 {
		// Groups cannot be given twice, and an interface takes them all.
		nic := ec2.Interface{AssociatePublicIP: d.PublicIP, Groups: d.SecurityGroups}
		if d.IPv6 {
			nic.IPv6AddressCount, nic.PrimaryIPv6 = new(int64(1)), &d.IPv6
		}
		out.Interfaces, out.SecurityGroups = ec2.Set[ec2.Interface]{nic}, nil
	}
	if d.InstanceProfile != "" {
		out.Profile = &ec2.Profile{Name: d.InstanceProfile}
	}
	if len(d.InterfaceTags) > 0 {
		out.TagSpecs = []ec2.TagSpec{{ResourceType: "network-interface", Tags: tags(d.InterfaceTags)}}
		if d.Spot {
			out.TagSpecs = append(out.TagSpecs, ec2.TagSpec{ResourceType: "spot-instances-request", Tags: tags(d.InterfaceTags)})
		}
	}
	for _, b := range d.Devices {
		out.Devices = append(out.Devices, blockDevice(b))
	}
	return out
}

func blockDevice(b class.BlockDevice) ec2.BlockDevice {
	ebs := &ec2.EBS{
		DeleteOnTermination: b.DeleteOnTermination, Encrypted: b.Encrypted, Type: b.Type, IOPS: b.IOPS, Throughput: b.Throughput,
		SnapshotID: b.Snapshot, KMSKeyID: b.KMSKey,
	}
	if b.SizeGiB != 0 {
		ebs.SizeGiB = &b.SizeGiB
	}
	return ec2.BlockDevice{Device: b.Device, EBS: ebs}
}

func tags(list []launch.Tag) ec2.Tags {
	out := make(ec2.Tags, len(list))
	for _, t := range list {
		out[t.Key] = t.Value
	}
	return out
}

// plain copies tags, so that no caller changes the simulation.
func plain(t ec2.Tags) map[string]string {
	if t == nil {
		return map[string]string{}
	}
	return maps.Clone(map[string]string(t))
}
