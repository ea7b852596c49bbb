// Package forecast says what the controller would do at a moment, up and down: what
// is bought, what goes, what that costs; also if pools were other than they are.
//
// It imports the core, dump and kube/convert, and is pure. What always holds: it
// asks the functions that decide, in the order in which the planner asks them.
package forecast

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"karpenter/internal/core/disrupt"
	"karpenter/internal/core/lifecycle"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/schedule"
	"karpenter/internal/core/world"
	"karpenter/internal/dump"
	"karpenter/internal/kube/convert"
	"karpenter/internal/kube/dialect"
)

// Forecast is what would be done.
type Forecast struct {
	// Machines are bought for pods that wait, of which Placed get a place and
	// Unplaced do not.
	Machines []schedule.Machine  `json:"machines"`
	Placed   int                 `json:"placed"`
	Unplaced []schedule.Unplaced `json:"unplaced,omitempty"`
	// Commands take machines away, and buy others for them. They are carried out
	// after a last look, seconds later.
	Commands []disrupt.Command `json:"commands"`
	// Drifted are the machines that would not be bought as they are any more. They
	// are replaced one after the other, as budgets allow; only the first ones are
	// among the commands.
	Drifted []string `json:"drifted,omitempty"`
	Before  Sum      `json:"before"`
	After   Sum      `json:"after"`
	// Moved is how many pods have to move.
	Moved int `json:"moved"`
}

// Sum is what there is.
type Sum struct {
	Machines int            `json:"machines"`
	PerHour  quantity.Price `json:"perHour"` // as far as prices are known
}

// Changes reports whether anything would be done.
func (f *Forecast) Changes() bool { return len(f.Machines)+len(f.Commands) > 0 }

// Of says what would be done at the moment.
func Of(d *dump.Dump) *Forecast {
	s := &d.Snapshot
	f := &Forecast{}
	f.Before.Machines, f.Before.PerHour = disrupt.Cost(s)
	f.After = f.Before
	for i := range s.Nodes {
		if s.Nodes[i].Drifted != "" {
			f.Drifted = append(f.Drifted, s.Nodes[i].Name)
		}
	}
	if len(s.Pending) > 0 {
		plan := schedule.Solve(s, d.Limits.Plan())
		f.Machines, f.Unplaced, f.Placed = plan.Machines, plan.Unplaced, len(plan.Placements)
		for i := range plan.Machines {
			f.Placed += len(plan.Machines[i].Pods)
			f.buy(plan.Machines[i].Price)
		}
		s = bought(s, &plan, d.Now)
	}
	for {
		look := disrupt.Decide(s, d.Now, d.Limits.Look())
		if len(look.Commands) == 0 {
			return f
		}
		s = marked(s, look.Commands)
		for i := range look.Commands {
			f.remove(&look.Commands[i])
		}
	}
}

func (f *Forecast) buy(price quantity.Price) {
	f.After.Machines++
	if price != quantity.PriceUnknown {
		f.After.PerHour += price
	}
}

func (f *Forecast) remove(c *disrupt.Command) {
	f.Commands = append(f.Commands, *c)
	f.After.Machines += len(c.Replace) - len(c.Remove)
	f.After.PerHour -= c.Saves
	f.Moved += len(c.Moves)
	for _, m := range c.Replace {
		f.Moved += len(m.Pods)
	}
}

