package direct

import (
	"context"
	"maps"

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
	_, err := call(ctx, a, &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: t.Name,
		Data:               templateData(&t.Data),
		TagSpecs:           []ec2.TagSpec{{ResourceType: "launch-template", Tags: tags(t.Tags)}},
	})
	if code(err) == "InvalidLaunchTemplateName.AlreadyExistsException" {
		return nil
	}
	return kind("making launch template "+t.Name, err)
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
	if d.InstanceProfile != "" {
		out.Profile = &ec2.Profile{Name: d.InstanceProfile}
	}
	if len(d.InterfaceTags) > 0 {
		out.TagSpecs = []ec2.TagSpec{{ResourceType: "network-interface", Tags: tags(d.InterfaceTags)}}
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
