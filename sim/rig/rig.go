// Package rig runs the whole product on virtual time: all controllers, on an API
// server in memory and on a simulated EC2, pass by pass.
//
// It may import everything but app and awsapi. What always holds: no goroutine
// decides an outcome and nobody reads a real clock, so that the same seed gives
// the same history, byte for byte; whatever a process does to the world goes
// through one place (see [Interceptor]), where it can be refused, lost, or be
// the last thing that the process did.
package rig

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"karpenter/internal/aws"
	"karpenter/internal/controller/planner"
	"karpenter/internal/settings"
	"karpenter/sim/ec2"
	"karpenter/sim/kube"
)

// Options configure a rig.
type Options struct {
	// Seed decides everything that is left to chance.
	Seed uint64
	// Start is the time at which the world begins.
	Start time.Time
	// Cloud is the region; its clock and seed are set here.
	Cloud ec2.Options
	// Shared is what all launches have in common, Settings those of the process.
	Shared   aws.Settings
	Settings settings.Settings
	// Shuffle picks among the things that could happen next by chance; otherwise
	// they happen in a fixed order.
	Shuffle bool
	// Admit is asked by the API server.
	Admit func(old, new runtime.Object) error
}

// Rig is a world.
type Rig struct {
	opt   Options
	clock time.Time
	rng   *rand.Rand

	Kube  *kube.Cluster
	Cloud *ec2.Cloud
	// Log is what has happened.
	Log *History
	// Process is the one that leads; nil: none runs. While it is frozen it does
	// nothing, and the world goes on.
	Process *Process
	Frozen  bool
	// Rest is the half of the planner that does nothing; empty: both work.
	Rest planner.Half
	// Late is how long a change is on its way to the process; nil: no time at all.
	Late func() time.Duration
	// Plant makes the processes wrong in a known way.
	Plant Plant
	// Idle are the names of controllers that do nothing.
	Idle []string
	// Passes counts how often each part of the world and of its processes has
	// acted, by name.
	Passes map[string]int

	interceptor Interceptor
	parts       []part
	later       []happening
	serial      int
	watchers    []func()
	old         []*Process // that finish a pass
}

// part is something that wants to act at times.
type part interface {
	name() string
	// next is when; false: not until something else happens.
	next(now time.Time) (time.Time, bool)
	// act does one thing.
	act()
}

// Plant is a fault that checks must find.
type Plant string

// Planted faults.
const (
	DropToken     Plant = "drop-token"     // launches carry no client token
	IgnoreBudgets Plant = "ignore-budgets" // pods are deleted where they should be evicted
	LoseList      Plant = "lose-list"      // whoever lists instances sees none
	RepeatLaunch  Plant = "repeat-launch"  // every launch is sent twice, under two tokens
)

// Plants are all of them.
func Plants() []Plant { return []Plant{DropToken, IgnoreBudgets, LoseList, RepeatLaunch} }

// happening is something planned for a time.
type happening struct {
	at  time.Time
	seq int
	do  func()
}

// New makes a world with nothing in it.
func New(opt Options) *Rig {
	r := &Rig{opt: opt, clock: opt.Start, rng: rand.New(rand.NewPCG(opt.Seed, 0x726967)), Passes: map[string]int{}}
	scheme := Scheme()
	r.Kube = kube.New(kube.Options{Scheme: scheme, Now: r.Now, Seed: opt.Seed, Hook: r.kubeCall})
	opt.Cloud.Now, opt.Cloud.Seed = r.Now, opt.Seed
	r.Cloud = ec2.New(opt.Cloud)
	r.Log = newHistory(r)
	r.parts = []part{&happenings{r}, &cloudTicks{r}}
	return r
}

// Now is the time in the world.
func (r *Rig) Now() time.Time { return r.clock }

// At plans something for a time; what is planned for the same time happens in
// the order in which it was planned.
func (r *Rig) At(t time.Time, do func()) {
	r.serial++
	h := happening{t, r.serial, do}
	i, _ := slices.BinarySearchFunc(r.later, h, func(a, b happening) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.seq, b.seq)) })
	r.later = slices.Insert(r.later, i, h)
}

// After plans something for later.
func (r *Rig) After(d time.Duration, do func()) { r.At(r.clock.Add(d), do) }

// Add makes a part of the world act.
func (r *Rig) Add(p Part) { r.parts = append(r.parts, &outside{p}) }

// Part of the world from outside of this package.
type Part interface {
	Name() string
	Next(now time.Time) (time.Time, bool)
	Act()
}

type outside struct{ Part }

func (o *outside) name() string                         { return o.Name() }
func (o *outside) next(now time.Time) (time.Time, bool) { return o.Next(now) }
func (o *outside) act()                                 { o.Act() }

// Watch calls f after everything that happens.
func (r *Rig) Watch(f func()) { r.watchers = append(r.watchers, f) }

// Step lets the next thing happen, if there is one not later than until, and
// moves the clock to its time.
func (r *Rig) Step(until time.Time) bool {
	var due []part
	var at time.Time
	for _, p := range r.acting() {
		t, ok := p.next(r.clock)
		if !ok || t.After(until) {
			continue
		}
		if t.Before(r.clock) {
			t = r.clock
		}
		switch {
		case len(due) == 0 || t.Before(at):
			due, at = append(due[:0], p), t
		case t.Equal(at):
			due = append(due, p)
		}
	}
	if len(due) == 0 {
		return false
	}
	r.clock = at
	p := due[0]
	if r.opt.Shuffle {
		p = due[r.rng.IntN(len(due))]
	}
	r.Passes[p.name()]++
	p.act()
	for _, o := range r.old {
		o.Kill()
	}
	r.old = nil
	for _, f := range r.watchers {
		f()
	}
	return true
}

// Run lets everything happen until a time.
func (r *Rig) Run(until time.Time) {
	for r.Step(until) {
	}
	r.clock = until
}

// acting are the parts of the world and of the process.
func (r *Rig) acting() []part {
	if r.Process == nil || r.Process.dead || r.Frozen {
		return r.parts
	}
	out := slices.Clone(r.parts)
	for _, p := range r.Process.parts {
		if !slices.Contains(r.Idle, p.name()) {
			out = append(out, p)
		}
	}
	return out
}

type happenings struct{ r *Rig }

func (h *happenings) name() string { return "planned" }

func (h *happenings) next(time.Time) (time.Time, bool) {
	if len(h.r.later) == 0 {
		return time.Time{}, false
	}
	return h.r.later[0].at, true
}

func (h *happenings) act() {
	first := h.r.later[0]
	h.r.later = slices.Delete(h.r.later, 0, 1)
	first.do()
}

type cloudTicks struct{ r *Rig }

func (c *cloudTicks) name() string { return "cloud" }

// next rounds up to the precision of the cloud's clock.
func (c *cloudTicks) next(time.Time) (time.Time, bool) {
	due, ok := c.r.Cloud.NextDue()
	if whole := due.Truncate(time.Millisecond); whole.Before(due) {
		due = whole.Add(time.Millisecond)
	}
	return due, ok
}

func (c *cloudTicks) act() { c.r.Cloud.Tick() }