// bought is the snapshot as the planner sees it when what it bought is written
// down: the machines are on their way, with room for their pods, and pods are
// expected on the nodes to which others were sent.
func bought(s *world.Snapshot, plan *schedule.Plan, now time.Time) *world.Snapshot {
	out := *s
	out.Nodes, out.Pools = slices.Clone(s.Nodes), slices.Clone(s.Pools)
	waiting := map[world.ObjectName]world.Pod{}
	for _, p := range s.Pending {
		waiting[p.ObjectName] = p
	}
	for i := range plan.Machines {
		m := &plan.Machines[i]
		pool := out.Pool(m.PoolKind, m.Pool)
		claim := convert.Claim(*pool, convert.Machine{Requirements: m.Requirements, Requests: m.Requests, Labels: m.Labels, Pods: m.Pods})
		claim.Name = fmt.Sprintf("%snew-%d", claim.GenerateName, i+1)
		record := convert.Record(claim)
		record.Created = now
		n := convert.Booting(record, s.Catalogs[pool.Catalog])
		pool.Used = pool.Used.Add(n.Capacity).Add(quantity.Of(quantity.Amount{Name: quantity.Nodes, Value: 1}))
		for _, name := range m.Pods {
			n.Pods = append(n.Pods, waiting[name])
			delete(waiting, name)
		}
		slices.SortFunc(n.Pods, func(a, b world.Pod) int { return a.Compare(b.ObjectName) })
		out.Nodes = append(out.Nodes, n)
	}
	soon := now.Add(time.Minute) // later than any look of this forecast
	for _, to := range plan.Placements {
		for i := range out.Nodes {
			if n := &out.Nodes[i]; to.Node != "" && n.Joined && n.Name == to.Node {
				n.NominatedUntil = &soon
			}
		}
	}
	out.Pending = slices.DeleteFunc(slices.Clone(s.Pending), func(p world.Pod) bool { _, waits := waiting[p.ObjectName]; return !waits })
	world.SortNodes(out.Nodes)
	return &out
}

// marked is the snapshot in which the commands are written down.
func marked(s *world.Snapshot, commands []disrupt.Command) *world.Snapshot {
	out := *s
	out.Nodes = slices.Clone(s.Nodes)
	for _, c := range commands {
		for _, t := range c.Remove {
			for i := range out.Nodes {
				if n := &out.Nodes[i]; n.Name == t.Node && n.Claim == t.Claim {
					n.Deleting, n.Disruption = true, c.Method
				}
			}
		}
	}
	return &out
}

// With returns the moment as if pools were others: those of the same kind and name
// take the place of what there is, new ones are added. stock tells what a pool can
// buy whose class or kubelet settings nobody uses yet. Machines that the changed
// pools would not buy as they are have drifted.
func With(d *dump.Dump, pools []world.Pool, stock func(world.Pool) world.Catalog) *dump.Dump {
	out := *d
	s := &out.Snapshot
	s.Pools, s.Nodes = slices.Clone(s.Pools), slices.Clone(s.Nodes)
	catalogs := map[world.CatalogKey]world.Catalog{}
	for k, c := range s.Catalogs {
		catalogs[k] = c
	}
	s.Catalogs = catalogs
	for _, p := range pools {
		c, known := catalogs[p.Catalog]
		if !known {
			c = stock(p)
			catalogs[p.Catalog] = c
		}
		if p.NotReady == "" {
			if p.NotReady = c.Trouble; p.NotReady == "" {
				p.NotReady = p.Unsuited(&c)
			}
		}
		convert.Windows(&p, d.Now)
		if p.Kind == dialect.KindNodePool {
			p.Disruption.SpotToSpot = s.Policy.SpotToSpot
		}
		i := slices.IndexFunc(s.Pools, func(o world.Pool) bool { return o.Kind == p.Kind && o.Name == p.Name })
		if i < 0 {
			s.Pools = append(s.Pools, p)
			continue
		}
		old := s.Pools[i]
		p.UID, p.Used = old.UID, old.Used
		s.Pools[i] = p
		drift(&out, &old, &p, c.Types)
	}
	world.SortPools(s.Pools)
	return &out
}

