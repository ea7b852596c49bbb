package world

import (
	"fmt"
	"slices"
	"strings"

	"karpenter/internal/core/label"
)

// listedValues is up to how many values of a label a message lists all.
const listedValues = 8

// Unsuited says why no machine of the catalogue has what the pool itself asks
// for, so that it can never buy; empty if one has. Offerings that the cloud has
// none left of count, since they come back.
func (p *Pool) Unsuited(c *Catalog) string {
	asked := p.asked(c)
	if c.any(func(value look) bool {
		return !slices.ContainsFunc(asked, func(a ask) bool { return !a.Allows(value(a.Key)) })
	}) {
		return ""
	}
	for _, a := range asked {
		if !c.any(func(value look) bool { return a.Allows(value(a.Key)) }) {
			return a.field + ": " + a.String() + ": " + c.lacks(a.Requirement)
		}
	}
	if len(asked) == 0 {
		return "no instance type is offered where its nodes may be"
	}
	var all []string
	for _, a := range asked {
		all = append(all, a.String())
	}
	requirements, _ := p.fields()
	return requirements + ": no instance type satisfies all of them together: " + strings.Join(all, ", ")
}

// ask is a requirement and the field that it was read from.
type ask struct {
	label.Requirement
	field string
}

// look returns the value of a label of one offering.
type look func(key string) (value string, present bool)

// asked are the requirements, under their normal keys, that the choice of a
// machine decides. Every other label is the pool's to give.
func (p *Pool) asked(c *Catalog) (out []ask) {
	typed := map[string]bool{}
	for t := range c.Types {
		for key := range c.Types[t].Labels {
			typed[key] = true
		}
	}
	add := func(reqs []label.Requirement, field string) {
		for _, r := range reqs {
			r.Key = label.Normalize(r.Key)
			if typed[r.Key] || label.WellKnown(r.Key) && r.Key != label.Provisioner && r.Key != label.NodePool {
				out = append(out, ask{r, field})
			}
		}
	}
	requirements, labels := p.fields()
	add(p.Requirements, requirements)
	add(label.FromLabels(p.Labels), labels)
	return out
}

// fields are where people write requirements and labels of the pool.
func (p *Pool) fields() (requirements, labels string) {
	if p.Kind == "NodePool" {
		return "spec.template.spec.requirements", "spec.template.metadata.labels"
	}
	return "spec.requirements", "spec.labels"
}

// any reports whether something holds for one of the offerings.
func (c *Catalog) any(holds func(look) bool) bool {
	for t := range c.Types {
		for o := range c.Types[t].Offerings {
			if holds(func(key string) (string, bool) { return c.label(t, o, key) }) {
				return true
			}
		}
	}
	return false
}

// label is the value of a label, as far as type and offering decide it.
func (c *Catalog) label(t, o int, key string) (string, bool) {
	switch key {
	case label.Zone:
		return c.Types[t].Offerings[o].Zone, true
	case label.CapacityType:
		return c.Types[t].Offerings[o].CapacityType, true
	case label.InstanceType:
		return c.Types[t].Name, true
	}
	value, present := c.Types[t].Labels[key]
	if !present && key == label.Region && c.Region != "" {
		return c.Region, true
	}
	return value, present
}

// lacks says that nothing satisfies the requirement, and what there is instead.
func (c *Catalog) lacks(r label.Requirement) string {
	if r.Op != label.In {
		return "no instance type satisfies this"
	}
	seen := map[string]bool{}
	var values []string
	c.any(func(value look) bool {
		if v, present := value(r.Key); present && !seen[v] {
			seen[v] = true
			values = append(values, v)
		}
		return false
	})
	slices.Sort(values)
	says := "no instance type has this value"
	switch {
	case r.Key == label.Zone:
		says = "no subnet or offering is there"
	case len(r.Values) > 1:
		says = "no instance type has one of these values"
	}
	if len(values) <= listedValues {
		return fmt.Sprintf("%s; there are %s", says, strings.Join(values, ", "))
	}
	for _, v := range r.Values {
		if hint := label.Hint(v, values); hint != "" {
			return fmt.Sprintf("%s; did you mean %s?", says, hint)
		}
	}
	return says
}
