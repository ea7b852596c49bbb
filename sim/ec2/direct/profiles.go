package direct

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"karpenter/internal/aws/launch"
	"karpenter/sim/ec2"
)

const noSuchEntity = "NoSuchEntity"

// InstanceProfile returns the profile, or *launch.UnknownProfileError.
func (a *API) InstanceProfile(ctx context.Context, name string) (launch.Profile, error) {
	out, err := call(ctx, a, &ec2.GetInstanceProfileInput{InstanceProfileName: name})
	if code(err) == noSuchEntity {
		return launch.Profile{}, &launch.UnknownProfileError{Name: name}
	}
	if err != nil {
		return launch.Profile{}, kind("asking IAM for instance profile "+name, err)
	}
	return profile(out.Profile), nil
}

// InstanceProfiles lists the profiles below a path, by name, without tags.
func (a *API) InstanceProfiles(ctx context.Context, path string) ([]launch.Profile, error) {
	in := &ec2.ListInstanceProfilesInput{PathPrefix: path, MaxItems: limit(1000)}
	var list []launch.Profile
	err := pages(func(token string) (string, error) {
		in.Marker = token
		out, err := call(ctx, a, in)
		if err != nil {
			return "", err
		}
		for _, p := range out.Profiles {
			list = append(list, profile(p))
		}
		return out.Marker, nil
	})
	if err != nil {
		return nil, kind("asking IAM for instance profiles", err)
	}
	slices.SortFunc(list, func(a, b launch.Profile) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// CreateInstanceProfile makes the profile with its path and tags, without
// roles. It is no error if there is one of that name.
func (a *API) CreateInstanceProfile(ctx context.Context, p launch.Profile) error {
	_, err := call(ctx, a, &ec2.CreateInstanceProfileInput{InstanceProfileName: p.Name, Path: p.Path, Tags: tags(p.Tags)})
	if code(err) == "EntityAlreadyExists" {
		return nil
	}
	return kind("making instance profile "+p.Name, err)
}

// AttachRole puts the role into the profile. It is no error if it is there.
// Errors: *launch.UnknownRoleError, *launch.UnknownProfileError.
func (a *API) AttachRole(ctx context.Context, name, role string) error {
	_, err := call(ctx, a, &ec2.AddRoleToInstanceProfileInput{InstanceProfileName: name, RoleName: role})
	var answer *ec2.Error
	switch {
	case code(err) == noSuchEntity && errors.As(err, &answer) && strings.Contains(answer.Message, "Instance Profile"):
		return &launch.UnknownProfileError{Name: name}
	case code(err) == noSuchEntity:
		return &launch.UnknownRoleError{Name: role}
	case code(err) == "LimitExceeded":
		if has, readErr := a.InstanceProfile(ctx, name); readErr == nil && slices.Contains(has.Roles, role) {
			return nil
		}
	}
	return kind("putting role "+role+" into instance profile "+name, err)
}

// DetachRole takes the role out of the profile. It is no error if it is not in
// it.
func (a *API) DetachRole(ctx context.Context, name, role string) error {
	_, err := call(ctx, a, &ec2.RemoveRoleFromInstanceProfileInput{InstanceProfileName: name, RoleName: role})
	if code(err) == noSuchEntity {
		return nil
	}
	return kind("taking role "+role+" out of instance profile "+name, err)
}

// DeleteInstanceProfile deletes a profile that holds no role. It is no error if
// there is none of that name.
func (a *API) DeleteInstanceProfile(ctx context.Context, name string) error {
	_, err := call(ctx, a, &ec2.DeleteInstanceProfileInput{InstanceProfileName: name})
	if code(err) == noSuchEntity {
		return nil
	}
	return kind("deleting instance profile "+name, err)
}

func profile(p ec2.InstanceProfileInfo) launch.Profile {
	out := launch.Profile{Name: p.Name, Path: p.Path, Created: p.Created}
	for _, r := range p.Roles {
		out.Roles = append(out.Roles, r.Name)
	}
	for _, t := range p.Tags { // sorted by key
		out.Tags = append(out.Tags, launch.Tag{Key: t.Key, Value: t.Value})
	}
	return out
}

// Cluster returns what EKS knows about the cluster, or
// *launch.UnknownClusterError.
func (a *API) Cluster(ctx context.Context, name string) (launch.EKSCluster, error) {
	out, err := call(ctx, a, &ec2.DescribeClusterInput{Name: name})
	if code(err) == "ResourceNotFoundException" {
		return launch.EKSCluster{}, &launch.UnknownClusterError{Name: name}
	}
	if err != nil {
		return launch.EKSCluster{}, kind("asking EKS about cluster "+name, err)
	}
	k := out.Cluster
	c := launch.EKSCluster{Endpoint: k.Endpoint, Version: k.Version, CABundle: k.Authority.Data}
	cidr := cmp.Or(k.Network.IPv6, k.Network.IPv4)
	if c.ServiceCIDR, err = netip.ParsePrefix(cidr); err != nil && cidr != "" {
		return launch.EKSCluster{}, fmt.Errorf("asking EKS about cluster %s: the addresses of its Services: %w", name, err)
	}
	return c, nil
}
