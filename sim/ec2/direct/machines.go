package direct

import (
	"context"
	"path"
	"strings"

	"karpenter/internal/aws/class"
	"karpenter/internal/aws/launch"
	"karpenter/internal/cloud"
	"karpenter/internal/core/label"
	"karpenter/sim/ec2"
)

// CreateFleet asks for one machine. The same token with the same fleet gives
// the same answer again; with another one it is *launch.MismatchError. A launch
// template that does not exist is *launch.TemplateGoneError.
func (a *API) CreateFleet(ctx context.Context, token string, f launch.Fleet) (launch.Answer, error) {
	out, err := call(ctx, a, fleetInput(token, f))
	switch c := code(err); {
	case c == "IdempotentParameterMismatch":
		return launch.Answer{}, &launch.MismatchError{Err: err}
	case c == launch.TemplateGoneCode:
		return launch.Answer{}, &launch.TemplateGoneError{Name: f.Configs[0].Template, Err: err}
	case err != nil:
		return launch.Answer{}, kind("asking EC2 Fleet for a machine", err)
	}
	return answer(out), nil
}

func fleetInput(token string, f launch.Fleet) *ec2.CreateFleetInput {
	in := &ec2.CreateFleetInput{
		Type: "instant", ClientToken: token, Context: f.Context,
		Target: ec2.TargetCapacity{Default: ec2.Market(f.CapacityType), Total: float64(max(1, f.Count))},
	}
	if f.CapacityType == label.Spot {
		in.SpotOptions.AllocationStrategy = "price-capacity-optimized"
	} else {
		in.OnDemandOptions.AllocationStrategy = "lowest-price"
	}
	for _, c := range f.Configs {
		config := ec2.FleetConfig{Template: ec2.TemplateRef{LaunchTemplateName: c.Template, Version: c.Version}}
		for _, o := range c.Overrides {
			config.Overrides = append(config.Overrides, ec2.Override{InstanceType: o.Type, SubnetID: o.Subnet, AvailabilityZone: o.Zone})
		}
		in.Configs = append(in.Configs, config)
	}
	for _, kind := range []string{"instance", "volume", "fleet"} {
		in.TagSpecs = append(in.TagSpecs, ec2.TagSpec{ResourceType: kind, Tags: tags(f.Tags)})
	}
	return in
}

func answer(out *ec2.CreateFleetOutput) launch.Answer {
	var a launch.Answer
	for _, i := range out.Instances {
		for _, id := range i.IDs {
			a.Machines = append(a.Machines, launch.Machine{ID: id, Override: place(i.Choice)})
		}
	}
	for _, e := range out.Errors {
		a.Errors = append(a.Errors, launch.Refusal{Code: e.Code, Message: e.Message, Override: place(e.Choice)})
	}
	return a
}

// place tells which override an entry of the answer is about.
func place(c ec2.Choice) launch.Override {
	return launch.Override{Type: c.Override.InstanceType, Subnet: c.Override.SubnetID, Zone: c.Override.AvailabilityZone}
}

// Instances returns the instances with these ids (nil: any) that match all
// filters. An id that EC2 does not know is *cloud.NotFoundError.
func (a *API) Instances(ctx context.Context, ids []string, match []class.Filter) ([]cloud.Instance, error) {
	in := &ec2.DescribeInstancesInput{IDs: ids, Filters: filters(match)}
	if len(ids) == 0 {
		in.MaxResults = limit(1000) // not allowed together with ids
	}
	var list []cloud.Instance
	err := pages(func(token string) (string, error) {
		in.NextToken = token
		out, err := call(ctx, a, in)
		if err != nil {
			return "", err
		}
		for _, r := range out.Reservations {
			for i := range r.Instances {
				list = append(list, instance(&r.Instances[i]))
			}
		}
		return out.NextToken, nil
	})
	if notFound(code(err)) && len(ids) == 1 {
		return nil, &cloud.NotFoundError{ID: ids[0]}
	}
	if err != nil {
		return nil, kind("asking EC2 for instances", err)
	}
	return list, nil
}

