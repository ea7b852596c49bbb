package awsapi_test

import (
	"context"
	"fmt"
	"testing"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	ec2sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"karpenter/internal/aws/catalog"
	"karpenter/sim/ec2"
)

const publicParameter = "/aws/service/ami-amazon-linux-latest/amzn2-ami-hvm-x86_64-gp2"

// mirror reads what a fresh moto has and makes the same world for the
// simulation.
func mirror(t *testing.T, moto *side) ec2.World {
	t.Helper()
	ctx := t.Context()
	world := ec2.DefaultWorld("us-east-1", catalog.RegionZones("us-east-1"), 0)
	world.VPCs, world.Subnets, world.SecurityGroups, world.Images = nil, nil, nil, nil
	vpcs, err := moto.ec2.DescribeVpcs(ctx, &ec2sdk.DescribeVpcsInput{})
	must(t, err)
	for _, v := range vpcs.Vpcs {
		world.VPCs = append(world.VPCs, ec2.VPC{ID: *v.VpcId, CIDR: *v.CidrBlock, Default: *v.IsDefault})
	}
	subnets, err := moto.ec2.DescribeSubnets(ctx, &ec2sdk.DescribeSubnetsInput{})
	must(t, err)
	for _, s := range subnets.Subnets {
		world.Subnets = append(world.Subnets, ec2.Subnet{ID: *s.SubnetId, VPC: *s.VpcId, Zone: *s.AvailabilityZone, CIDR: *s.CidrBlock, Public: *s.MapPublicIpOnLaunch, Default: *s.DefaultForAz})
	}
	groups, err := moto.ec2.DescribeSecurityGroups(ctx, &ec2sdk.DescribeSecurityGroupsInput{})
	must(t, err)
	for _, g := range groups.SecurityGroups {
		world.SecurityGroups = append(world.SecurityGroups, ec2.SecurityGroup{ID: *g.GroupId, Name: *g.GroupName, Description: *g.Description, VPC: *g.VpcId})
	}
	images, err := moto.ec2.DescribeImages(ctx, &ec2sdk.DescribeImagesInput{Filters: []types.Filter{
		{Name: awssdk.String("architecture"), Values: []string{"x86_64"}}, {Name: awssdk.String("name"), Values: []string{"amzn2-ami-*"}}}})
	must(t, err)
	for _, i := range images.Images {
		image := ec2.Image{ID: *i.ImageId, Name: *i.Name, Description: awssdk.ToString(i.Description), Arch: string(i.Architecture), State: string(i.State), Created: *i.CreationDate,
			Owner: *i.OwnerId, OwnerAlias: awssdk.ToString(i.ImageOwnerAlias), RootDevice: *i.RootDeviceName}
		for _, d := range i.BlockDeviceMappings {
			if d.Ebs != nil && *d.DeviceName == image.RootDevice {
				image.RootGiB = int(awssdk.ToInt32(d.Ebs.VolumeSize))
			}
		}
		world.Images = append(world.Images, image)
	}
	parameter, err := moto.ssm.GetParameter(ctx, &ssm.GetParameterInput{Name: awssdk.String(publicParameter)})
	must(t, err)
	world.Parameters = map[string]string{publicParameter: *parameter.Parameter.Value}
	world.Roles = []string{}
	return world
}

func where(name string, values ...string) []types.Filter {
	return []types.Filter{{Name: awssdk.String(name), Values: values}}
}

func ec2Tags(pairs ...string) (out []types.Tag) {
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, types.Tag{Key: awssdk.String(pairs[i]), Value: awssdk.String(pairs[i+1])})
	}
	return out
}

