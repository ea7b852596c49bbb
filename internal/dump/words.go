package dump

import (
	"fmt"
	"strings"

	"karpenter/internal/core/disrupt"
)

// Words writes a decision about machines for people: what goes, what is bought
// for it, what moves, and why the others stay.
func Words(d *disrupt.Decision) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d commands, %d machines stay, %d simulations\n", len(d.Commands), len(d.Kept), d.WhatIfs)
	for i := range d.Commands {
		c := &d.Commands[i]
		fmt.Fprintf(&b, "command %d, %s: saves %s, disturbs %.1f\n", i+1, c.Method, c.Saves, c.Disturbs)
		for _, t := range c.Remove {
			fmt.Fprintf(&b, "  remove   %s, pool %s\n", t.Node, t.Pool)
		}
		for _, m := range c.Replace {
			first := m.Options[0]
			fmt.Fprintf(&b, "  buy      pool %s: %s %s %s %s\n", m.Pool, first.Type, first.CapacityType, first.Zone, m.Price)
			for _, p := range m.Pods {
				fmt.Fprintf(&b, "    pod    %s\n", p)
			}
		}
		for _, p := range c.Moves {
			to := p.Node
			if to == "" {
				to = "claim " + p.Claim
			}
			fmt.Fprintf(&b, "  move     %s to %s\n", p.Pod, to)
		}
	}
	for _, k := range d.Kept {
		method := ""
		if k.Method != "" {
			method = ", " + k.Method
		}
		fmt.Fprintf(&b, "stays %s%s: %s\n", k.Node, method, k.Reason)
	}
	return b.String()
}
