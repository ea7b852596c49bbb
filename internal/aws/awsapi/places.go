package awsapi

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"karpenter/internal/aws/class"
	"karpenter/internal/aws/launch"
)

// Subnets returns the subnets that match all filters, by id. An id that does
// not exist matches nothing.
func (a *API) Subnets(ctx context.Context, match []class.Filter) ([]launch.Subnet, error) {
	pages := ec2.NewDescribeSubnetsPaginator(a.ec2, &ec2.DescribeSubnetsInput{Filters: filters(match), MaxResults: aws.Int32(1000)})
	var out []launch.Subnet
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, kind("asking EC2 for subnets", err)
		}
		for _, s := range page.Subnets {
			out = append(out, launch.Subnet{
				ID: aws.ToString(s.SubnetId), Zone: aws.ToString(s.AvailabilityZone), ZoneID: aws.ToString(s.AvailabilityZoneId),
				Free: int64(aws.ToInt32(s.AvailableIpAddressCount)),
			})
		}
	}
	slices.SortFunc(out, func(a, b launch.Subnet) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}

// SecurityGroups returns the groups that match all filters, by id.
func (a *API) SecurityGroups(ctx context.Context, match []class.Filter) ([]launch.SecurityGroup, error) {
	pages := ec2.NewDescribeSecurityGroupsPaginator(a.ec2, &ec2.DescribeSecurityGroupsInput{Filters: filters(match), MaxResults: aws.Int32(1000)})
	var out []launch.SecurityGroup
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, kind("asking EC2 for security groups", err)
		}
		for _, g := range page.SecurityGroups {
			out = append(out, launch.SecurityGroup{ID: aws.ToString(g.GroupId), Name: aws.ToString(g.GroupName)})
		}
	}
	slices.SortFunc(out, func(a, b launch.SecurityGroup) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}

// Images returns the usable images that match all filters, newest first;
// deprecated ones are among them. A filter named [class.Owner] limits whose
// images are looked at.
func (a *API) Images(ctx context.Context, match []class.Filter) ([]launch.Image, error) {
	in := &ec2.DescribeImagesInput{MaxResults: aws.Int32(1000), IncludeDeprecated: aws.Bool(true)}
	usable := []class.Filter{{Name: "state", Values: []string{"available"}}}
	for _, f := range match {
		if f.Name == class.Owner {
			in.Owners = f.Values
		} else {
			usable = append(usable, f)
		}
	}
	in.Filters = filters(usable)
	pages := ec2.NewDescribeImagesPaginator(a.ec2, in)
	var out []launch.Image
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, kind("asking EC2 for images", err)
		}
		for _, im := range page.Images {
			out = append(out, launch.Image{
				ID: aws.ToString(im.ImageId), Name: aws.ToString(im.Name), Arch: string(im.Architecture),
				Created: aws.ToString(im.CreationDate), DeprecatedAt: aws.ToString(im.DeprecationTime), Tags: tagMap(im.Tags),
			})
		}
	}
	launch.NewestFirst(out)
	return out, nil
}

// Parameter returns the value of a public SSM parameter, or
// *launch.UnknownParameterError.
func (a *API) Parameter(ctx context.Context, name string) (string, error) {
	out, err := a.ssm.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String(name)})
	var unknown *ssmtypes.ParameterNotFound
	switch {
	case errors.As(err, &unknown):
		return "", &launch.UnknownParameterError{Name: name}
	case err != nil:
		return "", kind("asking SSM for "+name, err)
	case out.Parameter == nil:
		return "", &launch.UnknownParameterError{Name: name}
	}
	return strings.TrimSpace(aws.ToString(out.Parameter.Value)), nil
}

func tagMap(tags []types.Tag) map[string]string {
	out := make(map[string]string, len(tags))
	for _, t := range tags {
		out[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return out
}
