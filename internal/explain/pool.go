package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"karpenter/internal/core/quantity"
	"karpenter/internal/core/schedule"
	"karpenter/internal/core/world"
	"karpenter/internal/dump"
)

// States of a pool.
const (
	Ready    = "ready"
	NotReady = "not-ready"
	SoldOut  = "sold-out" // the cloud has none of what it may buy
	Full     = "full"     // a limit is reached
)

// Pool says whether a pool can buy, and what. kind is Provisioner or NodePool.
func Pool(d *dump.Dump, kind, name string) (*Answer, error) {
	s := &d.Snapshot
	i := slices.IndexFunc(s.Pools, func(p world.Pool) bool { return p.Kind == kind && p.Name == name })
	if i < 0 {
		var all []string
		for _, p := range s.Pools {
			if p.Kind == kind {
				all = append(all, p.Name)
			}
		}
		e := &UnknownError{Kind: kind, Name: name, Near: near(name, all)}
		if len(all) > 0 && len(e.Near) == 0 {
			e.More = "there are: " + list(all, 8)
		}
		return nil, e
	}
	p := &s.Pools[i]
	a := &Answer{About: strings.ToLower(kind) + " " + name}
	has, out := schedule.Stock(s, p)
	trouble := s.Catalogs[p.Catalog].Trouble
	switch full := fullOf(p); {
	case p.NotReady != "":
		a.State, a.Summary = NotReady, "is not ready: "+p.NotReady
	case trouble != "":
		a.State, a.Summary = NotReady, "is not ready: "+trouble
	case len(has) == 0 && len(out) > 0:
		a.State, a.Summary = SoldOut, "is ready, but the cloud has no capacity now for anything that it may buy"
	case full != "":
		a.State, a.Summary = Full, "is ready, but at its limit: "+full
	default:
		a.State, a.Summary = Ready, fmt.Sprintf("is ready: it can buy %s in %s", count(len(distinct(has)), "instance type"), count(len(has), "offering"))
	}
	a.add("what it can buy now, cheapest first", cheapest(has)...)
	a.add("closed, because the cloud had none left", closedOf(d, out)...)
	a.add("requirements that hold, defaults included", requirements(p)...)
	a.add("limits", limits(p)...)
	a.add("when its machines go", endings(p)...)
	return a, nil
}

func distinct(offers []schedule.Option) []string {
	types := map[string]bool{}
	for _, o := range offers {
		types[o.Type] = true
	}
	return slices.Sorted(maps.Keys(types))
}

// cheapest lists the cheapest offering of each of the five cheapest types.
func cheapest(has []schedule.Option) (out []Line) {
	seen := map[string]bool{}
	for _, o := range has {
		if seen[o.Type] {
			continue
		}
		if seen[o.Type] = true; len(out) == 5 {
			break
		}
		out = append(out, Line{Text: fmt.Sprintf("%-16s %-9s %-12s %s", o.Type, o.CapacityType, o.Zone, o.Price), About: o})
	}
	if more := len(distinct(has)) - len(out); more > 0 {
		out = append(out, words("and %s", count(more, "other type")))
	}
	return out
}

// closedOf lists which of the pool's offerings are closed, and until when, as far
// as that is known.
func closedOf(d *dump.Dump, out []schedule.Option) []Line {
	var some []dump.Closed
	unknown := 0
	for _, o := range out {
		i := slices.IndexFunc(d.Closed, func(c dump.Closed) bool {
			return c.CapacityType == o.CapacityType && (c.Type == "" || c.Type == o.Type && c.Zone == o.Zone)
		})
		switch {
		case i < 0:
			unknown++
		case !slices.Contains(some, d.Closed[i]):
			some = append(some, d.Closed[i])
		}
	}
	lines := closedLines(d, some)
	if unknown > 0 {
		lines = append(lines, words("%s, until a time that is not known here", count(unknown, "offering")))
	}
	return lines
}

func closedLines(d *dump.Dump, some []dump.Closed) (out []Line) {
	for i, c := range some {
		if i == 8 {
			return append(out, words("and %d others", len(some)-i))
		}
		what := fmt.Sprintf("%s %s in %s", c.Type, c.CapacityType, c.Zone)
		if c.Type == "" {
			what = "every offering of " + c.CapacityType
		}
		out = append(out, Line{Text: fmt.Sprintf("%s, until %s", what, at(c.Until, d.Now)), About: c})
	}
	return out
}

func requirements(p *world.Pool) (out []Line) {
	for _, r := range p.Requirements {
		text := r.String()
		if r.MinValues > 0 {
			text += fmt.Sprintf(", of at least %d different values", r.MinValues)
		}
		out = append(out, words("%s", text))
	}
	for _, k := range slices.Sorted(maps.Keys(p.Labels)) {
		out = append(out, words("label %s=%s", k, p.Labels[k]))
	}
	for _, t := range p.Taints {
		out = append(out, words("taint %s", t))
	}
	for _, t := range p.StartupTaints {
		out = append(out, words("startup taint %s", t))
	}
	if p.Weight != 0 {
		out = append(out, words("weight %d", p.Weight))
	}
	return out
}

// fullOf names a limit that is reached; empty if none is.
func fullOf(p *world.Pool) string {
	for _, l := range p.Limits {
		if p.Used.Get(l.Name) >= l.Value {
			return fmt.Sprintf("%s of %s in use", quantity.Amount{Name: l.Name, Value: p.Used.Get(l.Name)}, l.Format())
		}
	}
	return ""
}

func limits(p *world.Pool) (out []Line) {
	for _, l := range p.Limits {
		out = append(out, words("%s of %s in use or on the way", quantity.Amount{Name: l.Name, Value: p.Used.Get(l.Name)}, l.Format()))
	}
	return out
}

func endings(p *world.Pool) (out []Line) {
	if p.EmptyAfter != nil {
		out = append(out, words("empty for %s: removed", p.EmptyAfter.Duration))
	} else {
		out = append(out, words("empty: they stay, since no time is set"))
	}
	if p.Consolidate {
		text := "in use: removed or replaced if that saves money"
		if q := p.Disruption.QuietFor; q != nil {
			text += fmt.Sprintf(", once no pod has come or gone for %s", q.Duration)
		}
		out = append(out, words("%s", text))
	}
	switch {
	case p.Lifetime != nil:
		out = append(out, words("at the age of %s: drained", p.Lifetime.Duration))
	case p.ExpireAfter != nil:
		out = append(out, words("at the age of %s: replaced", p.ExpireAfter.Duration))
	}
	for _, b := range p.Disruption.Budgets {
		text := "budget " + b.Nodes
		if len(b.Reasons) > 0 {
			text += " for " + strings.Join(b.Reasons, ", ")
		}
		if b.Schedule != "" {
			text += fmt.Sprintf(" at %q for %s", b.Schedule, b.Duration.Duration)
			if b.Inactive {
				text += ", not now"
			}
		}
		out = append(out, words("%s", text))
	}
	return out
}
