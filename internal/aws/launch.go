package aws

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"karpenter/internal/aws/class"
	"karpenter/internal/aws/launch"
	"karpenter/internal/cloud"
	"karpenter/internal/core/label"
)

// Prepare decides what is sent for a request, and makes sure that the launch
// templates exist. The result can be stored and sent again. Errors:
// *cloud.NoCapacityError if nothing that fits can be bought now,
// *cloud.BadClassError, *cloud.ThrottledError.
func (p *Provider) Prepare(ctx context.Context, req cloud.LaunchRequest) (cloud.Prepared, error) {
	s, c, err := p.look(ctx, req.Class)
	if err != nil {
		return "", err
	}
	plan, err := p.plan(ctx, s, &c, &req)
	if err != nil {
		return "", err
	}
	p.inFlight.add(plan.Subnets, p.now())
	order, err := plan.Order()
	if err != nil {
		return "", err
	}
	for _, t := range order.Templates {
		if err := p.ensure(ctx, t); err != nil {
			return "", err
		}
	}
	return launch.Encode(order)
}

func (p *Provider) plan(ctx context.Context, s Settings, c *class.Class, req *cloud.LaunchRequest) (launch.Plan, error) {
	cat, err := p.catalog(ctx, s, c, req.Kubelet)
	if err != nil {
		return launch.Plan{}, err
	}
	candidates := launch.Fitting(cat.Types, req)
	if len(candidates) == 0 {
		return launch.Plan{}, launch.NothingFits(cat.Types, req)
	}
	images, err := p.images(ctx, s, c)
	if err != nil {
		return launch.Plan{}, err
	}
	if candidates, err = withImages(images, c, candidates); err != nil {
		return launch.Plan{}, err
	}
	out := launch.Plan{Class: c, Cluster: &s.Cluster, Request: req}
	out.CapacityType, out.Candidates = launch.Choose(candidates, req, c.Newer())
	if out.Profile, err = p.profile(ctx, s, c); err != nil {
		return launch.Plan{}, err
	}
	if err := p.settled(out.Profile); err != nil {
		return launch.Plan{}, err
	}
	if c.LaunchTemplate == "" {
		groups, err := p.securityGroups(ctx, c)
		if err != nil {
			return launch.Plan{}, err
		}
		for _, g := range groups {
			out.Groups = append(out.Groups, g.ID)
		}
	}
	subnets, err := p.openSubnets(ctx, c)
	if err != nil {
		return launch.Plan{}, err
	}
	out.Subnets = launch.BestSubnets(subnets)
	maps.DeleteFunc(out.Subnets, func(zone string, _ launch.Subnet) bool { return !launch.InZone(out.Candidates, zone) })
	return out, nil
}

// Launch sends what Prepare made. It may be repeated with the same token: the
// machine that was made the first time is returned again. Errors:
// *cloud.NoCapacityError if every offering was refused (they are remembered),
// *cloud.RefusedError, *cloud.ThrottledError, *cloud.RewrittenError.
func (p *Provider) Launch(ctx context.Context, token string, prepared cloud.Prepared) (cloud.Instance, error) {
	order, err := launch.Decode(prepared)
	if err != nil {
		return cloud.Instance{}, err
	}
	if order.Together != nil {
		return p.launchTogether(ctx, token, &order)
	}
	if stored := order.Fleet.Tag(launch.TokenTag); stored != token {
		return cloud.Instance{}, fmt.Errorf("the stored launch belongs to token %q, not to %q", stored, token)
	}
	if t := p.waiters.part(token); t != nil {
		return cloud.Instance{}, t.rewritten(&order)
	}
	answer, err := p.send(ctx, token, &order)
	var slow *cloud.ThrottledError
	if errors.As(err, &slow) {
		after, t := p.waiters.wait(token, &order, slow.After)
		if t != nil {
			return cloud.Instance{}, t.rewritten(&order)
		}
		if after < slow.After { // it will come before its turn, to see who else is there
			p.pace.leave(token)
		}
		slow.After = after
	}
	var mismatch *launch.MismatchError
	if errors.As(err, &mismatch) {
		return p.foundAgain(ctx, token, &order, err)
	}
	if err != nil {
		return cloud.Instance{}, err
	}
	refused := p.remember(&order, answer.Errors)
	if len(answer.Machines) == 0 {
		return cloud.Instance{}, p.nothing(&order, answer.Errors, refused)
	}
	return p.launched(ctx, &order, answer.Machines[0]), nil
}

// send sends the order, unless it is another one's turn; launch templates that
// were deleted behind our back are made again, and the same is sent once more.
func (p *Provider) send(ctx context.Context, token string, order *launch.Order) (launch.Answer, error) {
	if wait := p.pace.turn(token); wait > 0 {
		return launch.Answer{}, &cloud.ThrottledError{Err: errors.New("others are before this one"), After: wait}
	}
	if t := p.waiters.leave(token, &order.Fleet); t != nil {
		return launch.Answer{}, t.rewritten(order)
	}
	answer, err := p.api.CreateFleet(ctx, token, order.Fleet)
	var slow *cloud.ThrottledError
	if errors.As(err, &slow) {
		return answer, &cloud.ThrottledError{Err: slow.Err, After: p.pace.refused(token)}
	}
	p.pace.served()
	var gone *launch.TemplateGoneError
	if !errors.As(err, &gone) || len(order.Templates) == 0 {
		return answer, err
	}
	for _, t := range order.Templates {
		p.templates.Forget(t.Name)
		if err := p.ensure(ctx, t); err != nil {
			return launch.Answer{}, err
		}
	}
	return p.api.CreateFleet(ctx, token, order.Fleet)
}