func instance(i *ec2.InstanceInfo) cloud.Instance {
	out := cloud.Instance{
		ID: i.ID, Type: i.Type, Zone: i.Placement.Zone, CapacityType: label.OnDemand, ImageID: i.ImageID, PrivateDNS: i.PrivateDNS, Subnet: i.Subnet,
		State: cloud.State(i.State.Name), Launched: i.Launched, Tags: plain(i.Tags),
	}
	for _, g := range i.Groups {
		out.SecurityGroups = append(out.SecurityGroups, g.ID)
	}
	if i.Market == string(ec2.Spot) {
		out.CapacityType = label.Spot
	}
	if i.Profile != nil {
		out.InstanceProfile = path.Base(i.Profile.ARN)
	}
	out.Token, out.Claim = out.Tags[launch.TokenTag], out.Tags[launch.ClaimTag]
	return out
}

// Terminate ends all of the instances, or none: one that EC2 does not know is
// *cloud.NotFoundError.
func (a *API) Terminate(ctx context.Context, ids ...string) error {
	_, err := call(ctx, a, &ec2.TerminateInstancesInput{IDs: ids})
	return missing("terminating", strings.Join(ids, ", "), err)
}

// Tag sets tags of an instance. One that EC2 does not know is
// *cloud.NotFoundError.
func (a *API) Tag(ctx context.Context, id string, set []launch.Tag) error {
	_, err := call(ctx, a, &ec2.CreateTagsInput{IDs: []string{id}, Tags: tags(set)})
	return missing("tagging instance", id, err)
}

// Untag takes tags off an instance, whatever their values are.
func (a *API) Untag(ctx context.Context, id string, keys []string) error {
	in := &ec2.DeleteTagsInput{IDs: []string{id}, Tags: ec2.Tags{}}
	for _, k := range keys {
		in.Tags[k] = ""
	}
	_, err := call(ctx, a, in)
	return missing("taking tags off instance", id, err)
}

// missing wraps an error of a call about instances.
func missing(doing, what string, err error) error {
	if notFound(code(err)) {
		return &cloud.NotFoundError{ID: what}
	}
	return kind(doing+" "+what, err)
}

// DryRun asks, without effect, whether we may make the template, launch with it
// through a fleet, and run the machine: *cloud.MissingRightError if not. Any other
// error says nothing about rights.
func (a *API) DryRun(ctx context.Context, t launch.Template, f launch.Fleet) error {
	fleet, template, run := fleetInput("dry-run", f), templateInput(t), runInput(t, f)
	fleet.DryRun, template.DryRun = true, true
	for i, try := range []func() error{
		func() error { _, err := call(ctx, a, template); return err },
		func() error { _, err := call(ctx, a, fleet); return err },
		func() error { _, err := call(ctx, a, run); return err },
	} {
		if err := try(); code(err) == "UnauthorizedOperation" {
			return &cloud.MissingRightError{Right: launch.Tried[i].Right, Reason: launch.Tried[i].Reason, Err: kind("trying it out", err)}
		} else if code(err) != "DryRunOperation" {
			return kind("trying out "+launch.Tried[i].Right, err)
		}
	}
	return nil
}

// runInput asks for the first machine of a fleet without one.
func runInput(t launch.Template, f launch.Fleet) *ec2.RunInstancesInput {
	first := f.Configs[0].Overrides[0]
	in := &ec2.RunInstancesInput{Common: ec2.Common{DryRun: true}, MinCount: 1, MaxCount: 1, SubnetID: first.Subnet}
	in.InstanceType, in.ImageID, in.SecurityGroups = first.Type, t.Data.ImageID, t.Data.SecurityGroups
	if t.Data.InstanceProfile != "" {
		in.Profile = &ec2.Profile{Name: t.Data.InstanceProfile}
	}
	for _, kind := range []string{"instance", "volume"} {
		in.TagSpecs = append(in.TagSpecs, ec2.TagSpec{ResourceType: kind, Tags: tags(f.Tags)})
	}
	return in
}
