package awsapi

import (
	"cmp"
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"karpenter/internal/aws/class"
	"karpenter/internal/aws/launch"
)

// HasTemplate reports whether a launch template of that name exists.
func (a *API) HasTemplate(ctx context.Context, name string) (bool, error) {
	out, err := a.ec2.DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{LaunchTemplateNames: []string{name}})
	if notFound(code(err)) {
		return false, nil
	}
	if err != nil {
		return false, kind("asking EC2 for launch template "+name, err)
	}
	return len(out.LaunchTemplates) > 0, nil
}

// CreateTemplate makes a launch template. It is no error if there is one of
// that name: the name tells the content.
func (a *API) CreateTemplate(ctx context.Context, t launch.Template) error {
	_, err := a.ec2.CreateLaunchTemplate(ctx, templateInput(t))
	if code(err) == "InvalidLaunchTemplateName.AlreadyExistsException" {
		return nil
	}
	return kind("making launch template "+t.Name, err)
}

func templateInput(t launch.Template) *ec2.CreateLaunchTemplateInput {
	return &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String(t.Name),
		LaunchTemplateData: templateData(&t.Data),
		TagSpecifications:  []types.TagSpecification{{ResourceType: types.ResourceTypeLaunchTemplate, Tags: tags(t.Tags)}},
	}
}

// Templates lists the launch templates that match all filters, by name.
func (a *API) Templates(ctx context.Context, match []class.Filter) ([]launch.TemplateInfo, error) {
	pages := ec2.NewDescribeLaunchTemplatesPaginator(a.ec2, &ec2.DescribeLaunchTemplatesInput{Filters: filters(match), MaxResults: aws.Int32(200)})
	var out []launch.TemplateInfo
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, kind("asking EC2 for launch templates", err)
		}
		for _, t := range page.LaunchTemplates {
			out = append(out, launch.TemplateInfo{Name: aws.ToString(t.LaunchTemplateName), Created: aws.ToTime(t.CreateTime)})
		}
	}
	slices.SortFunc(out, func(a, b launch.TemplateInfo) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// DeleteTemplate deletes a launch template. It is no error if there is none of
// that name.
func (a *API) DeleteTemplate(ctx context.Context, name string) error {
	_, err := a.ec2.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: aws.String(name)})
	if notFound(code(err)) {
		return nil
	}
	return kind("deleting launch template "+name, err)
}

func templateData(d *launch.TemplateData) *types.RequestLaunchTemplateData {
	out := &types.RequestLaunchTemplateData{
		ImageId:          aws.String(d.ImageID),
		Monitoring:       &types.LaunchTemplatesMonitoringRequest{Enabled: aws.Bool(d.Monitoring)},
		SecurityGroupIds: d.SecurityGroups,
		UserData:         aws.String(d.UserData),
		MetadataOptions: &types.LaunchTemplateInstanceMetadataOptionsRequest{
			HttpEndpoint:     types.LaunchTemplateInstanceMetadataEndpointState(d.Metadata.Endpoint),
			HttpProtocolIpv6: types.LaunchTemplateInstanceMetadataProtocolIpv6(d.Metadata.IPv6),
			HttpTokens:       types.LaunchTemplateHttpTokensState(d.Metadata.Tokens),
		},
	}
	if d.PublicIP != nil || d.IPv6 {
		// Groups cannot be given twice, and an interface takes them all.
		nic := types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{
			DeviceIndex: aws.Int32(0), AssociatePublicIpAddress: d.PublicIP, Groups: d.SecurityGroups,
		}
		if d.IPv6 {
			nic.Ipv6AddressCount, nic.PrimaryIpv6 = aws.Int32(1), aws.Bool(true)
		}
		out.NetworkInterfaces, out.SecurityGroupIds = []types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{nic}, nil
	}
	if d.InstanceProfile != "" {
		out.IamInstanceProfile = &types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: aws.String(d.InstanceProfile)}
	}
	if d.Metadata.HopLimit != 0 {
		out.MetadataOptions.HttpPutResponseHopLimit = aws.Int32(int32(d.Metadata.HopLimit))
	}
	if len(d.InterfaceTags) > 0 {
		out.TagSpecifications = []types.LaunchTemplateTagSpecificationRequest{{
			ResourceType: types.ResourceTypeNetworkInterface, Tags: tags(d.InterfaceTags),
		}}
		if d.Spot {
			out.TagSpecifications = append(out.TagSpecifications, types.LaunchTemplateTagSpecificationRequest{
				ResourceType: types.ResourceTypeSpotInstancesRequest, Tags: tags(d.InterfaceTags),
			})
		}
	}
	for _, b := range d.Devices {
		out.BlockDeviceMappings = append(out.BlockDeviceMappings, blockDevice(b))
	}
	return out
}

func blockDevice(b class.BlockDevice) types.LaunchTemplateBlockDeviceMappingRequest {
	ebs := &types.LaunchTemplateEbsBlockDeviceRequest{
		DeleteOnTermination: b.DeleteOnTermination,
		Encrypted:           b.Encrypted,
		VolumeType:          types.VolumeType(b.Type),
		Iops:                int32Of(b.IOPS),
		Throughput:          int32Of(b.Throughput),

		VolumeInitializationRate: int32Of(b.InitMiBps),
	}
	if b.SizeGiB != 0 {
		ebs.VolumeSize = aws.Int32(int32(b.SizeGiB))
	}
	if b.Snapshot != "" {
		ebs.SnapshotId = aws.String(b.Snapshot)
	}
	if b.KMSKey != "" {
		ebs.KmsKeyId = aws.String(b.KMSKey)
	}
	return types.LaunchTemplateBlockDeviceMappingRequest{DeviceName: aws.String(b.Device), Ebs: ebs}
}

func int32Of(n *int64) *int32 {
	if n == nil {
		return nil
	}
	return aws.Int32(int32(*n))
}

func tags(list []launch.Tag) []types.Tag {
	out := make([]types.Tag, 0, len(list))
	for _, t := range list {
		out = append(out, types.Tag{Key: aws.String(t.Key), Value: aws.String(t.Value)})
	}
	return out
}
