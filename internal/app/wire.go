package app

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"karpenter/api/aws/v1alpha1"
	apiv1 "karpenter/api/v1"
	"karpenter/api/v1alpha5"
	"karpenter/internal/aws"
	"karpenter/internal/aws/awsapi"
	"karpenter/internal/controller/catalog"
	"karpenter/internal/controller/claim"
	"karpenter/internal/controller/class"
	"karpenter/internal/controller/drain"
	"karpenter/internal/controller/gc"
	"karpenter/internal/controller/planner"
	"karpenter/internal/controller/pool"
	"karpenter/internal/controller/replace"
	"karpenter/internal/core/world"
	"karpenter/internal/journal"
	"karpenter/internal/kube/event"
	"karpenter/internal/kube/ledger"
	"karpenter/internal/kube/mirror"
	"karpenter/internal/settings"
)

// Sizes of the journal.
const (
	journalEntries = 200
	journalInputs  = 8
)

// wire makes everything and hangs it into the manager.
func wire(ctx context.Context, mgr manager.Manager, proc settings.Process, live *settings.Live, facts *facts, log logr.Logger) error {
	api, err := awsapi.New(ctx, awsapi.Config{Region: proc.Region, Version: Version})
	if err != nil {
		return err
	}
	kube, now := mgr.GetClient(), time.Now
	classes := classes{kube}
	provider := aws.New(aws.Config{API: api, Classes: classes, Settings: facts.aws, Now: now})
	cloud := newMetered(provider, log.WithName("cloud"), metrics.Registry)
	log.Info("cloud", "region", provider.Region())

	events, err := newEvents(mgr, now)
	if err != nil {
		return err
	}
	if err := ledger.RegisterIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return fmt.Errorf("preparing indexes: %w", err)
	}
	book := &ledger.Ledger{Client: kube, Now: now}
	history := journal.New(journalEntries, journalInputs)
	dog := newWatchdog(now, metrics.Registry)
	look := mirror.New(mgr.GetCache(), func(ctx context.Context, p world.Pool) world.Catalog {
		c, _ := provider.Catalog(ctx, p.Class, p.Kubelet) // an error is in the catalogue, as its Trouble
		return c
	})
	counts := planner.NewMetrics(metrics.Registry)
	plan := &planner.Planner{
		Mirror: look, Ledger: book, Client: kube, Events: events, Journal: history, Settings: live.Get,
		Now: now, Metrics: counts, Log: log.WithName("planner"), Watch: dog.begin,
	}
	shop := &catalog.Controller{Refresh: provider.Refresh, Now: now, Log: log.WithName("catalog")}

	for _, c := range []interface {
		SetupWithManager(manager.Manager) error
	}{
		&claim.Controller{Ledger: book, Cloud: cloud, Events: events, Settings: live.Get, NominatedUntil: look.NominatedUntil, Now: now},
		&drain.Controller{Ledger: book, Cloud: cloud, Events: events, Now: now, Metrics: drain.NewMetrics(metrics.Registry)},
		&gc.Controller{Ledger: book, Live: mgr.GetAPIReader(), Cloud: cloud, Events: events, Now: now},
		&replace.Controller{Client: kube, Events: events, Now: now, Log: log.WithName("replace"), Disrupted: counts.Disrupted},
		&pool.Controller{Client: kube, Class: &v1alpha1.AWSNodeTemplate{}, Check: check(provider), Events: events, Now: now, Log: log.WithName("pool")},
		&class.Controller{Client: kube, Resolve: resolve(provider), Events: events, Now: now, Log: log.WithName("class")},
	} {
		if err := c.SetupWithManager(mgr); err != nil {
			return fmt.Errorf("preparing %T: %w", c, err)
		}
	}
	for _, r := range []manager.Runnable{
		manager.RunnableFunc(func(ctx context.Context) error { return runPlanner(ctx, mgr, plan) }),
		manager.RunnableFunc(shop.Run),
		manager.RunnableFunc(facts.watch),
	} {
		if err := mgr.Add(r); err != nil {
			return err
		}
	}
	return serve(mgr, proc, dog, history, log.WithName("server"))
}

// runPlanner tells the planner of changes, and runs it.
func runPlanner(ctx context.Context, mgr manager.Manager, p *planner.Planner) error {
	tell := toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { p.Notice(nil, object(o)) },
		UpdateFunc: func(old, o any) { p.Notice(object(old), object(o)) },
		DeleteFunc: func(o any) { p.Notice(object(o), nil) },
	}
	for _, kind := range []client.Object{&corev1.Pod{}, &corev1.Node{}, &apiv1.NodeClaim{}, &v1alpha5.Provisioner{}} {
		informer, err := mgr.GetCache().GetInformer(ctx, kind)
		if err != nil {
			return fmt.Errorf("watching %T: %w", kind, err)
		}
		if _, err := informer.AddEventHandler(tell); err != nil {
			return fmt.Errorf("watching %T: %w", kind, err)
		}
	}
	return p.Run(ctx)
}

// object unwraps what an informer hands out; nil for what it has lost track of.
func object(o any) client.Object {
	if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	out, _ := o.(client.Object)
	return out
}

// newEvents makes the recorder through which everybody publishes.
func newEvents(mgr manager.Manager, now func() time.Time) (*event.Once, error) {
	core, err := typedcore.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("preparing events: %w", err)
	}
	b := record.NewBroadcaster()
	b.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: core.Events("")})
	return event.NewOnce(b.NewRecorder(mgr.GetScheme(), corev1.EventSource{Component: "karpenter"}), now), nil
}
