package rig

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/internal/assembly"
	"karpenter/internal/aws"
	"karpenter/internal/controller/gc"
	"karpenter/internal/controller/planner"
	"karpenter/internal/kube/feed"
	"karpenter/internal/settings"
	"karpenter/sim/ec2/direct"
	"karpenter/sim/kube"
)

// Process is one life of the controller: from its start to its end.
type Process struct {
	rig  *Rig
	name string
	dead bool

	All *assembly.Assembly
	// Registry holds its metrics, with those of each object.
	Registry *prometheus.Registry
	clients  []*kube.Client
	cache    *kube.Cache
	cloud    *face
	log      logr.Logger
	parts    []part
	planner  *loop
	// skew is how wrong its clock is.
	skew time.Duration
}

// Start starts the controller; what it knows it reads from the world.
func (r *Rig) Start() *Process {
	r.serial++
	p := &Process{rig: r, name: fmt.Sprintf("karpenter-%d", r.serial), Registry: prometheus.NewRegistry()}
	p.log = logr.New(&sink{p: p})
	p.cache = r.Kube.Cache(p.name)
	p.cloud = &face{p: p, to: direct.New(r.Cloud)}
	if err := assembly.Indexes(context.Background(), p.cache); err != nil {
		panic(err) // an index that is registered twice: a fault of this program
	}
	cached, live := r.Kube.CachedClient(p.name, p.cache), r.Kube.Client(p.name)
	p.clients = []*kube.Client{cached, live}
	p.All = assembly.New(assembly.Parts{
		Client: cached, Cache: p.cache, Live: live,
		AWS: p.cloud, Inbox: aws.NewInbox(p.cloud, p.now), Cloud: func(context.Context) (aws.Settings, error) { return r.opt.Shared, nil },
		Settings: func() settings.Settings { return r.opt.Settings },
		Events:   recorder{p}, Metrics: p.Registry, PerObject: true, Now: p.now, Log: p.log,
	})
	p.parts = []part{&delivery{p: p}}
	p.loops()
	for _, rec := range p.All.Reconcilers {
		p.feed(rec)
	}
	r.Process = p
	r.Log.note("process", p.name, "started")
	return p
}

// loops are the parts that run when their time has come.
func (p *Process) loops() {
	p.All.Planner.Rests = func(h planner.Half) bool { return p.rig.Rest == h }
	p.planner = &loop{p: p, title: "planner", pass: func(ctx context.Context) (time.Time, error) { return p.All.Planner.Pass(ctx) }}
	p.parts = append(p.parts, p.planner,
		&loop{p: p, title: "gc", pass: func(ctx context.Context) (time.Time, error) {
			err := p.All.Garbage.Pass(ctx)
			return p.now().Add(gc.Interval), err
		}},
		&loop{p: p, title: "notice", pass: p.All.Notices.Pass},
		&loop{p: p, title: "status", pass: p.All.Notices.Check},
		&loop{p: p, title: "catalog", pass: func(ctx context.Context) (time.Time, error) { return p.All.Catalog.Pass(ctx), nil }},
	)
	for _, kind := range planner.Watched() {
		p.handle(kind, func(old, now client.Object) {
			if p.All.Notice(old, now) {
				p.planner.at = p.rig.clock
			}
		})
	}
}

// feed makes changes that the cache shows wake a reconciler.
func (p *Process) feed(rec feed.Reconciler) {
	q := &queue{p: p, title: rec.Name, work: rec.Reconciler, failed: map[reconcile.Request]int{}}
	p.parts = append(p.parts, q)
	for _, s := range rec.Sources {
		p.handle(s.Kind, func(old, now client.Object) {
			for _, r := range s.Requests(context.Background(), old, now) {
				q.add(r, p.rig.clock)
			}
		})
	}
}

func (p *Process) handle(kind client.Object, f func(old, now client.Object)) {
	err := p.cache.Handle(kind, func(old, now client.Object) {
		if !p.dead {
			f(old, now)
		}
	})
	if err != nil {
		panic(err) // a kind that the scheme does not have: a fault of this program
	}
}

// Kill ends the process at once: what it does from now on has no effect.
func (p *Process) Kill() {
	if p.dead {
		return
	}
	p.dead = true
	for _, c := range p.clients {
		c.Kill()
	}
	p.cache.Close()
	if p.rig.Process == p {
		p.rig.Process = nil
	}
	p.rig.Log.note("process", p.name, "died")
}

func (p *Process) now() time.Time { return p.rig.clock.Add(p.skew) }

func (p *Process) ctx(part string) context.Context {
	return log.IntoContext(context.Background(), p.log.WithName(part))
}

// loop is a part with a time of its own.
type loop struct {
	p     *Process
	title string
	at    time.Time
	over  bool // the pass does not want to run again
	pass  func(context.Context) (time.Time, error)
}

func (l *loop) name() string { return l.title }

func (l *loop) next(time.Time) (time.Time, bool) { return l.at, !l.over }

func (l *loop) act() {
	next, err := l.pass(l.p.ctx(l.title))
	if err != nil && !l.p.dead {
		l.p.rig.Log.trouble(l.title, "", err)
	}
	l.over = next.IsZero()
	// Whatever a pass wants, time goes on between two.
	l.at = next.Add(-l.p.skew)
	if least := l.p.rig.clock.Add(time.Millisecond); l.at.Before(least) {
		l.at = least
	}
}

// delivery shows the process what has changed.
type delivery struct {
	p   *Process
	due time.Time // zero: nothing is on the way
}

func (d *delivery) name() string { return "delivery" }

func (d *delivery) next(now time.Time) (time.Time, bool) {
	if d.p.cache.Pending() == 0 {
		d.due = time.Time{}
		return now, false
	}
	if d.due.IsZero() {
		d.due = now
		if late := d.p.rig.Late; late != nil {
			d.due = now.Add(late())
		}
	}
	return d.due, true
}

func (d *delivery) act() {
	d.due = time.Time{}
	d.p.cache.Deliver(-1)
}

// Outlive lets an old process finish the pass that it is in the middle of, while
// another one leads already; then it ends.
func (r *Rig) Outlive(old, next *Process) {
	r.old = append(r.old, old)
	r.Process = next
}

// Cache is what the process has seen.
func (p *Process) Cache() *kube.Cache { return p.cache }

// Skew makes the clock of the process wrong.
func (p *Process) Skew(d time.Duration) { p.skew = d }

// Dead reports whether the process has ended.
func (p *Process) Dead() bool { return p.dead }

// recorder takes events down.
type recorder struct{ p *Process }

// Event implements event.Recorder.
func (r recorder) Event(o runtime.Object, kind, reason, message string) {
	if !r.p.dead {
		r.p.rig.Log.event(o, kind, reason, message)
	}
}
