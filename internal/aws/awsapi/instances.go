package awsapi

import (
	"context"
	"path"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"karpenter/internal/aws/class"
	"karpenter/internal/aws/launch"
	"karpenter/internal/cloud"
	"karpenter/internal/core/label"
)

// Instances returns the instances with these ids (nil: any) that match all
// filters. An id that EC2 does not know is *cloud.NotFoundError.
func (a *API) Instances(ctx context.Context, ids []string, match []class.Filter) ([]cloud.Instance, error) {
	in := &ec2.DescribeInstancesInput{InstanceIds: ids, Filters: filters(match)}
	if len(ids) == 0 {
		in.MaxResults = aws.Int32(1000) // not allowed together with ids
	}
	pages := ec2.NewDescribeInstancesPaginator(a.ec2, in)
	var out []cloud.Instance
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if notFound(code(err)) && len(ids) == 1 {
			return nil, &cloud.NotFoundError{ID: ids[0]}
		}
		if err != nil {
			return nil, kind("asking EC2 for instances", err)
		}
		for _, r := range page.Reservations {
			for i := range r.Instances {
				out = append(out, instance(&r.Instances[i]))
			}
		}
	}
	return out, nil
}

// Terminate ends all of the instances, or none: one that EC2 does not know is
// *cloud.NotFoundError.
func (a *API) Terminate(ctx context.Context, ids ...string) error {
	_, err := a.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: ids})
	what := strings.Join(ids, ", ")
	if notFound(code(err)) {
		return &cloud.NotFoundError{ID: what}
	}
	return kind("terminating "+what, err)
}

// Tag sets tags of an instance. One that EC2 does not know is
// *cloud.NotFoundError.
func (a *API) Tag(ctx context.Context, id string, set []launch.Tag) error {
	_, err := a.ec2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{id}, Tags: tags(set)})
	if notFound(code(err)) {
		return &cloud.NotFoundError{ID: id}
	}
	return kind("tagging instance "+id, err)
}

// Untag takes tags off an instance, whatever their values are.
func (a *API) Untag(ctx context.Context, id string, keys []string) error {
	in := &ec2.DeleteTagsInput{Resources: []string{id}}
	for _, k := range keys {
		in.Tags = append(in.Tags, types.Tag{Key: aws.String(k)})
	}
	_, err := a.ec2.DeleteTags(ctx, in)
	if notFound(code(err)) {
		return &cloud.NotFoundError{ID: id}
	}
	return kind("taking tags off instance "+id, err)
}

func instance(i *types.Instance) cloud.Instance {
	out := cloud.Instance{
		ID:           aws.ToString(i.InstanceId),
		Type:         string(i.InstanceType),
		CapacityType: label.OnDemand,
		ImageID:      aws.ToString(i.ImageId),
		PrivateDNS:   aws.ToString(i.PrivateDnsName),
		Subnet:       aws.ToString(i.SubnetId),
		Launched:     aws.ToTime(i.LaunchTime),
		Tags:         tagMap(i.Tags),
	}
	for _, g := range i.SecurityGroups {
		out.SecurityGroups = append(out.SecurityGroups, aws.ToString(g.GroupId))
	}
	if i.State != nil {
		out.State = cloud.State(i.State.Name)
	}
	if i.Placement != nil {
		out.Zone = aws.ToString(i.Placement.AvailabilityZone)
	}
	if aws.ToString(i.SpotInstanceRequestId) != "" || i.InstanceLifecycle == types.InstanceLifecycleTypeSpot {
		out.CapacityType = label.Spot
	}
	if p := i.IamInstanceProfile; p != nil {
		out.InstanceProfile = path.Base(aws.ToString(p.Arn))
	}
	out.Token, out.Claim = out.Tags[launch.TokenTag], out.Tags[launch.ClaimTag]
	return out
}
