package rig

import (
	"context"
	"fmt"
	"slices"
	"time"

	"karpenter/internal/aws/catalog"
	"karpenter/internal/aws/class"
	"karpenter/internal/aws/launch"
	"karpenter/internal/cloud"
	"karpenter/internal/core/quantity"
	"karpenter/internal/scenario/cases"
	"karpenter/sim/ec2/direct"
)

// ctx is that of calls which the world makes itself.
var ctx = context.Background()

// face is the cloud as one process sees it. It implements aws.API.
type face struct {
	p  *Process
	to *direct.API
}

// call takes a call through the interceptor.
func call[T any](f *face, action string, note cases.Call, do func() (T, error)) (T, error) {
	var none T
	c := Call{Process: f.p, Cloud: true, Name: action, Write: !reads(action), About: note.Instance}
	if err := f.p.rig.pass(c); err != nil {
		return none, err
	}
	h := f.p.rig.Log
	note.At, note.Name = h.since(), callName(action)
	h.Calls = append(h.Calls, note)
	out, err := do()
	if h.Keep {
		text := note.Instance
		if err != nil {
			text += " " + err.Error()
		}
		h.note("cloud", action, text)
	}
	if err != nil {
		return out, err
	}
	c.After = true
	if err := f.p.rig.pass(c); err != nil {
		return none, err
	}
	return out, nil
}

func reads(action string) bool {
	for _, prefix := range []string{"Describe", "Get", "List"} {
		if len(action) > len(prefix) && action[:len(prefix)] == prefix {
			return true
		}
	}
	return false
}

// done is a call without an answer.
func done(f *face, action string, note cases.Call, do func() error) error {
	_, err := call(f, action, note, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

func (f *face) Region() string { return f.to.Region() }

func (f *face) InstanceTypes(ctx context.Context) ([]catalog.Row, error) {
	return call(f, "DescribeInstanceTypes", cases.Call{}, func() ([]catalog.Row, error) { return f.to.InstanceTypes(ctx) })
}

func (f *face) Offerings(ctx context.Context) (map[string][]string, error) {
	return call(f, "DescribeInstanceTypeOfferings", cases.Call{}, func() (map[string][]string, error) { return f.to.Offerings(ctx) })
}

func (f *face) OnDemandPrices(ctx context.Context) (map[string]quantity.Price, error) {
	return call(f, "GetProducts", cases.Call{}, func() (map[string]quantity.Price, error) { return f.to.OnDemandPrices(ctx) })
}

func (f *face) SpotPrices(ctx context.Context, at time.Time) (map[catalog.TypeZone]quantity.Price, error) {
	return call(f, "DescribeSpotPriceHistory", cases.Call{}, func() (map[catalog.TypeZone]quantity.Price, error) { return f.to.SpotPrices(ctx, at) })
}

func (f *face) Subnets(ctx context.Context, match []class.Filter) ([]launch.Subnet, error) {
	return call(f, "DescribeSubnets", cases.Call{}, func() ([]launch.Subnet, error) { return f.to.Subnets(ctx, match) })
}

func (f *face) SecurityGroups(ctx context.Context, match []class.Filter) ([]launch.SecurityGroup, error) {
	return call(f, "DescribeSecurityGroups", cases.Call{}, func() ([]launch.SecurityGroup, error) { return f.to.SecurityGroups(ctx, match) })
}

func (f *face) Images(ctx context.Context, match []class.Filter) ([]launch.Image, error) {
	return call(f, "DescribeImages", cases.Call{}, func() ([]launch.Image, error) { return f.to.Images(ctx, match) })
}

func (f *face) Parameter(ctx context.Context, name string) (string, error) {
	return call(f, "GetParameter", cases.Call{}, func() (string, error) { return f.to.Parameter(ctx, name) })
}

func (f *face) HasTemplate(ctx context.Context, name string) (bool, error) {
	return call(f, "DescribeLaunchTemplates", cases.Call{}, func() (bool, error) { return f.to.HasTemplate(ctx, name) })
}

func (f *face) Templates(ctx context.Context, match []class.Filter) ([]launch.TemplateInfo, error) {
	return call(f, "DescribeLaunchTemplates", cases.Call{}, func() ([]launch.TemplateInfo, error) { return f.to.Templates(ctx, match) })
}

func (f *face) CreateTemplate(ctx context.Context, t launch.Template) error {
	return done(f, "CreateLaunchTemplate", cases.Call{}, func() error { return f.to.CreateTemplate(ctx, t) })
}

func (f *face) DeleteTemplate(ctx context.Context, name string) error {
	return done(f, "DeleteLaunchTemplate", cases.Call{}, func() error { return f.to.DeleteTemplate(ctx, name) })
}

func (f *face) CreateFleet(ctx context.Context, token string, fleet launch.Fleet) (launch.Answer, error) {
	var note cases.Call
	for _, c := range fleet.Configs {
		for _, o := range c.Overrides {
			note.Zones = append(note.Zones, o.Zone)
			note.Subnets = append(note.Subnets, o.Subnet)
			note.Types = append(note.Types, o.Type)
		}
	}
	note.Zones, note.Subnets, note.Types = sortedSet(note.Zones), sortedSet(note.Subnets), sortedSet(note.Types)
	return call(f, "CreateFleet", note, func() (launch.Answer, error) {
		switch f.p.rig.Plant {
		case DropToken:
			f.p.rig.serial++
			token = fmt.Sprint("dropped-", f.p.rig.serial)
		case RepeatLaunch:
			if _, err := f.to.CreateFleet(ctx, token+"-again", fleet); err != nil {
				return launch.Answer{}, err
			}
		}
		return f.to.CreateFleet(ctx, token, fleet)
	})
}

func (f *face) Instances(ctx context.Context, ids []string, match []class.Filter) ([]cloud.Instance, error) {
	return call(f, "DescribeInstances", cases.Call{}, func() ([]cloud.Instance, error) {
		if f.p.rig.Plant == LoseList && ids == nil {
			return nil, nil
		}
		return f.to.Instances(ctx, ids, match)
	})
}

func (f *face) Terminate(ctx context.Context, ids ...string) error {
	note := cases.Call{}
	if len(ids) > 0 {
		note.Instance = ids[0]
	}
	for _, id := range slices.Sorted(slices.Values(ids)) {
		f.p.rig.Log.add(cases.Terminated, id, 0)
	}
	return done(f, "TerminateInstances", note, func() error { return f.to.Terminate(ctx, ids...) })
}

func (f *face) Tag(ctx context.Context, id string, tags []launch.Tag) error {
	return done(f, "CreateTags", cases.Call{Instance: id}, func() error { return f.to.Tag(ctx, id, tags) })
}

func (f *face) Untag(ctx context.Context, id string, keys []string) error {
	return done(f, "DeleteTags", cases.Call{Instance: id}, func() error { return f.to.Untag(ctx, id, keys) })
}
