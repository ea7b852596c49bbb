package aws

import (
	"context"
	"errors"
	"time"

	"karpenter/internal/aws/class"
	"karpenter/internal/aws/launch"
	"karpenter/internal/cloud"
	"karpenter/internal/core/label"
)

// Times for which it is believed that the rights to launch are there, and that
// one is missing, as somebody may be about to give it.
const (
	rightsLast  = 30 * time.Minute
	rightsRetry = time.Minute
)

// verdict is what trying out has shown; nil: no right is missing.
type verdict struct{ missing *cloud.MissingRightError }

// tryRights tries out, without effect, whether a machine of the class may be
// launched. What keeps it from being tried, or fails for another reason, is no
// error: it shows when something is launched.
func (p *Provider) tryRights(ctx context.Context, s Settings, c *class.Class) error {
	if s.DisableDryRun || !c.Newer() || c.LaunchTemplate != "" {
		return nil
	}
	plan, err := p.plan(ctx, s, c, &cloud.LaunchRequest{Claim: "dry-run", Token: "dry-run", Pool: "dry-run", PoolLabel: label.NodePool, Class: c.Ref})
	if err != nil {
		return nil
	}
	plan.Candidates = plan.Candidates[:1]
	order, err := plan.Order()
	if err != nil || len(order.Templates) == 0 {
		return nil
	}
	// The template has the name of its content: profile, user data, tags.
	ask := func(ctx context.Context) (verdict, error) {
		var v verdict
		err := p.api.DryRun(ctx, order.Templates[0], order.Fleet)
		if errors.As(err, &v.missing) {
			err = nil
		}
		return v, err
	}
	key := c.Ref.Name + " " + order.Templates[0].Name
	got, err := p.rights.get(ctx, key, ask)
	if err == nil && got.value.missing != nil && p.now().Sub(got.at) >= rightsRetry {
		got, err = p.rights.reload(ctx, key, ask)
	}
	if err != nil || got.value.missing == nil {
		return nil
	}
	return got.value.missing
}

// rightsAPI tries calls out.
type rightsAPI interface {
	// DryRun asks, without effect, whether we may make the template, launch with it
	// through a fleet, and run the machine: *cloud.MissingRightError if not. Any
	// other error says nothing about rights.
	DryRun(ctx context.Context, t launch.Template, f launch.Fleet) error
}