// foundAgain looks up by its tag the machine of a token that EC2 knows with
// another request.
func (p *Provider) foundAgain(ctx context.Context, token string, order *launch.Order, mismatch error) (cloud.Instance, error) {
	i, err := p.Find(ctx, token)
	var missing *cloud.NotFoundError
	switch {
	case errors.As(err, &missing):
		return cloud.Instance{}, fmt.Errorf("no instance carries the token's tag (yet): %w", mismatch)
	case err != nil:
		return cloud.Instance{}, err
	}
	return promise(i, order), nil
}

// allSpot stands for every spot offering in the table of refused ones.
var allSpot = cloud.OfferingKey{CapacityType: label.Spot}

// remember marks what was refused and returns the offerings among it.
func (p *Provider) remember(order *launch.Order, refusals []launch.Refusal) []cloud.OfferingKey {
	var refused []cloud.OfferingKey
	for _, r := range refusals {
		o := order.Fleet.Complete(r.Override)
		switch {
		case r.NoAddress() && o.Subnet != "":
			p.closed.Mark(o.Subnet)
		case r.NoCapacity() && o.Type != "" && o.Zone != "":
			refused = append(refused, cloud.OfferingKey{Type: o.Type, Zone: o.Zone, CapacityType: order.Fleet.CapacityType})
		case r.NoSpot():
			refused = append(refused, allSpot)
		case r.Code == launch.TemplateGoneCode:
			for _, t := range order.Templates {
				p.templates.Forget(t.Name)
			}
		}
	}
	slices.SortFunc(refused, cloud.OfferingKey.Compare)
	refused = slices.Compact(refused)
	p.unavailable.Mark(refused...)
	return refused
}

// nothing says why there is no machine, and whether another choice of offerings
// can help. EC2 would give the same answer to the same token for ever.
func (p *Provider) nothing(order *launch.Order, refusals []launch.Refusal, refused []cloud.OfferingKey) error {
	p.doubted(order, refusals)
	detail := launch.Describe(refusals)
	if len(refusals) == 0 {
		refused = order.Fleet.Keys()
		p.unavailable.Mark(refused...)
	}
	if len(refusals) == 0 || slices.ContainsFunc(refusals, launch.Refusal.OtherRequestHelps) {
		return &cloud.NoCapacityError{Refused: refused, Detail: detail}
	}
	return &cloud.RefusedError{Detail: detail}
}

// launched describes a new machine.
func (p *Provider) launched(ctx context.Context, order *launch.Order, m launch.Machine) cloud.Instance {
	shown, _, err := p.byID.get(ctx, m.ID)
	if err != nil {
		shown = cloud.Instance{}
	}
	return promise(p.complete(p.asLaunched(order, m, shown)), order)
}

// asLaunched is the machine as EC2 shows it; where it does not yet, or not its
// tags, what the fleet said must do.
func (p *Provider) asLaunched(order *launch.Order, m launch.Machine, shown cloud.Instance) cloud.Instance {
	o := order.Fleet.Complete(m.Override)
	i := cloud.Instance{
		ID: m.ID, Type: o.Type, Zone: o.Zone,
		CapacityType: order.Fleet.CapacityType,
		ImageID:      order.Fleet.Image(o),
		State:        cloud.Pending,
		Launched:     p.now(),
		Token:        order.Fleet.Tag(launch.TokenTag),
		Claim:        order.Fleet.Tag(launch.ClaimTag),
		Tags:         order.Fleet.TagMap(),
	}
	if len(order.Templates) > 0 {
		i.InstanceProfile = order.Templates[0].Data.InstanceProfile
	}
	if shown.ID == "" {
		return i
	}
	if len(shown.Tags) == 0 {
		shown.Tags, shown.Token, shown.Claim = i.Tags, i.Token, i.Claim
	}
	return shown
}

// promise adds what the order knows about the type of the instance.
func promise(i cloud.Instance, order *launch.Order) cloud.Instance {
	t, ok := order.Types[i.Type]
	if !ok {
		return i
	}
	labels := maps.Clone(t.Labels)
	maps.Copy(labels, i.Labels)
	i.Labels, i.Capacity, i.Allocatable = labels, t.Capacity, t.Allocatable
	return i
}

// ImageLabel tells from which image a node was made.
const ImageLabel = "karpenter.k8s.aws/instance-ami-id"

// complete adds what follows from the instance alone.
func (p *Provider) complete(i cloud.Instance) cloud.Instance {
	i.ProviderID = "aws:///" + i.Zone + "/" + i.ID
	i.Labels = map[string]string{
		label.InstanceType: i.Type,
		label.Zone:         i.Zone,
		label.Region:       p.Region(),
		label.CapacityType: i.CapacityType,
		ImageLabel:         i.ImageID,
	}
	maps.DeleteFunc(i.Labels, func(_, v string) bool { return strings.TrimSpace(v) == "" })
	return i
}
