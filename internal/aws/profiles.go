package aws

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"karpenter/internal/aws/class"
	"karpenter/internal/aws/launch"
	"karpenter/internal/cloud"
	"karpenter/internal/core/world"
)

const (
	// profilesLast is how long a profile is believed to be as it was left.
	profilesLast = 15 * time.Minute
	// profileGrace is how long a profile is kept that nobody uses, sweepEvery how
	// often it is looked for such.
	profileGrace = time.Hour
	sweepEvery   = 30 * time.Minute
	// profileSettles is how long EC2 may not know a profile, or the role in it,
	// that IAM has just taken; launches wait so long. One that EC2 refuses all the
	// same waits again, until it is as old as profileTrust.
	profileSettles = 10 * time.Second
	profileTrust   = 2 * time.Minute
)

// profile returns the name of the instance profile of the class. For a role it
// is made if it is not there.
func (p *Provider) profile(ctx context.Context, s Settings, c *class.Class) (string, error) {
	switch {
	case c.LaunchTemplate != "":
		return "", nil
	case c.Role != "":
		return p.managedProfile(ctx, s, c)
	case c.InstanceProfile != "":
		return c.InstanceProfile, nil
	case s.Cluster.DefaultInstanceProfile != "":
		return s.Cluster.DefaultInstanceProfile, nil
	}
	return "", &cloud.BadClassError{
		Class: c.Ref, Field: c.Field("instanceProfile"),
		Problem: "neither the class nor the setting aws.defaultInstanceProfile names an instance profile: set one of them",
	}
}

// managedProfile makes sure that the profile for the role exists and holds it.
// Its name follows from class and role, so two processes that make it at once
// make the same one, and machines of another role keep theirs.
func (p *Provider) managedProfile(ctx context.Context, s Settings, c *class.Class) (string, error) {
	want := launch.ManagedProfile(p.Region(), &s.Cluster, c)
	missing := func() error {
		return &cloud.BadClassError{Class: c.Ref, Field: c.Field("role"), Problem: fmt.Sprintf("IAM has no role %q: create it, or correct the name", c.Role)}
	}
	if p.noRole.Has(c.Role) {
		return "", missing()
	}
	_, err := p.profiles.get(ctx, want.Name, func(ctx context.Context) (string, error) {
		return want.Name, p.ensureProfile(ctx, want)
	})
	var unknown *launch.UnknownRoleError
	switch {
	case errors.As(err, &unknown):
		p.noRole.Mark(c.Role)
		return "", missing()
	case err != nil:
		return "", err
	}
	p.usedProfiles.Mark(want.Name)
	return want.Name, nil
}

// settled tells whether EC2 may be taken to know a profile that we made;
// *cloud.NotYetError if not. A launch that names an unknown one is refused for
// good, as the answer belongs to its token.
func (p *Provider) settled(profile string) error {
	if !p.freshProfiles.Has(profile) {
		return nil
	}
	return &cloud.NotYetError{Err: fmt.Errorf("instance profile %q was made a moment ago, and EC2 may not know it", profile), After: profileSettles / 4}
}

// doubted notes that EC2 did not know the profile of an order, if it is so new
// that this will pass.
func (p *Provider) doubted(order *launch.Order, refusals []launch.Refusal) {
	if len(order.Templates) == 0 || !slices.ContainsFunc(refusals, launch.Refusal.NoProfile) {
		return
	}
	if name := order.Templates[0].Data.InstanceProfile; p.newProfiles.Has(name) {
		p.freshProfiles.Mark(name)
	}
}

// ensureProfile makes the profile and leaves it with the wanted role only.
func (p *Provider) ensureProfile(ctx context.Context, want launch.Profile) error {
	have, err := p.api.InstanceProfile(ctx, want.Name)
	var unknown *launch.UnknownProfileError
	if errors.As(err, &unknown) {
		err = p.api.CreateInstanceProfile(ctx, want)
	}
	if err == nil && slices.Equal(have.Roles, want.Roles) {
		if p.now().Sub(have.Created) < profileSettles { // made by the process before this one
			p.freshProfiles.Mark(want.Name)
			p.newProfiles.Mark(want.Name)
		}
		return nil
	}
	if err != nil {
		return err
	}
	p.freshProfiles.Mark(want.Name)
	p.newProfiles.Mark(want.Name)
	for _, role := range have.Roles { // a profile holds one role
		if err := p.api.DetachRole(ctx, want.Name, role); err != nil {
			return err
		}
	}
	return p.api.AttachRole(ctx, want.Name, want.Roles[0])
}

// SweepProfiles deletes the instance profiles of this cluster that we made and
// that neither one of the classes nor a machine uses, nor has used in the last
// hour. It asks IAM every half hour at most, and never if there is no class.
func (p *Provider) SweepProfiles(ctx context.Context, classes []world.ClassRef) error {
	s, err := p.settings(ctx)
	if err != nil || s.IsolatedVPC || len(classes) == 0 || p.sweeps.Has(everything) {
		return err
	}
	p.sweeps.Mark(everything)
	used := map[string]bool{}
	for _, ref := range classes {
		c, err := p.classes.Class(ctx, ref)
		if err != nil {
			return fmt.Errorf("which instance profiles are in use is not known: %w", err)
		}
		if c.Role != "" {
			used[launch.ManagedProfile(p.Region(), &s.Cluster, &c).Name] = true
		}
	}
	machines, err := p.List(ctx)
	if err != nil {
		return err
	}
	for _, m := range machines {
		used[m.InstanceProfile] = true
	}
	return p.deleteProfiles(ctx, launch.ProfilePath(p.Region(), s.Cluster.Name), func(have launch.Profile) bool {
		return !used[have.Name] && !p.usedProfiles.Has(have.Name) && p.now().Sub(have.Created) >= profileGrace
	})
}

func (p *Provider) deleteProfiles(ctx context.Context, path string, unused func(launch.Profile) bool) error {
	list, err := p.api.InstanceProfiles(ctx, path)
	if err != nil {
		return err
	}
	var errs []error
	for _, have := range list {
		if !unused(have) {
			continue
		}
		for _, role := range have.Roles {
			err = errors.Join(err, p.api.DetachRole(ctx, have.Name, role))
		}
		if err == nil {
			err = p.api.DeleteInstanceProfile(ctx, have.Name)
		}
		p.profiles.forget(have.Name)
		errs, err = append(errs, err), nil
	}
	return errors.Join(errs...)
}

// Retire deletes what was made for a class that is going: its instance profiles
// and launch templates. No machine of it may be left.
func (p *Provider) Retire(ctx context.Context, c class.Class) error {
	s, err := p.settings(ctx)
	if err != nil {
		return err
	}
	if c.Newer() && (c.Role != "" || !s.IsolatedVPC) {
		err = p.deleteProfiles(ctx, launch.ClassProfilePath(p.Region(), s.Cluster.Name, &c), func(launch.Profile) bool { return true })
		// Without a role it may have named one before; where we have no right to ask,
		// it never did.
		var forbidden *cloud.ForbiddenError
		if c.Role == "" && errors.As(err, &forbidden) {
			err = nil
		}
	}
	if c.Newer() { // the templates of others do not tell their class, and are swept
		err = errors.Join(err, p.deleteTemplates(ctx, class.Term{
			{Name: "tag:" + launch.ClusterTag, Values: []string{s.Cluster.Name}}, {Name: "tag:" + launch.ClassTag, Values: []string{c.Ref.Name}},
		}, func(launch.TemplateInfo) bool { return true }))
	}
	return err
}
