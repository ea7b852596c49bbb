package schedule

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"karpenter/internal/core/world"
)

// Text writes the plan for people: what is bought, who goes where, and why
// pods stay pending. The same plan gives the same text.
func (p *Plan) Text() string {
	var b strings.Builder
	placed := len(p.Placements)
	for i := range p.Machines {
		placed += len(p.Machines[i].Pods)
	}
	fmt.Fprintf(&b, "%s, %s; %s placed, %d pending\n",
		count(len(p.Machines), "machine"), p.Price(), count(placed, "pod"), len(p.Unplaced))
	for i := range p.Machines {
		p.Machines[i].text(&b, i+1)
	}
	type where struct{ node, claim string }
	var order []where
	on := map[where][]string{}
	for _, to := range p.Placements {
		w := where{to.Node, to.Claim}
		if on[w] == nil {
			order = append(order, w)
		}
		on[w] = append(on[w], to.Pod.String())
	}
	slices.SortFunc(order, func(a, b where) int { return strings.Compare(a.node+"\x00"+a.claim, b.node+"\x00"+b.claim) })
	for _, w := range order {
		if w.node != "" {
			fmt.Fprintf(&b, "node %s\n", w.node)
		} else {
			fmt.Fprintf(&b, "claim %s, booting\n", w.claim)
		}
		fmt.Fprintf(&b, "  pods     %s\n", strings.Join(on[w], " "))
	}
	for i := range p.Unplaced {
		u := &p.Unplaced[i]
		fmt.Fprintf(&b, "pending %s\n", u.Pod)
		for _, r := range u.Reasons {
			fmt.Fprintf(&b, "  %s\n", r)
		}
	}
	return b.String()
}

func (m *Machine) text(b *strings.Builder, number int) {
	first := m.Options[0]
	fmt.Fprintf(b, "machine %d, pool %s: %s %s %s %s\n", number, m.Pool, first.Type, first.CapacityType, first.Zone, m.Price)
	fmt.Fprintf(b, "  requests %s\n", m.Requests)
	if n := len(m.Options); n > 1 {
		var kinds, zones, capacities []string
		for _, o := range m.Options {
			kinds, zones, capacities = append(kinds, o.Type), append(zones, o.Zone), append(capacities, o.CapacityType)
		}
		fmt.Fprintf(b, "  options  %d: %s; %s; %s\n", n, few(distinct(kinds)), few(distinct(capacities)), few(distinct(zones)))
	}
	if len(m.Labels) > 0 {
		var labels []string
		for _, k := range slices.Sorted(maps.Keys(m.Labels)) {
			labels = append(labels, k+"="+m.Labels[k])
		}
		fmt.Fprintf(b, "  labels   %s\n", strings.Join(labels, " "))
	}
	fmt.Fprintf(b, "  pods     %s\n", join(m.Pods))
}

func join(names []world.ObjectName) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = n.String()
	}
	return strings.Join(out, " ")
}

// few writes a list, or the first of a long one.
func few(words []string) string {
	if len(words) > 5 {
		return fmt.Sprintf("%s and %d more", strings.Join(words[:5], " "), len(words)-5)
	}
	return strings.Join(words, " ")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func distinct(words []string) []string {
	slices.Sort(words)
	return slices.Compact(words)
}
