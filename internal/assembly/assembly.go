// Package assembly makes the provider and all controllers out of their parts.
// The process (app) runs them under a manager, with real clients and the real
// clock; the rig runs the same ones pass by pass on virtual time.
//
// It may import everything of ours but app, awsapi and the simulators.
package assembly

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/internal/aws"
	"karpenter/internal/census"
	"karpenter/internal/controller/adopt"
	"karpenter/internal/controller/catalog"
	"karpenter/internal/controller/claim"
	"karpenter/internal/controller/class"
	"karpenter/internal/controller/drain"
	"karpenter/internal/controller/gc"
	"karpenter/internal/controller/notice"
	"karpenter/internal/controller/planner"
	"karpenter/internal/controller/pool"
	"karpenter/internal/controller/replace"
	"karpenter/internal/controller/tag"
	"karpenter/internal/core/world"
	"karpenter/internal/journal"
	"karpenter/internal/kube/dialect"
	"karpenter/internal/kube/event"
	"karpenter/internal/kube/feed"
	"karpenter/internal/kube/ledger"
	"karpenter/internal/kube/mirror"
	"karpenter/internal/settings"
)

// Sizes of the journal.
const (
	journalEntries = 500
	journalInputs  = 8
)

// Parts are what everything is made of. All fields are required, but Watch.
type Parts struct {
	// Client reads the cache, and never the state before its own last write;
	// its cache must have the indexes of [Indexes].
	Client client.Client
	// Cache reads what the watches have shown so far.
	Cache client.Reader
	// Live reads from the API server.
	Live client.Reader
	// Kinds are the kinds of pools that the API server knows; none: all.
	Kinds []dialect.Dialect
	// AWS is how EC2 and its neighbours are called, and Cloud what all launches
	// have in common.
	AWS aws.API
	// Inbox is where AWS tells about machines; nil: nobody listens.
	Inbox notice.Inbox
	Cloud func(context.Context) (aws.Settings, error)
	// Settings are read at the top of every pass.
	Settings func() settings.Settings
	Events   event.Recorder
	Metrics  prometheus.Registerer
	// PerObject publishes metrics with a series for each node and pod.
	PerObject bool
	// Watch notes that a pass of a loop begins, and returns what to call at its
	// end.
	Watch func(pass string) (end func())
	Now   func() time.Time
	Log   logr.Logger
}

// Assembly is one process, put together and not yet running.
type Assembly struct {
	Provider *aws.Provider
	Journal  *journal.Journal
	// Reconcilers run when something changes, the loops when their time has come.
	Reconcilers []feed.Reconciler
	Planner     *planner.Planner
	Garbage     *gc.Controller
	Catalog     *catalog.Controller
	Notices     *notice.Controller // nil: nobody listens

	parts   Parts
	moments *census.Moments
}

// Notice tells of a change that a watch has shown, to whoever counts and to the
// planner; see [planner.Planner.Notice] for arguments and answer.
func (a *Assembly) Notice(before, after client.Object) bool {
	a.moments.Notice(before, after)
	return a.Planner.Notice(before, after)
}

// remembered is a mirror that keeps the last snapshot for those who count.
type remembered struct {
	*mirror.Mirror
	last atomic.Pointer[world.Snapshot]
}

func (r *remembered) View(ctx context.Context, now time.Time, policy world.Policy, nominationWindow time.Duration) (*mirror.View, error) {
	v, err := r.Mirror.View(ctx, now, policy, nominationWindow)
	if err == nil {
		r.last.Store(v.Snapshot)
	}
	return v, err
}

// Indexes tells a cache by what its objects are looked up.
func Indexes(ctx context.Context, indexer client.FieldIndexer) error {
	if err := ledger.RegisterIndexes(ctx, indexer); err != nil {
		return fmt.Errorf("preparing indexes: %w", err)
	}
	return nil
}

