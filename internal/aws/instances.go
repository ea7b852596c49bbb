package aws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"karpenter/internal/aws/class"
	"karpenter/internal/aws/launch"
	"karpenter/internal/cloud"
)

// Find returns the machine of a launch token, or *cloud.NotFoundError. A
// machine that was launched a moment ago may not be found yet.
func (p *Provider) Find(ctx context.Context, token string) (cloud.Instance, error) {
	found, err := p.owned(ctx, class.Filter{Name: "tag:" + launch.TokenTag, Values: []string{token}})
	if err != nil {
		return cloud.Instance{}, err
	}
	if len(found) == 0 {
		return cloud.Instance{}, &cloud.NotFoundError{ID: "token " + token}
	}
	// A token has one machine; should there be more, take one that lives.
	return slices.MinFunc(found, func(a, b cloud.Instance) int {
		return cmp.Or(compareBool(a.State.Gone(), b.State.Gone()), cmp.Compare(a.ID, b.ID))
	}), nil
}

// Describe returns the machine with this id, or *cloud.NotFoundError. It does
// not ask whose it is: a machine of ours whose tags were taken away is not gone.
// Labels hold what follows from the instance; capacity is not known here.
func (p *Provider) Describe(ctx context.Context, id string) (cloud.Instance, error) {
	found, err := p.api.Instances(ctx, []string{id}, nil)
	if err != nil {
		return cloud.Instance{}, err
	}
	if len(found) == 0 {
		return cloud.Instance{}, &cloud.NotFoundError{ID: id}
	}
	return p.complete(found[0]), nil
}

// List returns all our machines that are not terminated, by id. A machine that
// was launched a moment ago may be missing.
func (p *Provider) List(ctx context.Context) ([]cloud.Instance, error) {
	return p.owned(ctx, class.Filter{Name: "instance-state-name", Values: []string{
		string(cloud.Pending), string(cloud.Running), string(cloud.Stopping), string(cloud.Stopped), string(cloud.ShuttingDown),
	}})
}

// owned returns the instances that carry our cluster tag, by id.
func (p *Provider) owned(ctx context.Context, match ...class.Filter) ([]cloud.Instance, error) {
	s, err := p.settings(ctx)
	if err != nil {
		return nil, err
	}
	match = append(match, class.Filter{Name: "tag:" + launch.OwnedTag(s.Cluster.Name), Values: []string{"owned"}})
	found, err := p.api.Instances(ctx, nil, match)
	if err != nil {
		return nil, err
	}
	for i := range found {
		found[i] = p.complete(found[i])
	}
	slices.SortFunc(found, func(a, b cloud.Instance) int { return cmp.Compare(a.ID, b.ID) })
	return found, nil
}

// Terminate ends one of our machines. It is no error if it is gone, or if EC2
// does not know it. An instance without our cluster tag is refused.
func (p *Provider) Terminate(ctx context.Context, id string) error {
	s, err := p.settings(ctx)
	if err != nil {
		return err
	}
	found, err := p.api.Instances(ctx, []string{id}, nil)
	var missing *cloud.NotFoundError
	switch {
	case errors.As(err, &missing) || (err == nil && len(found) == 0):
		// Terminated long ago, or too new to be shown: then it may still be
		// terminated.
	case err != nil:
		return err
	case found[0].State.Gone():
		return nil
	case found[0].Tags[launch.OwnedTag(s.Cluster.Name)] != "owned":
		return fmt.Errorf("instance %s is not terminated: it does not carry the tag %[2]s=owned, so it may be somebody else's; put the tag back, or terminate it by hand", id, launch.OwnedTag(s.Cluster.Name))
	}
	if err := p.api.Terminate(ctx, id); err != nil && !errors.As(err, &missing) {
		return err
	}
	return nil
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
