package aws

import (
	"context"
	"fmt"
	"slices"

	"karpenter/internal/aws/launch"
	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
)

// Ways in which a machine differs from what its class selects now.
const (
	AMIDrift           = "AMIDrift"
	SubnetDrift        = "SubnetDrift"
	SecurityGroupDrift = "SecurityGroupDrift"
)

// Running is one of our machines, as far as it may drift.
type Running struct {
	// ID of the instance; empty: only its image is looked at.
	ID string
	// ImageID from which it was started, and the labels of its type.
	ImageID string
	Labels  map[string]string
}

// Drifted tells how a machine differs from what its class selects now, and in
// words; the first way counts, and an empty one means that it does not. What
// cannot be looked up at the moment is an error: nothing has drifted because of
// it.
func (p *Provider) Drifted(ctx context.Context, ref world.ClassRef, m Running) (reason, detail string, err error) {
	s, c, err := p.look(ctx, ref)
	if err != nil || c.LaunchTemplate != "" { // the user's own template says nothing that could be compared
		return "", "", err
	}
	set, err := p.images(ctx, s, &c)
	if err != nil {
		return "", "", err
	}
	var now []string
	for _, im := range set.list {
		if label.Matches(im.Requirements, m.Labels) {
			now = append(now, im.ID)
		}
	}
	if set.failed != nil || len(now) == 0 {
		return "", "", set.failed
	}
	if m.ImageID != "" && !slices.Contains(now, m.ImageID) {
		return AMIDrift, fmt.Sprintf("it was started from image %s, and %s would be chosen now", m.ImageID, now[0]), nil
	}
	if m.ID == "" {
		return "", "", nil
	}
	i, err := p.Describe(ctx, m.ID)
	if err != nil {
		return "", "", err
	}
	subnets, err := p.cachedSubnets(ctx, &c)
	if err != nil {
		return "", "", err
	}
	if i.Subnet != "" && !slices.ContainsFunc(subnets.value, func(n launch.Subnet) bool { return n.ID == i.Subnet }) {
		return SubnetDrift, fmt.Sprintf("it is in subnet %s, which is not selected any more", i.Subnet), nil
	}
	groups, err := p.securityGroups(ctx, &c)
	if err != nil {
		return "", "", err
	}
	var want []string
	for _, g := range groups {
		want = append(want, g.ID)
	}
	if has := slices.Sorted(slices.Values(i.SecurityGroups)); len(has) > 0 {
		if slices.Sort(want); !slices.Equal(slices.Compact(has), slices.Compact(want)) {
			return SecurityGroupDrift, fmt.Sprintf("it has security groups %v, and %v are selected now", has, want), nil
		}
	}
	return "", "", nil
}