// New puts a process together. Nothing is called yet.
func New(p Parts) *Assembly {
	if len(p.Kinds) == 0 {
		p.Kinds = dialect.All()
	}
	provider := aws.New(aws.Config{API: p.AWS, Classes: classes{p.Client}, Settings: p.Cloud, Now: p.Now})
	cloud := newMetered(provider, p.Now, p.Log.WithName("cloud"), p.Metrics)
	events := event.NewOnce(p.Events, p.Now)
	book := &ledger.Ledger{Client: p.Client, Now: p.Now}
	history := journal.New(journalEntries, journalInputs)
	look := mirror.New(p.Cache, func(ctx context.Context, pool world.Pool) world.Catalog {
		c, _ := provider.Catalog(ctx, pool.Class, pool.Kubelet) // an error is in the catalogue, as its Trouble
		return c
	}, p.Kinds...)
	counts := planner.NewMetrics(p.Metrics)
	kept := &remembered{Mirror: look}
	p.Metrics.MustRegister(&census.Census{Last: kept.last.Load, PerObject: p.PerObject})
	a := &Assembly{
		parts:    p,
		moments:  census.NewMoments(p.Metrics, p.Now),
		Provider: provider,
		Journal:  history,
		Planner: &planner.Planner{
			Mirror: kept, Ledger: book, Client: p.Client, Events: events, Journal: history, Settings: p.Settings,
			Now: p.Now, Metrics: counts, Log: p.Log.WithName("planner"), Watch: p.Watch,
		},
		Garbage: &gc.Controller{Ledger: book, Live: p.Live, Cloud: cloud, Events: events, Disrupted: counts.Disrupted, Sweep: sweep(provider, p.Client), Now: p.Now},
		Catalog: &catalog.Controller{Refresh: provider.Refresh, Now: p.Now, Log: p.Log.WithName("catalog")},
	}
	if p.Inbox != nil {
		a.Notices = &notice.Controller{Ledger: book, Inbox: p.Inbox, Events: events, Refuse: provider.Unavailable().Mark,
			Settings: p.Settings, Metrics: notice.NewMetrics(p.Metrics), Now: p.Now, Log: p.Log.WithName("interruption")}
	}
	controllers := []interface{ Reconciler() feed.Reconciler }{
		&claim.Controller{Ledger: book, Cloud: cloud, Events: events, Settings: p.Settings, NominatedUntil: look.NominatedUntil, Disrupted: counts.Disrupted,
			Learn: learn(provider), Drift: drifter{provider}, Kinds: p.Kinds, Now: p.Now},
		&drain.Controller{Ledger: book, Cloud: cloud, Events: events, Now: p.Now, Metrics: drain.NewMetrics(p.Metrics)},
		&replace.Controller{Client: p.Client, Events: events, Journal: history, Now: p.Now, Log: p.Log.WithName("replace"), Disrupted: counts.Disrupted, GivenUp: counts.GivenUp,
			Look: func(ctx context.Context) (*world.Snapshot, error) {
				return planner.Snapshot(ctx, look, p.Now(), p.Settings())
			}},
	}
	if slices.ContainsFunc(p.Kinds, func(d dialect.Dialect) bool { return d.Kind == dialect.KindNodePool }) {
		controllers = append(controllers, &tag.Controller{Ledger: book, Cloud: cloud, Now: p.Now})
	}
	for _, kind := range p.Kinds {
		controllers = append(controllers,
			&pool.Controller{Client: p.Client, Kind: kind, Check: check(provider), Braked: a.Planner.Braked, Events: events, Now: p.Now, Log: p.Log.WithName("pool")},
			&class.Controller{Client: p.Client, Kind: kind, Resolve: resolve(provider), Release: release(provider), Events: events, Now: p.Now, Log: p.Log.WithName("class")})
	}
	if len(p.Kinds) == len(dialect.All()) { // machines can change hands
		controllers = append(controllers, &adopt.Controller{Ledger: book, Cloud: cloud})
	}
	for _, c := range controllers {
		a.Reconcilers = append(a.Reconcilers, c.Reconciler())
	}
	return a
}
