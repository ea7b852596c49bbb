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

	"karpenter/internal/assembly"
	"karpenter/internal/aws"
	"karpenter/internal/aws/awsapi"
	"karpenter/internal/controller/planner"
	"karpenter/internal/kube/dialect"
	"karpenter/internal/kube/event"
	"karpenter/internal/settings"
)

// wire makes everything and hangs it into the manager.
func wire(ctx context.Context, mgr manager.Manager, proc settings.Process, live *settings.Live, facts *facts, log logr.Logger) error {
	api, err := awsapi.New(ctx, awsapi.Config{Region: proc.Region, Version: Version})
	if err != nil {
		return err
	}
	log.Info("cloud", "region", api.Region())
	events, err := newEvents(mgr)
	if err != nil {
		return err
	}
	if err := assembly.Indexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	facts.config.events = event.NewOnce(events, time.Now)
	metrics.Registry.MustRegister(facts.config.valid)
	dog := newWatchdog(time.Now, metrics.Registry)
	all := assembly.New(assembly.Parts{
		Kinds:  facts.kinds,
		Client: mgr.GetClient(), Cache: mgr.GetCache(), Live: mgr.GetAPIReader(),
		AWS: api, Inbox: aws.NewInbox(api, time.Now), Cloud: facts.aws, Settings: live.Get,
		Events: events, Metrics: metrics.Registry, PerObject: proc.PerObject, Watch: dog.begin, Now: time.Now, Log: log,
	})
	for _, r := range all.Reconcilers {
		if err := r.SetupWithManager(mgr); err != nil {
			return fmt.Errorf("preparing controller %s: %w", r.Name, err)
		}
	}
	for _, run := range []manager.RunnableFunc{
		func(ctx context.Context) error { return runPlanner(ctx, mgr, all, facts.kinds) },
		all.Garbage.Run,
		all.Catalog.Run,
		all.Notices.Run,
	} {
		if err := mgr.Add(run); err != nil {
			return err
		}
	}
	if err := mgr.Add(onEach(facts.watch)); err != nil {
		return err
	}
	if err := keep(mgr, proc, all.Journal, log.WithName("journal")); err != nil {
		return err
	}
	return serve(mgr, proc, dog, all, log.WithName("server"))
}

// onEach runs on every replica, also on those that follow.
type onEach func(context.Context) error

// Start is what the manager calls.
func (f onEach) Start(ctx context.Context) error { return f(ctx) }

// NeedLeaderElection is false: a follower must know what holds when it leads.
func (onEach) NeedLeaderElection() bool { return false }

// runPlanner tells the planner of changes, and runs it.
func runPlanner(ctx context.Context, mgr manager.Manager, all *assembly.Assembly, pools []dialect.Dialect) error {
	tell := toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { all.Notice(nil, object(o)) },
		UpdateFunc: func(old, o any) { all.Notice(object(old), object(o)) },
		DeleteFunc: func(o any) { all.Notice(object(o), nil) },
	}
	for _, kind := range planner.Watched(pools...) {
		informer, err := mgr.GetCache().GetInformer(ctx, kind)
		if err != nil {
			return fmt.Errorf("watching %T: %w", kind, err)
		}
		if _, err := informer.AddEventHandler(tell); err != nil {
			return fmt.Errorf("watching %T: %w", kind, err)
		}
	}
	return all.Planner.Run(ctx)
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
func newEvents(mgr manager.Manager) (record.EventRecorder, error) {
	core, err := typedcore.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("preparing events: %w", err)
	}
	b := record.NewBroadcaster()
	b.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: core.Events("")})
	return b.NewRecorder(mgr.GetScheme(), corev1.EventSource{Component: "karpenter"}), nil
}
