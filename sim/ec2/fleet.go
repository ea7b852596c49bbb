package ec2

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"karpenter/internal/core/quantity"
)

// CreateFleetInput starts machines from a list of choices. Only fleets of type
// instant are simulated.
type CreateFleetInput struct {
	Common
	ClientToken     string
	Type            string
	Context         string
	Configs         []FleetConfig  `query:"LaunchTemplateConfigs"`
	Target          TargetCapacity `query:"TargetCapacitySpecification"`
	SpotOptions     FleetOptions
	OnDemandOptions FleetOptions
	TagSpecs        []TagSpec `query:"TagSpecification"`

	ExcessCapacityTerminationPolicy string
	// TerminateInstancesWithExpiration and ReplaceUnhealthyInstances mean
	// nothing to instant fleets.
	TerminateInstancesWithExpiration bool
	ReplaceUnhealthyInstances        bool
}

// FleetConfig is a launch template with choices of where and what to start.
type FleetConfig struct {
	Template  TemplateRef `query:"LaunchTemplateSpecification"`
	Overrides []Override
}

// Override is one choice.
type Override struct {
	InstanceType     string   `xml:"instanceType,omitempty"`
	MaxPrice         string   `xml:"maxPrice,omitempty"`
	SubnetID         string   `query:"SubnetId" xml:"subnetId,omitempty"`
	AvailabilityZone string   `xml:"availabilityZone,omitempty"`
	WeightedCapacity *float64 `xml:"weightedCapacity"`
	Priority         *float64 `xml:"priority"`
	ImageID          string   `query:"ImageId" xml:"imageId,omitempty"`
}

// TargetCapacity says how much is wanted, in machines or weights.
type TargetCapacity struct {
	Total        float64 `query:"TotalTargetCapacity"`
	OnDemand     float64 `query:"OnDemandTargetCapacity"`
	Spot         float64 `query:"SpotTargetCapacity"`
	Default      Market  `query:"DefaultTargetCapacityType"`
	CapacityUnit string  `query:"TargetCapacityUnitType"`
}

// FleetOptions are those of one market.
type FleetOptions struct {
	AllocationStrategy           string
	InstanceInterruptionBehavior string
}

// CreateFleetOutput says what was started and what was refused.
type CreateFleetOutput struct {
	Response
	FleetID   string             `xml:"fleetId"`
	Errors    Set[FleetError]    `xml:"errorSet"`
	Instances Set[FleetInstance] `xml:"fleetInstanceSet"`
}

// Choice is an override with its template.
type Choice struct {
	Template TemplateRef `xml:"launchTemplateSpecification"`
	Override Override    `xml:"overrides"`
}

// FleetError is a refused choice.
type FleetError struct {
	Choice  Choice `xml:"launchTemplateAndOverrides"`
	Market  Market `xml:"lifecycle"`
	Code    string `xml:"errorCode"`
	Message string `xml:"errorMessage"`
}

// FleetInstance are the machines that a choice gave.
type FleetInstance struct {
	Choice Choice      `xml:"launchTemplateAndOverrides"`
	Market Market      `xml:"lifecycle"`
	IDs    Set[string] `xml:"instanceIds"`
	Type   string      `xml:"instanceType"`
}

func (in *CreateFleetInput) clientToken() string { return in.ClientToken }

func (o *CreateFleetOutput) instanceIDs() []string {
	var out []string
	for _, i := range o.Instances {
		out = append(out, i.IDs...)
	}
	return out
}

// candidate is a choice as the fleet sees it.
type candidate struct {
	Choice
	template *Template
	weight   float64
	rank     float64 // the lowest is tried first
}

func (in *CreateFleetInput) do(c *Cloud) (*CreateFleetOutput, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	var all []candidate
	for _, config := range in.Configs {
		t, err := c.resolve(config.Template)
		if err != nil {
			return nil, err
		}
		overrides := config.Overrides
		if len(overrides) == 0 {
			overrides = []Override{{}}
		}
		for _, o := range overrides {
			one := candidate{Choice: Choice{TemplateRef{LaunchTemplateID: t.ID, Version: "1"}, o}, template: t, weight: 1}
			if one.Override.InstanceType == "" {
				one.Override.InstanceType = t.Data.InstanceType
			}
			if o.WeightedCapacity != nil {
				one.weight = *o.WeightedCapacity
			}
			all = append(all, one)
		}
	}
	out := &CreateFleetOutput{FleetID: c.newFleetID()}
	c.fleets[out.FleetID] = tagsFor(in.TagSpecs, "fleet")
	wanted := map[Market]float64{OnDemand: in.Target.OnDemand, Spot: in.Target.Spot}
	wanted[cmp.Or(in.Target.Default, OnDemand)] += max(in.Target.Total-in.Target.OnDemand-in.Target.Spot, 0)
	c.fill(in, out, all, OnDemand, in.OnDemandOptions, wanted[OnDemand])
	c.fill(in, out, all, Spot, in.SpotOptions, wanted[Spot])
	return out, nil
}

