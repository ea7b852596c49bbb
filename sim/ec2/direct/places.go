package direct

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"karpenter/internal/aws/class"
	"karpenter/internal/aws/launch"
	"karpenter/sim/ec2"
)

// Subnets returns the subnets that match all filters, by id.
func (a *API) Subnets(ctx context.Context, match []class.Filter) ([]launch.Subnet, error) {
	in := &ec2.DescribeSubnetsInput{Page: ec2.Page{MaxResults: limit(1000)}, Filters: filters(match)}
	var list []launch.Subnet
	err := pages(func(token string) (string, error) {
		in.NextToken = token
		out, err := call(ctx, a, in)
		if err != nil {
			return "", err
		}
		for _, s := range out.Subnets {
			list = append(list, launch.Subnet{ID: s.ID, Zone: s.Zone, ZoneID: s.ZoneID, Free: int64(s.Free)})
		}
		return out.NextToken, nil
	})
	if err != nil {
		return nil, kind("asking EC2 for subnets", err)
	}
	slices.SortFunc(list, func(a, b launch.Subnet) int { return cmp.Compare(a.ID, b.ID) })
	return list, nil
}

// SecurityGroups returns the groups that match all filters, by id.
func (a *API) SecurityGroups(ctx context.Context, match []class.Filter) ([]launch.SecurityGroup, error) {
	in := &ec2.DescribeSecurityGroupsInput{Page: ec2.Page{MaxResults: limit(1000)}, Filters: filters(match)}
	var list []launch.SecurityGroup
	err := pages(func(token string) (string, error) {
		in.NextToken = token
		out, err := call(ctx, a, in)
		if err != nil {
			return "", err
		}
		for _, g := range out.Groups {
			list = append(list, launch.SecurityGroup{ID: g.ID, Name: g.Name})
		}
		return out.NextToken, nil
	})
	if err != nil {
		return nil, kind("asking EC2 for security groups", err)
	}
	slices.SortFunc(list, func(a, b launch.SecurityGroup) int { return cmp.Compare(a.ID, b.ID) })
	return list, nil
}

// Images returns the usable images that match all filters, newest first.
func (a *API) Images(ctx context.Context, match []class.Filter) ([]launch.Image, error) {
	in := &ec2.DescribeImagesInput{Page: ec2.Page{MaxResults: limit(1000)}, IncludeDeprecated: true}
	usable := []class.Filter{{Name: "state", Values: []string{"available"}}}
	for _, f := range match {
		if f.Name == class.Owner {
			in.Owners = f.Values
		} else {
			usable = append(usable, f)
		}
	}
	in.Filters = filters(usable)
	var list []launch.Image
	err := pages(func(token string) (string, error) {
		in.NextToken = token
		out, err := call(ctx, a, in)
		if err != nil {
			return "", err
		}
		for _, i := range out.Images {
			list = append(list, launch.Image{ID: i.ID, Name: i.Name, Arch: i.Arch, Created: i.Created, Tags: plain(i.Tags)})
		}
		return out.NextToken, nil
	})
	if err != nil {
		return nil, kind("asking EC2 for images", err)
	}
	launch.NewestFirst(list)
	return list, nil
}

// Parameter returns the value of a public SSM parameter, or
// *launch.UnknownParameterError.
func (a *API) Parameter(ctx context.Context, name string) (string, error) {
	out, err := call(ctx, a, &ec2.GetParameterInput{Name: name})
	switch {
	case code(err) == "ParameterNotFound":
		return "", &launch.UnknownParameterError{Name: name}
	case err != nil:
		return "", kind("asking SSM for "+name, err)
	}
	return strings.TrimSpace(out.Parameter.Value), nil
}
