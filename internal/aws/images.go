package aws

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"karpenter/internal/aws/class"
	"karpenter/internal/aws/family"
	"karpenter/internal/aws/launch"
	"karpenter/internal/cloud"
	"karpenter/internal/core/world"
)

// imageSet are the images of a class, in the order in which a type tries them.
type imageSet struct {
	list []launch.Image
	// failed says that some could not be looked up; the others are listed.
	failed error
}

// images returns the images of the class, at least one. A class with a launch
// template of the user has none of its own.
func (p *Provider) images(ctx context.Context, s Settings, c *class.Class) (imageSet, error) {
	var set imageSet
	switch {
	case c.LaunchTemplate != "":
		return set, nil
	case !c.Release.IsZero():
		set = p.published(ctx, s, c.Release)
	default:
		set = p.selected(ctx, c.Images)
	}
	switch {
	case len(set.list) > 0:
		return set, nil
	case set.failed != nil:
		return set, set.failed
	case c.Release.IsZero():
		return set, nothingMatches(c, "amiSelector", c.Images, "available image")
	}
	return set, noImage(s, c)
}

// noImage says that AWS publishes none.
func noImage(s Settings, c *class.Class) error {
	e := &cloud.BadClassError{
		Class: c.Ref, Field: c.Field("amiFamily"),
		Problem: fmt.Sprintf("AWS publishes no %s image for Kubernetes %s: choose another family, or an image with amiSelector", c.Release.Family, s.Cluster.Version),
	}
	if c.Newer() {
		f, _ := family.Named(c.Release.Family)
		e.Field, e.Problem = c.Field("amiSelector"), fmt.Sprintf("AWS publishes no image %s@%s for Kubernetes %s: choose another version, or another family",
			f.Alias, c.Release.Version, s.Cluster.Version)
	}
	return e
}

// published looks up what AWS publishes for a family.
func (p *Provider) published(ctx context.Context, s Settings, r class.Release) imageSet {
	f, _ := family.Named(r.Family)
	var out imageSet
	for i := range f.Images {
		im, err := p.release(ctx, &f.Images[i], s.Cluster.Version, r.Version)
		switch {
		case err != nil:
			out.failed = err
		case im.ID != "":
			im.Requirements = f.Images[i].Requirements
			out.list = append(out.list, im)
		}
	}
	out.list = p.described(ctx, out.list)
	return out
}

// release finds one published image by its parameter, or by its name where a
// pinned one has none any more; the zero value means that there is none.
func (p *Provider) release(ctx context.Context, im *family.Image, kubernetes, version string) (launch.Image, error) {
	if name := im.Parameter(kubernetes, version); name != "" {
		id, err := p.imageParameter(ctx, name)
		var unknown *launch.UnknownParameterError
		if err == nil || !errors.As(err, &unknown) {
			return launch.Image{ID: id}, err
		}
	}
	patterns := im.Patterns(kubernetes, version)
	if patterns == nil {
		return launch.Image{}, nil
	}
	list, err := p.findImages(ctx, class.Term{{Name: "name", Values: patterns}, {Name: class.Owner, Values: []string{"amazon"}}})
	if err != nil || len(list) == 0 {
		return launch.Image{}, err
	}
	return list[0], nil
}

// described adds what EC2 knows about images by id: their names, and whether
// they are deprecated. That is for people; without an answer they do without.
func (p *Provider) described(ctx context.Context, list []launch.Image) []launch.Image {
	var ids []string
	for _, im := range list {
		ids = append(ids, im.ID)
	}
	slices.Sort(ids)
	if ids = slices.Compact(ids); len(ids) == 0 {
		return list
	}
	known, err := p.findImages(ctx, class.Term{{Name: "image-id", Values: ids}})
	if err != nil {
		return list
	}
	for i := range list {
		for _, k := range known {
			if k.ID == list[i].ID {
				list[i].Name, list[i].Arch, list[i].Created = k.Name, k.Arch, k.Created
				list[i].Deprecated = k.DeprecatedAt != "" && k.DeprecatedAt <= p.isoNow()
			}
		}
	}
	return list
}

func (p *Provider) isoNow() string { return p.now().UTC().Format(time.RFC3339) }

// selected finds the images of a selector. A term that fails does not hide what
// the others find.
func (p *Provider) selected(ctx context.Context, s class.Selector) imageSet {
	var out imageSet
	var all []launch.Image
	for _, term := range s {
		term, err := p.withParameters(ctx, term)
		var list []launch.Image
		if err == nil && term != nil {
			list, err = p.findImages(ctx, term)
		}
		if err != nil {
			out.failed = err
		}
		all = append(all, list...)
	}
	out.list = launch.Usable(all, p.isoNow())
	return out
}

// withParameters puts the ids that SSM parameters hold in their place; nil means
// that there is none.
func (p *Provider) withParameters(ctx context.Context, term class.Term) (class.Term, error) {
	term = slices.Clone(term)
	for i, f := range term {
		if f.Name != class.Parameter {
			continue
		}
		var ids []string
		for _, name := range f.Values {
			id, err := p.imageParameter(ctx, name)
			var unknown *launch.UnknownParameterError
			if err != nil && !errors.As(err, &unknown) {
				return nil, err
			}
			if err == nil {
				ids = append(ids, id)
			}
		}
		if ids == nil {
			return nil, nil
		}
		term[i] = class.Filter{Name: "image-id", Values: ids}
	}
	return term, nil
}

func (p *Provider) findImages(ctx context.Context, term class.Term) ([]launch.Image, error) {
	got, err := p.imageLists.get(ctx, termKey(term), func(ctx context.Context) ([]launch.Image, error) {
		return p.api.Images(ctx, term)
	})
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

// withImages keeps the candidates for which there is an image, and names it.
func withImages(set imageSet, c *class.Class, candidates []launch.Candidate) ([]launch.Candidate, error) {
	if c.LaunchTemplate != "" {
		return candidates, nil
	}
	var out []launch.Candidate
	for _, cand := range candidates {
		if id, ok := launch.MatchImage(set.list, cand.Type); ok {
			cand.ImageID = id
			out = append(out, cand)
		}
	}
	if len(out) == 0 && set.failed != nil {
		return nil, set.failed
	}
	if len(out) == 0 {
		return nil, &cloud.BadClassError{
			Class: c.Ref, Field: c.Field("amiSelector"),
			Problem: "no image of the class boots the instance types asked for: select one of their architecture",
		}
	}
	return out, nil
}

// maskUnbootable takes the offerings of types away that no image boots, so that
// nobody plans with them. As long as some images are not known nothing is taken
// away. The types must not have been published.
func maskUnbootable(set imageSet, c *class.Class, types []world.InstanceType) {
	if c.LaunchTemplate != "" || set.failed != nil {
		return
	}
	for i := range types {
		if _, ok := launch.MatchImage(set.list, &types[i]); ok {
			continue
		}
		for j := range types[i].Offerings {
			types[i].Offerings[j].Available = false
		}
	}
}