func (in *CreateFleetInput) check() error {
	switch {
	case in.Type != "instant":
		return errorf("UnsupportedOperation", "The simulation knows fleets of type instant only, not '%s'.", cmp.Or(in.Type, "maintain"))
	case len(in.Configs) == 0:
		return missing("LaunchTemplateConfigs")
	case len(in.Configs) > 50:
		return errorf("InvalidParameterValue", "A fleet may use at most 50 launch templates, not %d.", len(in.Configs))
	case in.Target.Total < 1 || in.Target.Total > 10_000:
		return invalid("TotalTargetCapacity", strconv.FormatFloat(in.Target.Total, 'f', -1, 64), "It must be between 1 and 10000.")
	case in.Target.CapacityUnit != "" && in.Target.CapacityUnit != "units":
		return errorf("UnsupportedOperation", "The simulation counts capacity in units only, not '%s'.", in.Target.CapacityUnit)
	case in.SpotOptions.InstanceInterruptionBehavior != "" && in.SpotOptions.InstanceInterruptionBehavior != "terminate":
		return errorf("UnsupportedOperation", "Simulated spot instances are terminated when interrupted, not '%s'.", in.SpotOptions.InstanceInterruptionBehavior)
	case in.Target.Default != Spot && in.Target.Default != OnDemand && in.Target.Default != "":
		return invalid("DefaultTargetCapacityType", string(in.Target.Default), "Expected spot or on-demand.")
	}
	for _, c := range in.Configs {
		for _, o := range c.Overrides {
			if w := o.WeightedCapacity; w != nil && !(*w > 0) {
				return invalid("WeightedCapacity", fmt.Sprint(*w), "It must be greater than 0.")
			}
		}
	}
	return checkSpecs(in.TagSpecs)
}

// fill starts machines of one market until the wanted capacity is reached,
// trying the choices in the order of the allocation strategy. A choice that
// was refused once is not tried again.
func (c *Cloud) fill(in *CreateFleetInput, out *CreateFleetOutput, all []candidate, m Market, opt FleetOptions, wanted float64) {
	if wanted <= 0 {
		return
	}
	for _, one := range c.inOrder(all, m, opt.AllocationStrategy) {
		if wanted <= 0 {
			return
		}
		started := FleetInstance{Choice: one.Choice, Market: m, Type: one.Override.InstanceType}
		o := order{typ: one.Override.InstanceType, subnet: one.Override.SubnetID, zone: one.Override.AvailabilityZone, market: m,
			data: one.template.Data, template: one.template, tags: in.TagSpecs, fleet: out.FleetID, token: in.ClientToken}
		if one.Override.ImageID != "" {
			o.data.ImageID = one.Override.ImageID
		}
		if len(o.data.Interfaces) > 0 && o.subnet == "" {
			o.subnet = o.data.Interfaces[0].SubnetID
		}
		if m == Spot {
			o.maxPrice, _ = strconv.ParseFloat(one.Override.MaxPrice, 64)
		}
		for wanted > 0 {
			i, err := c.launch(o)
			if err != nil {
				out.Errors = append(out.Errors, FleetError{one.Choice, m, err.Code, err.Message})
				break
			}
			wanted -= one.weight
			started.IDs = append(started.IDs, i.ID)
		}
		if len(started.IDs) > 0 {
			out.Instances = append(out.Instances, started)
		}
	}
}

// inOrder sorts the choices as an allocation strategy tries them: by price per
// unit of capacity, the cheapest first (price-capacity-optimized too, since
// all pools are equally deep here), or by priority for the strategies that
// know it. Equal ones stay in the order of the request.
func (c *Cloud) inOrder(all []candidate, m Market, strategy string) []candidate {
	rank := func(o candidate) float64 {
		if strategy == "prioritized" || strategy == "capacity-optimized-prioritized" {
			if o.Override.Priority == nil {
				return float64(quantity.PriceUnknown)
			}
			return *o.Override.Priority
		}
		zone := o.Override.AvailabilityZone
		if s := c.subnet(o.Override.SubnetID); s != nil {
			zone = s.Zone
		}
		price := c.offers[offerKey{o.Override.InstanceType, zone}].price(m)
		if price == 0 {
			price = quantity.PriceUnknown
		}
		return float64(price) / o.weight
	}
	out := slices.Clone(all)
	for i := range out {
		out[i].rank = rank(out[i])
	}
	slices.SortStableFunc(out, func(a, b candidate) int { return cmp.Compare(a.rank, b.rank) })
	return out
}

// newFleetID returns an id such as fleet-01234567-89ab-….
func (c *Cloud) newFleetID() string { return "fleet-" + uuid(c.rng) }
