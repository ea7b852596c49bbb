package schedule

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

// seeds are the worlds that every run of the tests looks at.
const seeds = 400

// raced: the race detector is on, which takes ten times as long and has nothing
// to find in code without goroutines.
var raced bool

// sample lists the seeds below n; where time is short, one of seven.
func sample(n uint64) (out []uint64) {
	step := uint64(1)
	if raced || testing.Short() {
		step = 7
	}
	for seed := uint64(0); seed < n; seed += step {
		out = append(out, seed)
	}
	return out
}

// dice makes random worlds; the same seed makes the same one.
type dice struct{ *rand.Rand }

func newDice(seed uint64) dice { return dice{rand.New(rand.NewPCG(seed, 17))} }

func (d dice) chance(percent int) bool { return d.IntN(100) < percent }

func one[T any](d dice, of ...T) T { return of[d.IntN(len(of))] }

const tierKey, sizeKey = "example.com/tier", "example.com/size"

func (d dice) requirement() label.Requirement {
	switch d.IntN(8) {
	case 0, 1:
		return label.Requirement{Key: label.Zone, Op: one(d, label.In, label.NotIn), Values: []string{one(d, "a", "b", "c")}}
	case 2:
		return label.Requirement{Key: label.CapacityType, Op: one(d, label.In, label.NotIn), Values: []string{one(d, label.Spot, label.OnDemand)}}
	case 3:
		return label.Requirement{Key: label.Arch, Op: label.In, Values: []string{one(d, "amd64", "arm64")}}
	case 4:
		return label.Requirement{Key: "karpenter.k8s.aws/instance-generation", Op: one(d, label.Gt, label.Lt), Values: []string{one(d, "4", "5", "6")}}
	case 5:
		return label.Requirement{Key: label.Provisioner, Op: one(d, label.In, label.NotIn), Values: []string{one(d, "p0", "p1")}}
	case 6:
		op := one(d, label.In, label.NotIn, label.Exists, label.DoesNotExist)
		r := label.Requirement{Key: tierKey, Op: op}
		if op == label.In || op == label.NotIn {
			r.Values = []string{one(d, "x", "y"), one(d, "y", "z")}
		}
		return r
	default:
		return label.Requirement{Key: sizeKey, Op: one(d, label.Gt, label.Lt, label.In), Values: []string{one(d, "1", "2", "3")}}
	}
}

func (d dice) requirements(most int) (out []label.Requirement) {
	for range d.IntN(most + 1) {
		out = append(out, d.requirement())
	}
	return out
}

func (d dice) taint() world.Taint {
	return world.Taint{Key: one(d, "t", "u"), Value: one(d, "", "v"), Effect: one(d, world.NoSchedule, world.NoExecute, world.PreferNoSchedule)}
}

func (d dice) pod(name string) world.Pod {
	p := world.Pod{ObjectName: world.ObjectName{Namespace: "ns", Name: name}, UID: name, Created: time.Unix(int64(d.IntN(3)), 0)}
	p.Requests = quantity.Resources{MilliCPU: one[int64](d, 0, 100, 500, 500, 1000, 1900, 5000), MemoryBytes: one[int64](d, 0, 1, 2, 6) << 30, Pods: 1}
	if d.chance(5) {
		p.Requests = p.Requests.With("x/gpu", 1)
	}
	if d.chance(50) {
		p.Selector = d.requirements(2)
	}
	if d.chance(30) {
		for range 1 + d.IntN(3) {
			p.Terms = append(p.Terms, d.requirements(2))
		}
	}
	if d.chance(20) {
		p.Preferred = []world.Preference{{Weight: int32(1 + d.IntN(100)), Term: d.requirements(1)}}
	}
	for range d.IntN(3) {
		t := d.taint()
		p.Tolerations = append(p.Tolerations, world.Toleration{Key: t.Key, Op: one(d, "Exists", "Equal"), Value: t.Value, Effect: one(d, t.Effect, "")})
	}
	if d.chance(10) {
		p.Priority = 10
	}
	return p
}