// drift marks the machines that a changed pool would not buy as they are.
func drift(d *dump.Dump, old, now *world.Pool, types []world.InstanceType) {
	for i := range d.Snapshot.Nodes {
		n := &d.Snapshot.Nodes[i]
		r := slices.IndexFunc(d.Records, func(r world.Record) bool { return r.Name == n.Claim })
		if n.Claim == "" || r < 0 || n.Drifted != "" || n.Pool != now.Name || n.PoolKind != now.Kind {
			continue
		}
		in := lifecycle.DriftInput{Now: d.Now, Record: d.Records[r], Pool: old, Types: d.Snapshot.Catalogs[old.Catalog].Types, ImageOnly: now.Kind == dialect.KindProvisioner}
		if lifecycle.Drift(in).Status != "" {
			continue // the controller knows better than this record
		}
		in.Pool, in.Types, in.PoolChanged = now, types, old.Hash != "" && now.Hash != old.Hash
		if c := lifecycle.Drift(in); c.Status != "" {
			n.Drifted, n.DriftedSince = c.Reason, &d.Now
		}
	}
}

// Lines are the forecast in words, one thing to do each.
func (f *Forecast) Lines() (out []string) {
	for i := range f.Machines {
		m := &f.Machines[i]
		out = append(out, fmt.Sprintf("buy %s, for %s", what(m), some(m.Pods)))
	}
	for i := range f.Commands {
		c := &f.Commands[i]
		for _, t := range c.Remove {
			out = append(out, fmt.Sprintf("remove %s of pool %q: %s", t.Node, t.Pool, c.Method))
		}
		for j := range c.Replace {
			out = append(out, fmt.Sprintf("buy %s, in place of %s", what(&c.Replace[j]), replaced(c)))
		}
	}
	for _, u := range f.Unplaced {
		why := ""
		if len(u.Reasons) > 0 {
			why = ": " + u.Reasons[0].String()
		}
		out = append(out, fmt.Sprintf("no place for %s%s", u.Pod, why))
	}
	return out
}

func what(m *schedule.Machine) string {
	first := m.Options[0]
	return fmt.Sprintf("%s %s in %s of pool %q, %s", first.Type, first.CapacityType, first.Zone, m.Pool, m.Price)
}

func some(pods []world.ObjectName) string {
	switch len(pods) {
	case 0:
		return "no pod"
	case 1:
		return pods[0].String()
	}
	return fmt.Sprintf("%s and %d more", pods[0], len(pods)-1)
}

func replaced(c *disrupt.Command) string {
	var names []string
	for _, t := range c.Remove {
		names = append(names, t.Node)
	}
	return strings.Join(names, ", ")
}

// Text is the forecast for people.
func (f *Forecast) Text() string {
	var b strings.Builder
	for _, l := range f.Lines() {
		b.WriteString(l + "\n")
	}
	if !f.Changes() {
		b.WriteString("nothing would be bought or removed\n")
	}
	change := f.After.PerHour - f.Before.PerHour
	sign := "+"
	if change < 0 {
		sign, change = "-", -change
	}
	fmt.Fprintf(&b, "machines %d → %d, cost %s → %s (%s%s), %d pods move, %d get a place, %d do not\n",
		f.Before.Machines, f.After.Machines, f.Before.PerHour, f.After.PerHour, sign, change, f.Moved, f.Placed, len(f.Unplaced))
	if n := len(f.Drifted); n > 0 {
		fmt.Fprintf(&b, "%d machines differ from what their pools would buy; they are replaced in turn, as budgets allow\n", n)
	}
	return b.String()
}

// Diff says in which lines two forecasts differ: - is of the first alone, + of the
// second. It is empty if they do the same.
func Diff(a, b *Forecast) string {
	count := map[string]int{}
	for _, l := range a.Lines() {
		count[l]++
	}
	var out, plus []string
	for _, l := range b.Lines() {
		if count[l]--; count[l] < 0 {
			plus = append(plus, "+ "+l+"\n")
		}
	}
	for _, l := range a.Lines() {
		if count[l] > 0 {
			count[l]--
			out = append(out, "- "+l+"\n")
		}
	}
	text := strings.Join(append(out, plus...), "")
	if text != "" || a.After != b.After {
		text += fmt.Sprintf("  afterwards %d machines for %s, instead of %d for %s\n", b.After.Machines, b.After.PerHour, a.After.Machines, a.After.PerHour)
	}
	return text
}
