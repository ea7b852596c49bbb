package aws

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"karpenter/internal/aws/class"
	"karpenter/internal/aws/launch"
	"karpenter/internal/cloud"
	"karpenter/internal/core/world"
)

// Part is one of the things that a class is made of.
type Part string

// The parts of a class.
const (
	PartSubnets         Part = "subnets"
	PartSecurityGroups  Part = "security groups"
	PartImages          Part = "images"
	PartInstanceProfile Part = "instance profile"
	// PartContent is what the object says without selecting anything: tags, user
	// data, the name of a launch template.
	PartContent Part = "content"
)

var parts = []Part{PartSubnets, PartContent, PartSecurityGroups, PartInstanceProfile, PartImages}

// Found is what the selectors of a class find now, and what was made for it.
type Found struct {
	// Subnets have those with the most free addresses first.
	Subnets        []launch.Subnet
	SecurityGroups []launch.SecurityGroup
	// Images are in the order in which an instance type tries them.
	Images          []launch.Image
	InstanceProfile string
	// Trouble tells for each part that cannot be used why not.
	Trouble map[Part]error
}

// err is the first trouble.
func (f *Found) err() error {
	for _, part := range parts {
		if err := f.Trouble[part]; err != nil {
			return err
		}
	}
	return nil
}

// Resolve finds what a class selects, and makes its instance profile. The error
// is the first of what is in the way; one that a change of the object would cure
// is *cloud.BadClassError.
func (p *Provider) Resolve(ctx context.Context, ref world.ClassRef) (Found, error) {
	s, c, err := p.look(ctx, ref)
	if err != nil {
		return Found{Trouble: map[Part]error{PartContent: err}}, err
	}
	f := Found{Trouble: map[Part]error{}}
	note := func(part Part, err error) {
		if err != nil && f.Trouble[part] == nil {
			f.Trouble[part] = err
		}
	}
	subnets, err := p.cachedSubnets(ctx, &c)
	note(PartSubnets, err)
	f.Subnets = slices.SortedFunc(slices.Values(subnets.value), func(a, b launch.Subnet) int {
		return cmp.Or(cmp.Compare(b.Free, a.Free), cmp.Compare(a.ID, b.ID))
	})
	note(PartContent, launch.Check(&c, &s.Cluster, &cloud.LaunchRequest{}))
	if c.LaunchTemplate != "" {
		note(PartContent, p.checkTemplate(ctx, &c))
		return f, f.err()
	}
	f.SecurityGroups, err = p.securityGroups(ctx, &c)
	note(PartSecurityGroups, err)
	f.InstanceProfile, err = p.profile(ctx, s, &c)
	note(PartInstanceProfile, err)
	set, err := p.images(ctx, s, &c)
	f.Images = set.list
	note(PartImages, err)
	if f.err() == nil {
		note(PartContent, p.tryRights(ctx, s, &c))
	}
	return f, f.err()
}

// CheckClass tells whether machines can be launched with the class:
// *cloud.BadClassError if its selectors match nothing or it is wrong otherwise.
func (p *Provider) CheckClass(ctx context.Context, ref world.ClassRef) error {
	_, err := p.Resolve(ctx, ref)
	return err
}

// CheckRequest tells whether machines can be launched with the class of the
// request and what its pool adds: labels, taints and settings of the kubelet.
func (p *Provider) CheckRequest(ctx context.Context, req cloud.LaunchRequest) error {
	if err := p.CheckClass(ctx, req.Class); err != nil {
		return err
	}
	s, c, err := p.look(ctx, req.Class)
	if err != nil {
		return err
	}
	return launch.Check(&c, &s.Cluster, &req)
}

// cachedSubnets returns the subnets of the class, at least one.
func (p *Provider) cachedSubnets(ctx context.Context, c *class.Class) (cached[[]launch.Subnet], error) {
	got, err := p.subnets.get(ctx, selectorKey(c.Subnets), func(ctx context.Context) ([]launch.Subnet, error) {
		return anyOf(ctx, c.Subnets, p.api.Subnets, func(s launch.Subnet) string { return s.ID })
	})
	if err == nil && len(got.value) == 0 {
		err = nothingMatches(c, "subnetSelector", c.Subnets, "subnet")
	}
	return got, err
}

