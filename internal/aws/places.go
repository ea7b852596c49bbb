package aws

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"karpenter/internal/aws/class"
	"karpenter/internal/aws/launch"
	"karpenter/internal/cloud"
	"karpenter/internal/core/world"
)

// Found is what the selectors of a class find now.
type Found struct {
	Subnets        []launch.Subnet
	SecurityGroups []launch.SecurityGroup
	// Images are those that could be launched; from SSM only the plain ones,
	// with architecture and id.
	Images []launch.Image
}

// Resolve finds what a class selects. An error that a change of the object would cure is
// *cloud.BadClassError.
func (p *Provider) Resolve(ctx context.Context, ref world.ClassRef) (Found, error) {
	s, c, err := p.look(ctx, ref)
	if err != nil {
		return Found{}, err
	}
	var f Found
	if f.Subnets, err = p.allSubnets(ctx, &c); err != nil {
		return f, err
	}
	if err := launch.Check(&c, &s.Cluster, &cloud.LaunchRequest{}); err != nil {
		return f, err
	}
	if c.LaunchTemplate != "" {
		return f, p.checkTemplate(ctx, &c)
	}
	if f.SecurityGroups, err = p.securityGroups(ctx, &c); err != nil {
		return f, err
	}
	if err := checkProfile(s, &c); err != nil {
		return f, err
	}
	f.Images, err = p.plainImages(ctx, s, &c)
	return f, err
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

// allSubnets returns the subnets of the class, at least one.
func (p *Provider) allSubnets(ctx context.Context, c *class.Class) ([]launch.Subnet, error) {
	got, err := p.cachedSubnets(ctx, c)
	return got.value, err
}

func (p *Provider) cachedSubnets(ctx context.Context, c *class.Class) (cached[[]launch.Subnet], error) {
	got, err := p.subnets.get(ctx, filterKey(c.Subnets.Filters), func(ctx context.Context) ([]launch.Subnet, error) {
		return p.api.Subnets(ctx, c.Subnets.Filters)
	})
	if err == nil && len(got.value) == 0 {
		err = nothingMatches(c, c.Subnets, "subnet")
	}
	return got, err
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
	got, err := p.groups.get(ctx, filterKey(c.SecurityGroups.Filters), func(ctx context.Context) ([]launch.SecurityGroup, error) {
		return p.api.SecurityGroups(ctx, c.SecurityGroups.Filters)
	})
	if err == nil && len(got.value) == 0 {
		err = nothingMatches(c, c.SecurityGroups, "security group")
	}
	return got.value, err
}

// nothingMatches says what was selected for and what to do.
func nothingMatches(c *class.Class, s class.Selector, what string) error {
	return &cloud.BadClassError{
		Class: c.Ref, Field: s.Field,
		Problem: fmt.Sprintf("no %s matches %s: correct the selector, or tag the %ss", what, s, what),
	}
}

func filterKey(filters []class.Filter) string {
	var b strings.Builder
	for _, f := range filters {
		text, err := json.Marshal(f)
		if err != nil { // strings can always be written
			panic(err)
		}
		b.Write(text)
	}
	return b.String()
}

func checkProfile(s Settings, c *class.Class) error {
	if c.InstanceProfile != "" || s.Cluster.DefaultInstanceProfile != "" {
		return nil
	}
	return &cloud.BadClassError{
		Class: c.Ref, Field: "spec.instanceProfile",
		Problem: "neither the class nor the setting aws.defaultInstanceProfile names an instance profile: set one of them",
	}
}

func (p *Provider) checkTemplate(ctx context.Context, c *class.Class) error {
	ok, err := p.api.HasTemplate(ctx, c.LaunchTemplate)
	if err == nil && !ok {
		err = &cloud.BadClassError{
			Class: c.Ref, Field: "spec.launchTemplate",
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

// plainImages returns the images for machines without accelerators, by
// architecture.
func (p *Provider) plainImages(ctx context.Context, s Settings, c *class.Class) ([]launch.Image, error) {
	if !c.Images.IsZero() {
		return p.selectedImages(ctx, c)
	}
	var out []launch.Image
	for suffix, arch := range map[string]string{"": "amd64", "-arm64": "arm64"} {
		id, err := p.imageParameter(ctx, launch.AL2ParameterPrefix(s.Cluster.Version)+suffix+"/recommended/image_id")
		var unknown *launch.UnknownParameterError
		if err != nil && !errors.As(err, &unknown) {
			return nil, err
		}
		if err == nil {
			out = append(out, launch.Image{ID: id, Arch: arch})
		}
	}
	if len(out) == 0 {
		return nil, noFamilyImage(s, c)
	}
	slices.SortFunc(out, func(a, b launch.Image) int { return strings.Compare(a.Arch, b.Arch) })
	return out, nil
}

func (p *Provider) selectedImages(ctx context.Context, c *class.Class) ([]launch.Image, error) {
	got, err := p.images.get(ctx, filterKey(c.Images.Filters), func(ctx context.Context) ([]launch.Image, error) {
		return p.api.Images(ctx, c.Images.Filters)
	})
	if err == nil && len(got.value) == 0 {
		err = nothingMatches(c, c.Images, "available image")
	}
	return got.value, err
}

// imageParameter returns the image id that SSM holds. That SSM has none is
// remembered like an answer.
func (p *Provider) imageParameter(ctx context.Context, name string) (string, error) {
	got, err := p.parameter.get(ctx, name, func(ctx context.Context) (string, error) {
		id, err := p.api.Parameter(ctx, name)
		var unknown *launch.UnknownParameterError
		if errors.As(err, &unknown) {
			return "", nil
		}
		return id, err
	})
	if err == nil && got.value == "" {
		err = &launch.UnknownParameterError{Name: name}
	}
	return got.value, err
}

func noFamilyImage(s Settings, c *class.Class) error {
	return &cloud.BadClassError{
		Class: c.Ref, Field: "spec.amiFamily",
		Problem: fmt.Sprintf("AWS publishes no %s image for Kubernetes %s: choose another family, or an image with amiSelector", c.Family, s.Cluster.Version),
	}
}

// withImages keeps the candidates for which there is an image, and names it.
// A type whose image cannot be told is left out as long as others are left.
func (p *Provider) withImages(ctx context.Context, s Settings, c *class.Class, candidates []launch.Candidate) ([]launch.Candidate, error) {
	if c.LaunchTemplate != "" {
		return candidates, nil
	}
	find := func(t *world.InstanceType) (string, error) { return p.familyImage(ctx, s, t) }
	if !c.Images.IsZero() {
		images, err := p.selectedImages(ctx, c)
		if err != nil {
			return nil, err
		}
		find = func(t *world.InstanceType) (string, error) { id, _ := launch.MatchImage(images, t); return id, nil }
	}
	var out []launch.Candidate
	var failed error
	for _, cand := range candidates {
		id, err := find(cand.Type)
		if err != nil {
			failed = err
		}
		if err == nil && id != "" {
			cand.ImageID = id
			out = append(out, cand)
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	if failed != nil {
		return nil, failed
	}
	if c.Images.IsZero() {
		return nil, noFamilyImage(s, c)
	}
	return nil, &cloud.BadClassError{
		Class: c.Ref, Field: c.Images.Field,
		Problem: fmt.Sprintf("no image that matches %s boots the instance types asked for: select one of their architecture", c.Images),
	}
}

// familyImage returns the image of the family for the type; empty if there is
// none.
func (p *Provider) familyImage(ctx context.Context, s Settings, t *world.InstanceType) (string, error) {
	name, ok := launch.AL2Parameter(s.Cluster.Version, t)
	if !ok {
		return "", nil
	}
	id, err := p.imageParameter(ctx, name)
	var unknown *launch.UnknownParameterError
	if errors.As(err, &unknown) {
		return "", nil
	}
	return id, err
}