func (d dice) world(limits bool) *world.Snapshot {
	s := &world.Snapshot{Catalogs: map[world.CatalogKey]world.Catalog{}, Policy: world.DefaultPolicy()}
	for _, key := range []world.CatalogKey{"c0", "c1"} {
		var c world.Catalog
		if d.chance(5) {
			c.Trouble = "out of order"
		} else {
			c.Types = d.types()
		}
		s.Catalogs[key] = c
	}
	for i := range 1 + d.IntN(3) {
		s.Pools = append(s.Pools, d.pool(fmt.Sprintf("p%d", i), limits))
	}
	for i := range d.IntN(3) {
		t := d.pod(fmt.Sprintf("d%d", i))
		t.Requests.MilliCPU /= 4
		t.Requests.MemoryBytes /= 8
		s.Daemons = append(s.Daemons, world.Daemon{ObjectName: t.ObjectName, Template: t})
	}
	for i := range d.IntN(5) {
		s.Nodes = append(s.Nodes, d.node(i, s))
	}
	for i := range 1 + d.IntN(8) {
		p := d.pod(fmt.Sprintf("p%d", i))
		for k := range 1 + d.IntN(4) {
			q := p
			q.Name = fmt.Sprintf("p%d-%d", i, k)
			q.UID = q.Name
			s.Pending = append(s.Pending, q)
		}
	}
	if d.chance(20) {
		s.Pending[0].Refused = "not understood"
	}
	world.SortPools(s.Pools)
	world.SortNodes(s.Nodes)
	world.SortPending(s.Pending)
	return departed(s)
}

func (d dice) types() (out []world.InstanceType) {
	for i := range 1 + d.IntN(6) {
		cpu := one[int64](d, 1, 2, 4, 8)
		t := world.InstanceType{Name: fmt.Sprintf("t%d.%d", i, cpu), Labels: map[string]string{
			label.Arch: one(d, "amd64", "arm64"), label.OS: "linux", "karpenter.k8s.aws/instance-generation": fmt.Sprint(4 + d.IntN(3)),
		}}
		t.Capacity = quantity.Resources{MilliCPU: cpu * 1000, MemoryBytes: cpu * one[int64](d, 2, 4, 8) << 30, Pods: one[int64](d, 4, 10, 50)}
		if d.chance(15) {
			t.Capacity = t.Capacity.With("x/gpu", 2)
		}
		t.Allocatable = t.Capacity
		t.Allocatable.MilliCPU -= 100
		for _, zone := range []string{"a", "b", "c"} {
			for _, market := range []string{label.OnDemand, label.Spot} {
				if d.chance(80) {
					t.Offerings = append(t.Offerings, world.Offering{Zone: zone, CapacityType: market, Price: quantity.Price(cpu*10_000 + d.Int64N(20)*1000), Available: d.chance(90)})
				}
			}
		}
		out = append(out, t)
	}
	return out
}

func (d dice) pool(name string, limits bool) world.Pool {
	p := world.Pool{Name: name, Kind: "Provisioner", Weight: int32(d.IntN(3)), Catalog: one[world.CatalogKey](d, "c0", "c1"), Labels: map[string]string{label.Provisioner: name}}
	for range d.IntN(3) {
		r := d.requirement()
		if r.Key != label.Provisioner {
			p.Requirements = append(p.Requirements, r)
		}
	}
	if d.chance(25) {
		p.Labels[tierKey] = one(d, "x", "y")
	}
	if d.chance(30) {
		p.Taints = append(p.Taints, d.taint())
	}
	if d.chance(30) {
		p.StartupTaints = append(p.StartupTaints, d.taint())
	}
	if limits && d.chance(50) {
		p.Limits = []quantity.Amount{{Name: quantity.CPU, Value: 1000 * (1 + d.Int64N(20))}}
		p.Used.MilliCPU = d.Int64N(4000)
	}
	if d.chance(5) {
		p.NotReady = "not now"
	}
	return p
}

func (d dice) node(i int, s *world.Snapshot) world.Node {
	name := fmt.Sprintf("n%d", i)
	n := world.Node{Name: name, Joined: true, Initialized: d.chance(80), Deleting: d.chance(15), Unschedulable: d.chance(10), Labels: map[string]string{
		label.Hostname: name, label.Zone: one(d, "a", "b"), label.Arch: "amd64", label.CapacityType: label.Spot,
	}}
	if d.chance(60) {
		n.Claim, n.Pool = "claim-"+name, "p0"
		n.Labels[label.Provisioner] = "p0"
		n.Joined = d.chance(70)
	}
	if d.chance(30) {
		n.Labels[one(d, tierKey, sizeKey)] = one(d, "x", "2")
	}
	if d.chance(25) {
		n.Taints = append(n.Taints, d.taint())
	}
	n.Allocatable = quantity.Resources{MilliCPU: one[int64](d, 900, 1900, 3900), MemoryBytes: 8 << 30, Pods: one[int64](d, 3, 20)}
	for k := range d.IntN(4) {
		p := d.pod(fmt.Sprintf("b%d-%d", i, k))
		p.Node = name
		if len(s.Daemons) > 0 && d.chance(30) {
			p.Owner = world.Owner{Kind: "DaemonSet", Name: s.Daemons[0].Name}
		}
		n.Pods = append(n.Pods, p)
	}
	return n
}

