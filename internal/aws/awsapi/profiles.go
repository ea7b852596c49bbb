package awsapi

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/smithy-go"

	"karpenter/internal/aws/launch"
)

const (
	noSuchEntity  = "NoSuchEntity"
	alreadyExists = "EntityAlreadyExists"
	limitExceeded = "LimitExceeded"
)

// InstanceProfile returns the profile, or *launch.UnknownProfileError.
func (a *API) InstanceProfile(ctx context.Context, name string) (launch.Profile, error) {
	out, err := a.iam.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: aws.String(name)})
	if code(err) == noSuchEntity {
		return launch.Profile{}, &launch.UnknownProfileError{Name: name}
	}
	if err != nil {
		return launch.Profile{}, kind("asking IAM for instance profile "+name, err)
	}
	return profile(out.InstanceProfile), nil
}

// InstanceProfiles lists the profiles below a path, by name. IAM does not tell
// their tags here.
func (a *API) InstanceProfiles(ctx context.Context, path string) ([]launch.Profile, error) {
	pages := iam.NewListInstanceProfilesPaginator(a.iam, &iam.ListInstanceProfilesInput{PathPrefix: aws.String(path), MaxItems: aws.Int32(1000)})
	var out []launch.Profile
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, kind("asking IAM for instance profiles", err)
		}
		for i := range page.InstanceProfiles {
			// Asked for already, but what is listed may be deleted.
			if p := profile(&page.InstanceProfiles[i]); strings.HasPrefix(p.Path, path) {
				out = append(out, p)
			}
		}
	}
	slices.SortFunc(out, func(a, b launch.Profile) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// CreateInstanceProfile makes the profile with its path and tags, without
// roles. It is no error if there is one of that name.
func (a *API) CreateInstanceProfile(ctx context.Context, p launch.Profile) error {
	in := &iam.CreateInstanceProfileInput{InstanceProfileName: aws.String(p.Name), Path: aws.String(p.Path)}
	for _, t := range p.Tags {
		in.Tags = append(in.Tags, types.Tag{Key: aws.String(t.Key), Value: aws.String(t.Value)})
	}
	_, err := a.iam.CreateInstanceProfile(ctx, in)
	if code(err) == alreadyExists {
		return nil
	}
	return kind("making instance profile "+p.Name, err)
}

// AttachRole puts the role into the profile. It is no error if it is there.
// Errors: *launch.UnknownRoleError, *launch.UnknownProfileError.
func (a *API) AttachRole(ctx context.Context, name, role string) error {
	_, err := a.iam.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: aws.String(name), RoleName: aws.String(role)})
	switch code(err) {
	case noSuchEntity:
		return unknownEntity(err, name, role)
	case limitExceeded: // a profile has room for one role
		if has, readErr := a.InstanceProfile(ctx, name); readErr == nil && slices.Contains(has.Roles, role) {
			return nil
		}
	}
	return kind("putting role "+role+" into instance profile "+name, err)
}

// unknownEntity tells which of the two IAM does not know; its words are all
// there is to tell by.
func unknownEntity(err error, profile, role string) error {
	var answer smithy.APIError
	if errors.As(err, &answer) && strings.Contains(strings.ToLower(answer.ErrorMessage()), "instance profile") {
		return &launch.UnknownProfileError{Name: profile}
	}
	return &launch.UnknownRoleError{Name: role}
}

// DetachRole takes the role out of the profile. It is no error if it is not in
// it.
func (a *API) DetachRole(ctx context.Context, name, role string) error {
	_, err := a.iam.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: aws.String(name), RoleName: aws.String(role)})
	if code(err) == noSuchEntity {
		return nil
	}
	return kind("taking role "+role+" out of instance profile "+name, err)
}

// DeleteInstanceProfile deletes a profile that holds no role. It is no error if
// there is none of that name.
func (a *API) DeleteInstanceProfile(ctx context.Context, name string) error {
	_, err := a.iam.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: aws.String(name)})
	if code(err) == noSuchEntity {
		return nil
	}
	return kind("deleting instance profile "+name, err)
}

func profile(p *types.InstanceProfile) launch.Profile {
	out := launch.Profile{Name: aws.ToString(p.InstanceProfileName), Path: aws.ToString(p.Path), Created: aws.ToTime(p.CreateDate)}
	for _, r := range p.Roles {
		out.Roles = append(out.Roles, aws.ToString(r.RoleName))
	}
	for _, t := range p.Tags {
		out.Tags = append(out.Tags, launch.Tag{Key: aws.ToString(t.Key), Value: aws.ToString(t.Value)})
	}
	slices.SortFunc(out.Tags, func(a, b launch.Tag) int { return cmp.Compare(a.Key, b.Key) })
	return out
}
