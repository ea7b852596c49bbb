package aws

import (
	"context"
	"errors"
	"time"

	"karpenter/internal/aws/class"
	"karpenter/internal/aws/launch"
)

// templatesLast is how long a launch template is kept after it was used last,
// and believed to exist. One that was deleted all the same is made again when a
// launch misses it.
const templatesLast = 10 * time.Minute

// ensure makes the launch template unless it exists.
func (p *Provider) ensure(ctx context.Context, t launch.Template) error {
	if p.templates.Has(t.Name) {
		p.templates.Mark(t.Name)
		return nil
	}
	_, err, _ := p.ensuring.Do(t.Name, func() (any, error) {
		ok, err := p.api.HasTemplate(ctx, t.Name)
		if err == nil && !ok {
			err = p.api.CreateTemplate(ctx, t)
		}
		return nil, err
	})
	if err == nil {
		p.templates.Mark(t.Name)
	}
	return err
}

// SweepTemplates deletes our launch templates that were not used lately. Only
// one process, the one that launches, may do that.
func (p *Provider) SweepTemplates(ctx context.Context) error {
	s, err := p.settings(ctx)
	if err != nil {
		return err
	}
	ours := class.Term{{Name: "tag:" + launch.ClusterTag, Values: []string{s.Cluster.Name}}}
	return p.deleteTemplates(ctx, ours, func(t launch.TemplateInfo) bool {
		return !p.templates.Has(t.Name) && p.now().Sub(t.Created) >= templatesLast
	})
}

func (p *Provider) deleteTemplates(ctx context.Context, match class.Term, unused func(launch.TemplateInfo) bool) error {
	list, err := p.api.Templates(ctx, match)
	if err != nil {
		return err
	}
	var errs []error
	for _, t := range list {
		if unused(t) {
			p.templates.Forget(t.Name)
			errs = append(errs, p.api.DeleteTemplate(ctx, t.Name))
		}
	}
	return errors.Join(errs...)
}