// shuffled lists the same world in another order.
func (d dice) shuffled(s *world.Snapshot) *world.Snapshot {
	var out world.Snapshot
	raw, _ := json.Marshal(s)
	_ = json.Unmarshal(raw, &out)
	mix(d, out.Pools)
	mix(d, out.Nodes)
	mix(d, out.Pending)
	mix(d, out.Daemons)
	for i := range out.Nodes {
		mix(d, out.Nodes[i].Pods)
	}
	for _, c := range out.Catalogs {
		mix(d, c.Types)
		for i := range c.Types {
			mix(d, c.Types[i].Offerings)
		}
	}
	return &out
}

func mix[T any](d dice, s []T) { d.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] }) }

func fuzz(f *testing.F, property func(t *testing.T, seed uint64)) {
	for _, seed := range sample(seeds) {
		f.Add(seed)
	}
	f.Fuzz(property)
}

func placed(p *Plan) map[world.ObjectName]bool {
	out := map[world.ObjectName]bool{}
	for _, to := range p.Placements {
		out[to.Pod] = true
	}
	for _, m := range p.Machines {
		for _, pod := range m.Pods {
			out[pod] = true
		}
	}
	return out
}

func dump(v any) string {
	raw, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

var topologyKeys = []string{label.Zone, label.Zone, label.Zone, label.Hostname, label.Hostname, label.CapacityType, label.Arch, tierKey, label.Provisioner}

func (d dice) selector() world.LabelSelector {
	switch d.IntN(12) {
	case 0:
		return world.LabelSelector{Nothing: true}
	case 1:
		return world.LabelSelector{}
	case 2:
		return world.LabelSelector{Requirements: []label.Requirement{{Key: "app", Op: label.Exists}}}
	case 3:
		return world.LabelSelector{Requirements: []label.Requirement{{Key: "app", Op: label.NotIn, Values: []string{one(d, "a", "b")}}}}
	}
	return world.LabelSelector{Requirements: []label.Requirement{{Key: "app", Op: label.In, Values: []string{one(d, "a", "a", "b", "c")}}}}
}

func (d dice) podTerm() world.PodTerm {
	t := world.PodTerm{Key: one(d, topologyKeys...), Selector: d.selector(), Namespaces: []string{"ns"}}
	if d.chance(10) {
		t.Namespaces = []string{"other"}
	}
	if d.chance(10) {
		t.Namespaces, t.AllNamespaces = nil, true
	}
	if d.chance(25) {
		t.Weight = 1 + d.Int32N(100)
	}
	return t
}

// rules gives a pod rules between pods.
func (d dice) rules(p *world.Pod) {
	p.Labels = map[string]string{"app": one(d, "a", "b", "c")}
	if d.chance(10) {
		p.Namespace = "other"
	}
	if d.chance(40) {
		for range 1 + d.IntN(2) {
			s := world.Spread{Key: one(d, topologyKeys...), MaxSkew: 1 + d.Int32N(2), Selector: d.selector(), Soft: d.chance(25), IgnoreAffinity: d.chance(20), HonorTaints: d.chance(30)}
			if d.chance(20) {
				s.MinDomains = 1 + d.Int32N(4)
			}
			p.Spread = append(p.Spread, s)
		}
	}
	if d.chance(20) {
		p.Affinity = append(p.Affinity, d.podTerm())
	}
	if d.chance(25) {
		p.AntiAffinity = append(p.AntiAffinity, d.podTerm())
	}
	if d.chance(10) {
		p.HostPorts = []world.HostPort{{Protocol: "TCP", Port: 80 + d.Int32N(2), IP: one(d, "", "", "10.0.0.1", "10.0.0.2")}}
	}
	for range d.IntN(30) / 10 {
		p.Attach = append(p.Attach, world.Attachment{Driver: one(d, "ebs", "efs"), Volume: p.Name + one(d, "x", "y")})
	}
	if d.chance(10) {
		p.Volumes = world.VolumeTerms{{{Key: label.Zone, Op: label.In, Values: []string{one(d, "a", "b")}}}}
		if d.chance(30) {
			p.Volumes = append(p.Volumes, []label.Requirement{{Key: label.Zone, Op: label.In, Values: []string{"c"}}})
		}
	}
}

// ruled is a world with rules between pods.
func (d dice) ruled(limits bool) *world.Snapshot {
	s := d.world(limits)
	percent := one(d, 20, 60, 100)
	group := map[string]world.Pod{}
	for i := range s.Pending {
		p := &s.Pending[i]
		name := p.Name[:2]
		if _, ok := group[name]; !ok {
			q := *p
			if d.chance(percent) {
				d.rules(&q)
			}
			group[name] = q
		}
		q := group[name]
		p.Namespace, p.Labels, p.Spread, p.Affinity, p.AntiAffinity, p.HostPorts, p.Volumes = q.Namespace, q.Labels, q.Spread, q.Affinity, q.AntiAffinity, q.HostPorts, q.Volumes
		for _, a := range q.Attach {
			p.Attach = append(p.Attach, world.Attachment{Driver: a.Driver, Volume: p.Name + a.Volume})
		}
	}
	limit := func() []quantity.Amount {
		if d.chance(70) {
			return []quantity.Amount{{Name: "ebs", Value: 1 + d.Int64N(5)}}
		}
		return nil
	}
	for _, c := range s.Catalogs {
		for i := range c.Types {
			c.Types[i].AttachLimits = limit()
		}
	}
	for i := range s.Nodes {
		s.Nodes[i].AttachLimits = limit()
		for j := range s.Nodes[i].Pods {
			if d.chance(percent / 2) {
				d.rules(&s.Nodes[i].Pods[j])
			}
			if d.chance(10) {
				at := time.Unix(9, 0)
				s.Nodes[i].Pods[j].DeletedAt = &at
			}
		}
	}
	world.SortPending(s.Pending)
	return s
}

// FuzzRulesHold: every plan passes the independent check where pods have rules
// between them.
func FuzzRulesHold(f *testing.F) {
	fuzz(f, func(t *testing.T, seed uint64) {
		s := newDice(seed).ruled(seed%2 == 0)
		plan := Solve(s, Options{})
		if faults := Check(s, &plan); len(faults) > 0 {
			t.Fatalf("%v\n%s\n%s", faults, plan.Text(), dump(s))
		}
	})
}

// FuzzOrderDoesNotMatterToRules: nor does it then.
func FuzzOrderDoesNotMatterToRules(f *testing.F) {
	fuzz(f, func(t *testing.T, seed uint64) {
		d := newDice(seed)
		s := d.ruled(true)
		first, second := Solve(s, Options{}), Solve(d.shuffled(s), Options{})
		if a, b := dump(first), dump(second); a != b {
			t.Fatalf("%s\n%s\n%s", a, b, dump(s))
		}
	})
}

// FuzzPlanIsLegal: every plan passes the independent check.
func FuzzPlanIsLegal(f *testing.F) {
	fuzz(f, func(t *testing.T, seed uint64) {
		s := newDice(seed).world(true)
		plan := Solve(s, Options{})
		if faults := Check(s, &plan); len(faults) > 0 {
			t.Fatalf("%v\n%s\n%s", faults, plan.Text(), dump(s))
		}
	})
}

// FuzzOrderDoesNotMatter: the same world in another order gives the same bytes.
func FuzzOrderDoesNotMatter(f *testing.F) {
	fuzz(f, func(t *testing.T, seed uint64) {
		d := newDice(seed)
		s := d.world(true)
		first, second := Solve(s, Options{}), Solve(d.shuffled(s), Options{})
		if a, b := dump(first), dump(second); a != b {
			t.Fatalf("%s\n%s\n%s", a, b, dump(s))
		}
	})
}

// FuzzLessIsNotWorse: a pod that was placed still is when it asks for less.
func FuzzLessIsNotWorse(f *testing.F) {
	fuzz(f, func(t *testing.T, seed uint64) {
		d := newDice(seed)
		s := d.world(false)
		for i := range s.Pending {
			p := &s.Pending[i]
			if d.chance(15) {
				p.Volumes = world.VolumeTerms{d.requirements(2), {{Key: label.Zone, Op: label.In, Values: []string{"b"}}}}
			}
			for k := range d.IntN(20) / 15 * 2 {
				p.Attach = append(p.Attach, world.Attachment{Driver: "ebs", Volume: fmt.Sprint(p.Name, k)})
			}
		}
		for _, c := range s.Catalogs {
			for i := range c.Types {
				c.Types[i].AttachLimits = []quantity.Amount{{Name: "ebs", Value: 1 + d.Int64N(4)}}
			}
		}
		before := Solve(s, Options{})
		was := placed(&before)
		victim := d.IntN(len(s.Pending))
		p := &s.Pending[victim]
		switch d.IntN(7) {
		case 5:
			p.Volumes = nil
		case 6:
			p.Attach = nil
		case 0:
			p.Selector = nil
		case 1:
			p.Terms = nil
		case 2:
			p.Preferred = nil
		case 3:
			p.Tolerations = append(p.Tolerations[:len(p.Tolerations):len(p.Tolerations)], world.Toleration{Op: "Exists"})
		case 4:
			p.Selector = p.Selector[:len(p.Selector)/2]
		}
		after := Solve(s, Options{})
		if was[p.ObjectName] && !placed(&after)[p.ObjectName] {
			t.Fatalf("%s was placed and is not any more\n%s\n%s\n%s", p.Name, before.Text(), after.Text(), dump(s))
		}
	})
}

// FuzzImpossiblePodsDisturbNobody: a pod or a pool that cannot work changes
// nothing for the others.
func FuzzImpossiblePodsDisturbNobody(f *testing.F) {
	fuzz(f, func(t *testing.T, seed uint64) {
		d := newDice(seed)
		s := d.world(true)
		before := Solve(s, Options{})
		huge := d.pod("huge")
		huge.Requests.MilliCPU = 1_000_000
		huge.Selector, huge.Terms, huge.Priority = nil, nil, 1000
		s.Pending = append(s.Pending, huge)
		odd := huge
		odd.Name, odd.Requests.MilliCPU = "odd", 100
		odd.Requests = odd.Requests.With("x/unknown", 1)
		s.Pending = append(s.Pending, odd)
		s.Pools = append(s.Pools, world.Pool{Name: "broken", Weight: 100, Catalog: "nowhere"})
		after := Solve(s, Options{})
		a, b := dump([]any{before.Machines, before.Placements}), dump([]any{after.Machines, after.Placements})
		if a != b {
			t.Fatalf("%s\n%s\n%s", a, b, dump(s))
		}
	})
}

// preferences are functions that give a pod a wish, one of each kind.
var preferences = []func(d dice, p *world.Pod){
	func(d dice, p *world.Pod) {
		p.Preferred = append(p.Preferred, world.Preference{Weight: 1 + d.Int32N(100), Term: []label.Requirement{d.requirement()}})
	},
	func(d dice, p *world.Pod) {
		p.Spread = append(p.Spread, world.Spread{Key: one(d, topologyKeys...), MaxSkew: 1, Selector: d.selector(), Soft: true})
	},
	func(d dice, p *world.Pod) {
		p.Affinity = append(p.Affinity, world.PodTerm{Key: one(d, topologyKeys...), Selector: d.selector(), Namespaces: []string{"ns"}, Weight: 1 + d.Int32N(100)})
	},
	func(d dice, p *world.Pod) {
		p.AntiAffinity = append(p.AntiAffinity, world.PodTerm{Key: one(d, topologyKeys...), Selector: d.selector(), Namespaces: []string{"ns"}, Weight: 1 + d.Int32N(100)})
	},
}

// FuzzPreferencesCostLittle: whatever pods would like, as many have a place as
// without it, on as many machines bought.
func FuzzPreferencesCostLittle(f *testing.F) {
	fuzz(f, func(t *testing.T, seed uint64) {
		d := newDice(seed)
		s := d.world(false)
		for _, kind := range preferences {
			plain, wishing := d.shuffled(s), d.shuffled(s)
			for i := range plain.Pending {
				plain.Pending[i].Preferred = nil
			}
			for i := range wishing.Pending {
				p := &wishing.Pending[i]
				p.Preferred = nil
				p.Labels = map[string]string{"app": one(d, "a", "b", "c")}
				kind(d, p)
			}
			without, with := Solve(plain, Options{}), Solve(wishing, Options{})
			if a, b := placed(&without), placed(&with); len(b) < len(a) {
				t.Fatalf("%d pods placed, %d without preferences\n%s\n%s\n%s", len(b), len(a), without.Text(), with.Text(), dump(wishing))
			}
			if len(without.Machines) == 0 && len(with.Machines) > 0 {
				t.Fatalf("a preference buys a machine\n%s\n%s\n%s", without.Text(), with.Text(), dump(wishing))
			}
		}
	})
}
