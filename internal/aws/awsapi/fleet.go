package awsapi

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"karpenter/internal/aws/launch"
	"karpenter/internal/cloud"
	"karpenter/internal/core/label"
)

// CreateFleet asks for one machine. The same token with the same fleet gives
// the same answer again; with another one it is *launch.MismatchError. A launch
// template that does not exist is *launch.TemplateGoneError.
//
// It is tried once: how long to wait after throttling is for the caller, who
// knows how many others want the same.
func (a *API) CreateFleet(ctx context.Context, token string, f launch.Fleet) (launch.Answer, error) {
	out, err := a.ec2.CreateFleet(ctx, fleetInput(token, f), func(o *ec2.Options) { o.RetryMaxAttempts = 1 })
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
		Type:        types.FleetTypeInstant,
		ClientToken: aws.String(token),
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{
			DefaultTargetCapacityType: types.DefaultTargetCapacityType(f.CapacityType),
			TotalTargetCapacity:       aws.Int32(int32(max(1, f.Count))),
		},
	}
	if f.Context != "" {
		in.Context = aws.String(f.Context)
	}
	if f.CapacityType == label.Spot {
		in.SpotOptions = &types.SpotOptionsRequest{AllocationStrategy: types.SpotAllocationStrategyPriceCapacityOptimized}
	} else {
		in.OnDemandOptions = &types.OnDemandOptionsRequest{AllocationStrategy: types.FleetOnDemandAllocationStrategyLowestPrice}
	}
	for _, c := range f.Configs {
		config := types.FleetLaunchTemplateConfigRequest{
			LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{
				LaunchTemplateName: aws.String(c.Template), Version: aws.String(c.Version),
			},
		}
		for _, o := range c.Overrides {
			config.Overrides = append(config.Overrides, types.FleetLaunchTemplateOverridesRequest{
				InstanceType: types.InstanceType(o.Type), SubnetId: aws.String(o.Subnet), AvailabilityZone: aws.String(o.Zone),
			})
		}
		in.LaunchTemplateConfigs = append(in.LaunchTemplateConfigs, config)
	}
	for _, r := range []types.ResourceType{types.ResourceTypeInstance, types.ResourceTypeVolume, types.ResourceTypeFleet} {
		in.TagSpecifications = append(in.TagSpecifications, types.TagSpecification{ResourceType: r, Tags: tags(f.Tags)})
	}
	return in
}

func answer(out *ec2.CreateFleetOutput) launch.Answer {
	var a launch.Answer
	for _, i := range out.Instances {
		override := place(i.LaunchTemplateAndOverrides)
		if override.Type == "" {
			override.Type = string(i.InstanceType)
		}
		for _, id := range i.InstanceIds {
			a.Machines = append(a.Machines, launch.Machine{ID: id, Override: override})
		}
	}
	for _, e := range out.Errors {
		a.Errors = append(a.Errors, launch.Refusal{
			Code: aws.ToString(e.ErrorCode), Message: aws.ToString(e.ErrorMessage), Override: place(e.LaunchTemplateAndOverrides),
		})
	}
	return a
}

// place tells which override an entry of the answer is about.
func place(p *types.LaunchTemplateAndOverridesResponse) launch.Override {
	if p == nil || p.Overrides == nil {
		return launch.Override{}
	}
	o := p.Overrides
	return launch.Override{Type: string(o.InstanceType), Subnet: aws.ToString(o.SubnetId), Zone: aws.ToString(o.AvailabilityZone)}
}

// DryRun asks, without effect, whether we may make the template, launch with it
// through a fleet, and run the machine: *cloud.MissingRightError if not. Any other
// error says nothing about rights.
func (a *API) DryRun(ctx context.Context, t launch.Template, f launch.Fleet) error {
	fleet := fleetInput("dry-run", f)
	fleet.DryRun = aws.Bool(true)
	template := templateInput(t)
	template.DryRun = aws.Bool(true)
	run := runInput(t, f)
	for i, try := range []func() error{
		func() error { _, err := a.ec2.CreateLaunchTemplate(ctx, template); return err },
		func() error { _, err := a.ec2.CreateFleet(ctx, fleet); return err },
		func() error { _, err := a.ec2.RunInstances(ctx, run); return err },
	} {
		if err := try(); forbidden(code(err)) {
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
	in := &ec2.RunInstancesInput{
		DryRun: aws.Bool(true), MinCount: aws.Int32(1), MaxCount: aws.Int32(1), InstanceType: types.InstanceType(first.Type), SubnetId: aws.String(first.Subnet),
		ImageId: aws.String(t.Data.ImageID), SecurityGroupIds: t.Data.SecurityGroups,
	}
	if t.Data.InstanceProfile != "" {
		in.IamInstanceProfile = &types.IamInstanceProfileSpecification{Name: aws.String(t.Data.InstanceProfile)}
	}
	for _, r := range []types.ResourceType{types.ResourceTypeInstance, types.ResourceTypeVolume} {
		in.TagSpecifications = append(in.TagSpecifications, types.TagSpecification{ResourceType: r, Tags: tags(f.Tags)})
	}
	return in
}