// sameRequests are what both sides are asked, in this order.
var sameRequests = []sameRequest{
	{"GetCallerIdentity", func(ctx context.Context, s *side) (any, error) {
		return s.sts.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	}},
	{"DescribeRegions", func(ctx context.Context, s *side) (any, error) {
		return s.ec2.DescribeRegions(ctx, &ec2sdk.DescribeRegionsInput{RegionNames: []string{"us-east-1"}})
	}},
	{"DescribeAvailabilityZones", func(ctx context.Context, s *side) (any, error) {
		return s.ec2.DescribeAvailabilityZones(ctx, &ec2sdk.DescribeAvailabilityZonesInput{Filters: where("zone-name", "us-east-1a", "us-east-1b")})
	}},
	{"DescribeVpcs", func(ctx context.Context, s *side) (any, error) {
		return s.ec2.DescribeVpcs(ctx, &ec2sdk.DescribeVpcsInput{})
	}},
	{"DescribeSubnets", func(ctx context.Context, s *side) (any, error) {
		out, err := s.ec2.DescribeSubnets(ctx, &ec2sdk.DescribeSubnetsInput{Filters: where("availability-zone", "us-east-1b")})
		if err == nil {
			s.subnets = []string{*out.Subnets[0].SubnetId}
		}
		return out, err
	}},
	{"DescribeSubnets none", func(ctx context.Context, s *side) (any, error) {
		return s.ec2.DescribeSubnets(ctx, &ec2sdk.DescribeSubnetsInput{SubnetIds: []string{"subnet-00000000000000000"}})
	}},
	{"DescribeSecurityGroups", func(ctx context.Context, s *side) (any, error) {
		out, err := s.ec2.DescribeSecurityGroups(ctx, &ec2sdk.DescribeSecurityGroupsInput{Filters: where("group-name", "default")})
		if err == nil {
			s.group = *out.SecurityGroups[0].GroupId
		}
		return out, err
	}},
	{"DescribeSecurityGroups none", func(ctx context.Context, s *side) (any, error) {
		return s.ec2.DescribeSecurityGroups(ctx, &ec2sdk.DescribeSecurityGroupsInput{GroupIds: []string{"sg-00000000000000000"}})
	}},
	{"GetParameter", func(ctx context.Context, s *side) (any, error) {
		out, err := s.ssm.GetParameter(ctx, &ssm.GetParameterInput{Name: awssdk.String(publicParameter)})
		if err == nil {
			s.images = []string{*out.Parameter.Value}
		}
		return out, err
	}},
	{"GetParameter none", func(ctx context.Context, s *side) (any, error) {
		return s.ssm.GetParameter(ctx, &ssm.GetParameterInput{Name: awssdk.String("/nothing")})
	}},
	{"DescribeImages", func(ctx context.Context, s *side) (any, error) {
		return s.ec2.DescribeImages(ctx, &ec2sdk.DescribeImagesInput{ImageIds: s.images})
	}},
	{"DescribeImages none", func(ctx context.Context, s *side) (any, error) {
		return s.ec2.DescribeImages(ctx, &ec2sdk.DescribeImagesInput{ImageIds: []string{"ami-00000000000000000"}})
	}},
	{"DescribeInstanceTypes", func(ctx context.Context, s *side) (any, error) {
		return s.ec2.DescribeInstanceTypes(ctx, &ec2sdk.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"m5.large"}})
	}},
	{"DescribeInstanceTypes gpu", func(ctx context.Context, s *side) (any, error) {
		return s.ec2.DescribeInstanceTypes(ctx, &ec2sdk.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"g4dn.xlarge"}})
	}},
	{"DescribeInstanceTypes arm", func(ctx context.Context, s *side) (any, error) {
		return s.ec2.DescribeInstanceTypes(ctx, &ec2sdk.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"m6gd.metal"}})
	}},
	{"DescribeInstanceTypes chips", func(ctx context.Context, s *side) (any, error) {
		return s.ec2.DescribeInstanceTypes(ctx, &ec2sdk.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"inf1.xlarge"}})
	}},
	{"DescribeInstanceTypeOfferings", func(ctx context.Context, s *side) (any, error) {
		return s.ec2.DescribeInstanceTypeOfferings(ctx, &ec2sdk.DescribeInstanceTypeOfferingsInput{LocationType: types.LocationTypeAvailabilityZone, Filters: where("instance-type", "m5.large")})
	}},
	{"CreateRole", func(ctx context.Context, s *side) (any, error) {
		return s.iam.CreateRole(ctx, &iam.CreateRoleInput{RoleName: awssdk.String("same-node"), AssumeRolePolicyDocument: awssdk.String(`{"Version":"2012-10-17"}`)})
	}},
	{"GetRole", func(ctx context.Context, s *side) (any, error) {
		return s.iam.GetRole(ctx, &iam.GetRoleInput{RoleName: awssdk.String("same-node")})
	}},
	{"CreateInstanceProfile", func(ctx context.Context, s *side) (any, error) {
		return s.iam.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: awssdk.String("same"), Path: awssdk.String("/karpenter/us-east-1/"),
			Tags: []iamtypes.Tag{{Key: awssdk.String("a"), Value: awssdk.String("1")}}})
	}},
	{"CreateInstanceProfile again", func(ctx context.Context, s *side) (any, error) {
		return s.iam.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: awssdk.String("same")})
	}},
	{"AddRoleToInstanceProfile no role", func(ctx context.Context, s *side) (any, error) {
		return s.iam.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: awssdk.String("same"), RoleName: awssdk.String("nobody")})
	}},
	{"AddRoleToInstanceProfile", func(ctx context.Context, s *side) (any, error) {
		return s.iam.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: awssdk.String("same"), RoleName: awssdk.String("same-node")})
	}},
	{"AddRoleToInstanceProfile again", func(ctx context.Context, s *side) (any, error) {
		return s.iam.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: awssdk.String("same"), RoleName: awssdk.String("same-node")})
	}},
	{"TagInstanceProfile", func(ctx context.Context, s *side) (any, error) {
		return s.iam.TagInstanceProfile(ctx, &iam.TagInstanceProfileInput{InstanceProfileName: awssdk.String("same"), Tags: []iamtypes.Tag{{Key: awssdk.String("b"), Value: awssdk.String("2")}}})
	}},
	{"GetInstanceProfile", func(ctx context.Context, s *side) (any, error) {
		return s.iam.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: awssdk.String("same")})
	}},
	{"GetInstanceProfile none", func(ctx context.Context, s *side) (any, error) {
		return s.iam.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: awssdk.String("nothing")})
	}},
	{"ListInstanceProfiles", func(ctx context.Context, s *side) (any, error) {
		return s.iam.ListInstanceProfiles(ctx, &iam.ListInstanceProfilesInput{PathPrefix: awssdk.String("/karpenter/")})
	}},
	{"ListInstanceProfiles elsewhere", func(ctx context.Context, s *side) (any, error) {
		return s.iam.ListInstanceProfiles(ctx, &iam.ListInstanceProfilesInput{PathPrefix: awssdk.String("/other/")})
	}},
	{"CreateLaunchTemplate", func(ctx context.Context, s *side) (any, error) {
		return s.ec2.CreateLaunchTemplate(ctx, &ec2sdk.CreateLaunchTemplateInput{LaunchTemplateName: awssdk.String("same"),
			TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeLaunchTemplate, Tags: ec2Tags("cluster", "x")}},
			LaunchTemplateData: &types.RequestLaunchTemplateData{ImageId: awssdk.String(s.images[0]), SecurityGroupIds: []string{s.group}, UserData: awssdk.String("aGVsbG8="),
				Monitoring:          &types.LaunchTemplatesMonitoringRequest{Enabled: awssdk.Bool(true)},
				IamInstanceProfile:  &types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: awssdk.String("same")},
				MetadataOptions:     &types.LaunchTemplateInstanceMetadataOptionsRequest{HttpTokens: types.LaunchTemplateHttpTokensStateRequired, HttpPutResponseHopLimit: awssdk.Int32(2)},
				BlockDeviceMappings: []types.LaunchTemplateBlockDeviceMappingRequest{{DeviceName: awssdk.String("/dev/xvda"), Ebs: &types.LaunchTemplateEbsBlockDeviceRequest{VolumeSize: awssdk.Int32(20), VolumeType: types.VolumeTypeGp3, Encrypted: awssdk.Bool(true)}}},
			}})
	}},
	{"CreateLaunchTemplate again", func(ctx context.Context, s *side) (any, error) {
		return s.ec2.CreateLaunchTemplate(ctx, &ec2sdk.CreateLaunchTemplateInput{LaunchTemplateName: awssdk.String("same"), LaunchTemplateData: &types.RequestLaunchTemplateData{ImageId: awssdk.String(s.images[0])}})
	}},
	{"DescribeLaunchTemplates", func(ctx context.Context, s *side) (any, error) {
		return s.ec2.DescribeLaunchTemplates(ctx, &ec2sdk.DescribeLaunchTemplatesInput{Filters: where("tag:cluster", "x")})
	}},
	{"DescribeLaunchTemplates none", func(ctx context.Context, s *side) (any, error) {
		return s.ec2.DescribeLaunchTemplates(ctx, &ec2sdk.DescribeLaunchTemplatesInput{LaunchTemplateNames: []string{"nothing"}})
	}},
	{"DescribeLaunchTemplateVersions", func(ctx context.Context, s *side) (any, error) {
		return s.ec2.DescribeLaunchTemplateVersions(ctx, &ec2sdk.DescribeLaunchTemplateVersionsInput{LaunchTemplateName: awssdk.String("same"), Versions: []string{"$Latest"}})
	}},
	{"CreateFleet", func(ctx context.Context, s *side) (any, error) {
		out, err := s.ec2.CreateFleet(ctx, &ec2sdk.CreateFleetInput{Type: types.FleetTypeInstant,
			TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{DefaultTargetCapacityType: types.DefaultTargetCapacityTypeOnDemand, TotalTargetCapacity: awssdk.Int32(1)},
			OnDemandOptions:             &types.OnDemandOptionsRequest{AllocationStrategy: types.FleetOnDemandAllocationStrategyLowestPrice},
			LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{{
				LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: awssdk.String("same"), Version: awssdk.String("$Latest")},
				Overrides:                   []types.FleetLaunchTemplateOverridesRequest{{InstanceType: "m5.large", SubnetId: awssdk.String(s.subnets[0]), AvailabilityZone: awssdk.String("us-east-1b")}}}},
			TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeInstance, Tags: ec2Tags("Name", "same", "a", "1")}},
		})
		if err == nil && len(out.Instances) > 0 {
			s.instance = out.Instances[0].InstanceIds[0]
		}
		return out, err
	}},
	{"DescribeInstances", func(ctx context.Context, s *side) (any, error) {
		return s.ec2.DescribeInstances(ctx, &ec2sdk.DescribeInstancesInput{InstanceIds: []string{s.instance}})
	}},
	{"DescribeInstances none", func(ctx context.Context, s *side) (any, error) {
		return s.ec2.DescribeInstances(ctx, &ec2sdk.DescribeInstancesInput{InstanceIds: []string{"i-00000000000000000"}})
	}},
	{"CreateTags", func(ctx context.Context, s *side) (any, error) {
		return s.ec2.CreateTags(ctx, &ec2sdk.CreateTagsInput{Resources: []string{s.instance}, Tags: ec2Tags("b", "2", "c", "3")})
	}},
	{"CreateTags none", func(ctx context.Context, s *side) (any, error) {
		return s.ec2.CreateTags(ctx, &ec2sdk.CreateTagsInput{Resources: []string{"i-00000000000000000"}, Tags: ec2Tags("b", "2")})
	}},
	{"DeleteTags", func(ctx context.Context, s *side) (any, error) {
		return s.ec2.DeleteTags(ctx, &ec2sdk.DeleteTagsInput{Resources: []string{s.instance}, Tags: []types.Tag{{Key: awssdk.String("c")}}})
	}},
	{"DescribeTags", func(ctx context.Context, s *side) (any, error) {
		return s.ec2.DescribeTags(ctx, &ec2sdk.DescribeTagsInput{Filters: append(where("resource-id", s.instance), where("key", "b")...)})
	}},
	{"DescribeInstances by tag", func(ctx context.Context, s *side) (any, error) {
		out, err := s.ec2.DescribeInstances(ctx, &ec2sdk.DescribeInstancesInput{Filters: append(where("tag:b", "2"), where("instance-state-name", "pending", "running")...)})
		if err != nil || len(out.Reservations) != 1 {
			return nil, fmt.Errorf("%d reservations, %w", len(out.Reservations), err)
		}
		return out.Reservations[0].Instances[0].Tags, nil
	}},
	{"DescribeVolumes", func(ctx context.Context, s *side) (any, error) {
		return s.ec2.DescribeVolumes(ctx, &ec2sdk.DescribeVolumesInput{Filters: where("attachment.instance-id", s.instance)})
	}},
	{"DescribeInstanceStatus", func(ctx context.Context, s *side) (any, error) {
		return s.ec2.DescribeInstanceStatus(ctx, &ec2sdk.DescribeInstanceStatusInput{IncludeAllInstances: awssdk.Bool(true), InstanceIds: []string{s.instance}})
	}},
	{"TerminateInstances", func(ctx context.Context, s *side) (any, error) {
		return s.ec2.TerminateInstances(ctx, &ec2sdk.TerminateInstancesInput{InstanceIds: []string{s.instance}})
	}},
	{"TerminateInstances none", func(ctx context.Context, s *side) (any, error) {
		return s.ec2.TerminateInstances(ctx, &ec2sdk.TerminateInstancesInput{InstanceIds: []string{"i-00000000000000000"}})
	}},
	{"DeleteLaunchTemplate", func(ctx context.Context, s *side) (any, error) {
		return s.ec2.DeleteLaunchTemplate(ctx, &ec2sdk.DeleteLaunchTemplateInput{LaunchTemplateName: awssdk.String("same")})
	}},
	{"DeleteLaunchTemplate again", func(ctx context.Context, s *side) (any, error) {
		return s.ec2.DeleteLaunchTemplate(ctx, &ec2sdk.DeleteLaunchTemplateInput{LaunchTemplateName: awssdk.String("same")})
	}},
	{"CreateFleet no template", func(ctx context.Context, s *side) (any, error) {
		return s.ec2.CreateFleet(ctx, &ec2sdk.CreateFleetInput{Type: types.FleetTypeInstant,
			TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{TotalTargetCapacity: awssdk.Int32(1)},
			LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{{
				LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: awssdk.String("same"), Version: awssdk.String("$Latest")}}},
		})
	}},
	{"DeleteInstanceProfile full", func(ctx context.Context, s *side) (any, error) {
		return s.iam.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: awssdk.String("same")})
	}},
	{"RemoveRoleFromInstanceProfile", func(ctx context.Context, s *side) (any, error) {
		return s.iam.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: awssdk.String("same"), RoleName: awssdk.String("same-node")})
	}},
	{"DeleteInstanceProfile", func(ctx context.Context, s *side) (any, error) {
		return s.iam.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: awssdk.String("same")})
	}},
	{"CreateCluster", func(ctx context.Context, s *side) (any, error) {
		return s.eks.CreateCluster(ctx, &eks.CreateClusterInput{Name: awssdk.String("same"), RoleArn: awssdk.String("arn:aws:iam::123456789012:role/same"), Version: awssdk.String("1.33"),
			ResourcesVpcConfig:      &ekstypes.VpcConfigRequest{SubnetIds: s.subnets, SecurityGroupIds: []string{s.group}},
			KubernetesNetworkConfig: &ekstypes.KubernetesNetworkConfigRequest{ServiceIpv4Cidr: awssdk.String("10.100.0.0/16")}})
	}},
	{"DescribeCluster", func(ctx context.Context, s *side) (any, error) {
		return s.eks.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: awssdk.String("same")})
	}},
	{"DescribeCluster none", func(ctx context.Context, s *side) (any, error) {
		return s.eks.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: awssdk.String("nothing")})
	}},
	{"GetQueueUrl none", func(ctx context.Context, s *side) (any, error) {
		return s.sqs.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: awssdk.String("nothing")})
	}},
	{"CreateQueue", func(ctx context.Context, s *side) (any, error) {
		return s.sqs.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: awssdk.String("same"), Attributes: map[string]string{"MessageRetentionPeriod": "300"}})
	}},
	{"GetQueueUrl", func(ctx context.Context, s *side) (any, error) {
		out, err := s.sqs.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: awssdk.String("same")})
		if err == nil {
			s.queue = *out.QueueUrl
		}
		return out, err
	}},
	{"SendMessage", func(ctx context.Context, s *side) (any, error) {
		return s.sqs.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: awssdk.String(s.queue), MessageBody: awssdk.String(`{"a":"b"}`)})
	}},
	{"GetQueueAttributes", func(ctx context.Context, s *side) (any, error) {
		return s.sqs.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: awssdk.String(s.queue), AttributeNames: []sqstypes.QueueAttributeName{
			"ApproximateNumberOfMessages", "MessageRetentionPeriod", "QueueArn", "VisibilityTimeout"}})
	}},
	{"ReceiveMessage", func(ctx context.Context, s *side) (any, error) {
		out, err := s.sqs.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: awssdk.String(s.queue), MaxNumberOfMessages: 10, WaitTimeSeconds: 1, VisibilityTimeout: 20,
			MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{"ApproximateReceiveCount"}})
		if err == nil && len(out.Messages) > 0 {
			s.receipt = *out.Messages[0].ReceiptHandle
			out.Messages[0].ReceiptHandle = nil
		}
		return out, err
	}},
	{"ReceiveMessage hidden", func(ctx context.Context, s *side) (any, error) {
		return s.sqs.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: awssdk.String(s.queue), WaitTimeSeconds: 1})
	}},
	{"DeleteMessageBatch", func(ctx context.Context, s *side) (any, error) {
		return s.sqs.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: awssdk.String(s.queue), Entries: []sqstypes.DeleteMessageBatchRequestEntry{
			{Id: awssdk.String("0"), ReceiptHandle: awssdk.String(s.receipt)}, {Id: awssdk.String("1"), ReceiptHandle: awssdk.String("nothing")}}})
	}},
	{"DeleteQueue", func(ctx context.Context, s *side) (any, error) {
		return s.sqs.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: awssdk.String(s.queue)})
	}},
	{"ReceiveMessage no queue", func(ctx context.Context, s *side) (any, error) {
		return s.sqs.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: awssdk.String(s.queue)})
	}},
}
