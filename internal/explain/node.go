package explain

import (
	"cmp"
	"fmt"

	"karpenter/internal/core/disrupt"
	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
	"karpenter/internal/dump"
)

// States of a node.
const (
	Foreign = "foreign" // nobody here owns it
	Booting = "booting"
	Going   = "going"
	Chosen  = "chosen" // it would be chosen to go now
	Stays   = "stays"
)

// Node says why a node exists, why it is still here, and what would be best. The
// name is that of the Node or of its NodeClaim.
func Node(d *dump.Dump, name string) (*Answer, error) {
	var n *world.Node
	var all []string
	for i := range d.Snapshot.Nodes {
		one := &d.Snapshot.Nodes[i]
		if all = append(all, one.Name); one.Name == name || one.Claim == name {
			n = one
		}
	}
	if n == nil {
		return nil, &UnknownError{Kind: "node or NodeClaim", Name: name, Near: near(name, all), More: "of one that has gone the journal may know: karpctl why --node " + name}
	}
	a := &Answer{About: "node " + n.Name}
	if n.Claim == "" {
		a.State, a.Summary = Foreign, "nobody here owns it, so it is never touched; its room is used"
		return a, nil
	}
	a.add("what it is", kindOf(d, n)...)
	a.add("why it exists", origin(d, n)...)
	a.add("how far it is", progress(d, n)...)
	a.stays(d, n)
	if a.State == Stays {
		a.add("the best move", best(d, n)...)
	}
	return a, nil
}

func kindOf(d *dump.Dump, n *world.Node) []Line {
	pods := 0
	for i := range n.Pods {
		if n.Pods[i].Leaves(n) {
			pods++
		}
	}
	return []Line{
		words("%s %s in %s, %s, of pool %q", cmp.Or(n.Labels[label.InstanceType], "a type that is not decided"), n.Labels[label.CapacityType], cmp.Or(n.Labels[label.Zone], "a zone that is not decided"), disrupt.Price(&d.Snapshot, n), n.Pool),
		words("%s that would need another place; requested %s of %s", count(pods, "pod"), cmp.Or(n.Requested().String(), "nothing"), n.Allocatable),
	}
}

func origin(d *dump.Dump, n *world.Node) []Line {
	r := record(d, n.Claim)
	if r == nil {
		return []Line{words("bought %s", at(n.Created, d.Now))}
	}
	if len(r.Pods) == 0 {
		return []Line{words("NodeClaim %s was made %s, for no pod that is written down", r.Name, at(r.Created, d.Now))}
	}
	var pods []string
	for _, p := range r.Pods {
		pods = append(pods, p.String())
	}
	return []Line{words("NodeClaim %s was made %s for %s: %s", r.Name, at(r.Created, d.Now), count(len(pods), "pod"), list(pods, 5))}
}

// stays says what the next look would make of the machine.
func (a *Answer) stays(d *dump.Dump, n *world.Node) {
	switch {
	case n.Deleting && n.Disruption != "":
		a.State, a.Summary = Going, fmt.Sprintf("it was chosen to go (%s); it goes when its replacements are ready and its pods have left", n.Disruption)
		a.held(d, n)
		return
	case n.Deleting:
		a.State, a.Summary = Going, "it is being removed; its pods leave first"
		a.held(d, n)
		return
	}
	look := disrupt.Decide(&d.Snapshot, d.Now, d.Limits.Look())
	for i := range look.Commands {
		c := &look.Commands[i]
		for _, t := range c.Remove {
			if t.Node == n.Name {
				a.State, a.Summary = Chosen, fmt.Sprintf("it would be chosen to go now: %s, saves %s", c.Method, c.Saves)
				a.add("what would happen", command(c)...)
				return
			}
		}
	}
	a.State, a.Summary = Stays, "it stays"
	if !n.Initialized {
		a.State, a.Summary = Booting, "it is coming up"
	}
	var lines []Line
	for _, k := range append(look.Kept, disrupt.Idle(&d.Snapshot, d.Now, look)...) {
		if k.Node != n.Name {
			continue
		}
		method := ""
		if k.Method != "" {
			method = k.Method + ": "
		}
		lines = append(lines, Line{Text: method + k.Reason.String(), Code: k.Reason.Code(), About: k.Reason})
	}
	if len(lines) > 0 && a.State == Stays {
		a.Summary += ": " + lines[0].Text
	}
	a.add("why it is still here", lines...)
}

// held says what keeps a machine that goes from going at once.
func (a *Answer) held(d *dump.Dump, n *world.Node) {
	var lines []Line
	for i := range n.Pods {
		p := &n.Pods[i]
		switch why := disrupt.CannotEvict(*p, d.Snapshot.Budgets); {
		case !p.Leaves(n):
		case p.Protected(d.Now):
			kept := disrupt.ProtectedPod{Pod: p.ObjectName, Until: p.ProtectedUntil()}
			lines = append(lines, Line{Text: kept.String(), Code: kept.Code()})
		case why != nil:
			lines = append(lines, Line{Text: why.String(), Code: why.Code(), About: why})
		}
	}
	a.add("what holds it", lines...)
}

// best says what would save most.
func best(d *dump.Dump, n *world.Node) []Line {
	c, why := disrupt.Best(&d.Snapshot, d.Now, n.Name, disrupt.Options{Schedule: d.Limits.Plan()})
	if why != nil {
		return []Line{{Text: "there is none: " + why.String(), Code: why.Code(), About: why}}
	}
	return append([]Line{words("saves %s, if nothing above held it:", c.Saves)}, command(c)...)
}

func command(c *disrupt.Command) (out []Line) {
	for _, m := range c.Replace {
		first := m.Options[0]
		out = append(out, words("buy a machine of pool %q: %s %s in %s, %s, for %s", m.Pool, first.Type, first.CapacityType, first.Zone, m.Price, count(len(m.Pods), "pod")))
	}
	to := map[string]int{}
	var order []string
	for _, m := range c.Moves {
		place := cmp.Or(m.Node, m.Claim)
		if to[place] == 0 {
			order = append(order, place)
		}
		to[place]++
	}
	for _, place := range order {
		out = append(out, words("move %s to %s", count(to[place], "pod"), place))
	}
	if len(out) == 0 {
		out = append(out, words("remove it; no pod has to move"))
	}
	return out
}