// anyOf asks for what one of the terms finds, by id.
func anyOf[T any](ctx context.Context, s class.Selector, ask func(context.Context, []class.Filter) ([]T, error), id func(T) string) ([]T, error) {
	var out []T
	for _, term := range s {
		found, err := ask(ctx, term)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	slices.SortStableFunc(out, func(a, b T) int { return cmp.Compare(id(a), id(b)) })
	return slices.CompactFunc(out, func(a, b T) bool { return id(a) == id(b) }), nil
}

// openSubnets returns the subnets that may be launched into, with the
// addresses that launches on their way will take counted as taken.
func (p *Provider) openSubnets(ctx context.Context, c *class.Class) ([]launch.Subnet, error) {
	got, err := p.cachedSubnets(ctx, c)
	if err != nil {
		return nil, err
	}
	var open []launch.Subnet
	for _, s := range got.value {
		if !p.closed.Has(s.ID) {
			s.Free -= p.inFlight.count(s.ID, got.at)
			open = append(open, s)
		}
	}
	if len(open) == 0 {
		return nil, &cloud.NoCapacityError{Detail: fmt.Sprintf("no subnet of %s %q has a free address", c.Ref.Kind, c.Ref.Name)}
	}
	return open, nil
}

func (p *Provider) securityGroups(ctx context.Context, c *class.Class) ([]launch.SecurityGroup, error) {
	got, err := p.groups.get(ctx, selectorKey(c.SecurityGroups), func(ctx context.Context) ([]launch.SecurityGroup, error) {
		return anyOf(ctx, c.SecurityGroups, p.api.SecurityGroups, func(g launch.SecurityGroup) string { return g.ID })
	})
	if err == nil && len(got.value) == 0 {
		err = nothingMatches(c, "securityGroupSelector", c.SecurityGroups, "security group")
	}
	return got.value, err
}

// nothingMatches says what was selected for and what to do. The field has the
// name that it has in an AWSNodeTemplate.
func nothingMatches(c *class.Class, field string, s class.Selector, what string) error {
	return &cloud.BadClassError{
		Class: c.Ref, Field: c.Field(field),
		Problem: fmt.Sprintf("no %s matches %s: correct the selector, or tag the %ss", what, s, what),
	}
}

func selectorKey(s class.Selector) string { return key(s) }
func termKey(t class.Term) string         { return key(t) }

func key(v any) string {
	text, err := json.Marshal(v)
	if err != nil { // strings can always be written
		panic(err)
	}
	return string(text)
}

func (p *Provider) checkTemplate(ctx context.Context, c *class.Class) error {
	ok, err := p.api.HasTemplate(ctx, c.LaunchTemplate)
	if err == nil && !ok {
		err = &cloud.BadClassError{
			Class: c.Ref, Field: c.Field("launchTemplate"),
			Problem: fmt.Sprintf("there is no launch template named %q: make it, or correct the name", c.LaunchTemplate),
		}
	}
	return err
}

// inFlight counts the launches that a subnet's number of free addresses does
// not show yet.
type inFlight struct {
	mu       sync.Mutex
	bySubnet map[string]flights
}

type flights struct {
	since time.Time // of the answer that does not know about them
	n     int64
}

// add counts a launch that may go into any of the subnets, seen at that time.
func (f *inFlight) add(subnets map[string]launch.Subnet, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range subnets {
		in := f.bySubnet[s.ID]
		f.bySubnet[s.ID] = flights{since: now, n: in.n + 1}
	}
}

// count returns the launches since the answer was given.
func (f *inFlight) count(subnet string, answered time.Time) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	in := f.bySubnet[subnet]
	if in.since.Before(answered) {
		delete(f.bySubnet, subnet)
		return 0
	}
	return in.n
}
