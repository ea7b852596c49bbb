// Package planner is the one loop that decides about capacity: up when pods
// wait, down when machines are no longer wanted, in turn.
//
// It may import core, kube, settings and journal; what it needs of the cloud
// comes through the snapshot. What always holds: one pass at a time, on one
// snapshot at a time, and everything that a pass decided is written down before
// the next one. Run holds watch and timer; Pass does the work, has no goroutine,
// and takes its time from Now.
package planner

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/internal/core/world"
	"karpenter/internal/journal"
	"karpenter/internal/kube/event"
	"karpenter/internal/kube/ledger"
	"karpenter/internal/kube/mirror"
	"karpenter/internal/settings"
)

// Times of the loop.
const (
	tick  = 10 * time.Second // between looks for machines to remove
	retry = 10 * time.Second // between plans for pods that still wait
	// settle is how long a machine is closed to new pods before it is looked at
	// for the last time: a binding that kube-scheduler had begun is visible then.
	settle = time.Second
	// validate is the same for a command that is made for the money: what it is
	// based on must have lasted for a while.
	validate = 15 * time.Second
	// failed is the wait after the first plan that could not be carried out; it
	// doubles up to retry.
	failed = time.Second
)

// Planner is the loop. All fields but those below the line must be set.
type Planner struct {
	Mirror   viewer
	Ledger   beginner
	Client   client.Client
	Events   event.Recorder
	Journal  *journal.Journal
	Settings func() settings.Settings
	Now      func() time.Time
	Metrics  *Metrics
	Log      logr.Logger
	// Watch notes that a pass begins, and returns what to call at its end.
	Watch func(pass string) (end func())
	// Rests reports whether a half of the loop does nothing now; nil: both work.
	// It is for whoever wants to see what one of them does.
	Rests func(Half) bool

	mu      sync.Mutex
	window  Window
	known   map[types.UID]bool // pods that the last plan has seen
	refused map[string]refusal // machines of the last plan, by pool and pods
	wake    chan struct{}
	braked  map[poolName]string // pools that buy nothing for a while, and why
	changes uint64              // of what a view may show, that were noticed

	nextTick time.Time
	retryAt  time.Time
	wait     time.Duration // after the last failure
	commands []command
	standing standing
	acc      accounts
	said     map[string]bool // why pods wait, as last logged
	told     told            // why machines stay
	serial   int

	machines map[string]string // nodes by NodeClaim, as the journal has them
	tallied  time.Time         // when the journal last had a tally
}

// Half of the loop.
type Half string

// The halves.
const (
	Up   Half = "up"   // pods get machines
	Down Half = "down" // machines go
)

func (p *Planner) rests(h Half) bool { return p.Rests != nil && p.Rests(h) }

// viewer is what the planner needs of the mirror.
type viewer interface {
	View(ctx context.Context, now time.Time, policy world.Policy, nominationWindow time.Duration) (*mirror.View, error)
	Claim(r world.Record, now time.Time)
	Forget(claim string)
	Intent(claim, method string, now time.Time)
	Deleted(claim string, now time.Time)
	Expect(node string, until time.Time)
	Same(ctx context.Context, v *mirror.View) bool
}

// beginner is what the planner needs of the ledger.
type beginner interface {
	Begin(context.Context, world.Pool, ledger.Machine) (world.Record, error)
	Plan(ctx context.Context, claim string, pods []world.ObjectName) error
}

// Pass does everything that is due and returns when it wants to run again at
// the latest. It is not safe for concurrent use.
func (p *Planner) Pass(ctx context.Context) (next time.Time, err error) {
	if p.Watch != nil {
		defer p.Watch("planner")()
	}
	now, set := p.Now(), p.Settings()
	if !p.rests(Up) && p.take(now, set) {
		if err = p.up(ctx, set); err != nil {
			p.wait = min(max(2*p.wait, failed), retry)
			p.retryAt = now.Add(p.wait)
		} else {
			p.wait = 0
		}
	}
	err = errors.Join(err, p.finish(ctx, set))
	// A machine that looks empty may be just what pods that came a moment ago
	// want: they are planned first.
	if !now.Before(p.nextTick) && !p.collecting() {
		p.nextTick = now.Add(tick)
		if !p.rests(Down) {
			err = errors.Join(err, p.down(ctx, set))
		}
	}
	return p.next(set), err
}

// collecting reports whether pods are coming that will be planned in a moment.
func (p *Planner) collecting() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.window.Open() && !p.rests(Up)
}

// take reports whether pods are due to be planned, and closes the window if so.
func (p *Planner) take(now time.Time, set settings.Settings) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	due := !p.retryAt.IsZero() && !now.Before(p.retryAt)
	if p.window.Open() { // a burst that is still coming is not cut in two
		due = !now.Before(p.window.DueAt(set.BatchIdle, set.BatchMax))
	}
	if due {
		p.window.Close()
		p.retryAt = time.Time{}
	}
	return due
}

// next is the earliest time at which something will be due.
func (p *Planner) next(set settings.Settings) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := p.nextTick
	earlier := func(t time.Time) {
		if t.Before(next) {
			next = t
		}
	}
	switch {
	case p.rests(Up):
	case p.window.Open():
		next = p.window.DueAt(set.BatchIdle, set.BatchMax)
	case !p.retryAt.IsZero():
		earlier(p.retryAt)
	}
	for _, c := range p.commands {
		earlier(c.notBefore)
	}
	return next
}

// Run passes until the context ends.
func (p *Planner) Run(ctx context.Context) error {
	for {
		next, err := p.Pass(ctx)
		if err != nil && ctx.Err() == nil {
			p.Log.Error(err, "a pass of the planner failed; it is repeated")
		}
		timer := time.NewTimer(next.Sub(p.Now()))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-p.woken():
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (p *Planner) woken() chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wake == nil {
		p.wake = make(chan struct{}, 1)
	}
	return p.wake
}

// policy is the part of the settings that the core looks at.
func policy(set settings.Settings) world.Policy {
	p := world.Policy{MachineCost: set.MachineCost, TieToleranceMicros: set.TieToleranceMicros, PreferenceMicros: set.PreferenceMicros, RelaxMinValues: set.RelaxMinValues}
	if set.SpotToSpotConsolidation {
		p.SpotToSpot = spotToSpot
	}
	return p
}

// spotToSpot is of how many cheaper types there must be a choice: whichever of
// them the cloud picks, the next look finds fewer, so that a machine does not
// walk down to the type that is interrupted most.
const spotToSpot = 15

// nominationWindow is how long pods are expected on a node that is ready.
func nominationWindow(set settings.Settings) time.Duration {
	return max(2*set.BatchMax, 10*time.Second)
}

func (p *Planner) view(ctx context.Context, set settings.Settings) (*mirror.View, error) {
	v, err := see(ctx, p.Mirror, p.Now(), set)
	if err != nil {
		return nil, err
	}
	p.settleAccounts(ctx, v)
	p.noteMachines(v)
	return v, nil
}
