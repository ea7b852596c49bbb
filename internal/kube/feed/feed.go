// Package feed says which objects a reconciler looks at when something
// changes, as data: a manager runs it on watches, and a driver on virtual time
// can follow the same rules one change at a time.
//
// It may import controller-runtime and nothing of ours.
package feed

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Source is one kind of object whose changes matter.
type Source struct {
	// Kind is an object of the kind that is watched.
	Kind client.Object
	// Matters reports whether a change is passed on; nil: every one is. before
	// is nil for an object that is new, after for one that is gone.
	Matters func(before, after client.Object) bool
	// Map names what to look at; nil: the object itself. After a change it is
	// asked about the object as it was and as it is.
	Map func(context.Context, client.Object) []reconcile.Request
}

// Requests names what to look at after a change.
func (s Source) Requests(ctx context.Context, before, after client.Object) []reconcile.Request {
	if s.Matters != nil && !s.Matters(before, after) {
		return nil
	}
	var out []reconcile.Request
	for _, o := range []client.Object{before, after} {
		switch {
		case o == nil:
		case s.Map != nil:
			out = append(out, s.Map(ctx, o)...)
		default:
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
		}
	}
	return out
}

// Reconciler is a reconciler and what it is fed with.
type Reconciler struct {
	reconcile.Reconciler
	Name    string
	Sources []Source
	// Workers is how many objects are looked at side by side; 0 = 1.
	Workers int
}

// SetupWithManager makes the manager run it.
func (r Reconciler) SetupWithManager(m manager.Manager) error {
	b := builder.ControllerManagedBy(m).Named(r.Name).WithOptions(controller.Options{MaxConcurrentReconciles: r.Workers})
	for _, s := range r.Sources {
		var h handler.EventHandler = &handler.EnqueueRequestForObject{}
		if s.Map != nil {
			h = handler.EnqueueRequestsFromMapFunc(s.Map)
		}
		b = b.Watches(s.Kind, h, builder.WithPredicates(s.predicate()))
	}
	return b.Complete(r.Reconciler)
}

func (s Source) predicate() predicate.Predicate {
	if s.Matters == nil {
		return predicate.Funcs{}
	}
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return s.Matters(nil, e.Object) },
		UpdateFunc:  func(e event.UpdateEvent) bool { return s.Matters(e.ObjectOld, e.ObjectNew) },
		DeleteFunc:  func(e event.DeleteEvent) bool { return s.Matters(e.Object, nil) },
		GenericFunc: func(e event.GenericEvent) bool { return s.Matters(nil, e.Object) },
	}
}

// Respecified lets a change pass unless it is an update that left the spec as
// it was: a status that we write ourselves must not wake us.
func Respecified(before, after client.Object) bool {
	return before == nil || after == nil || before.GetGeneration() != after.GetGeneration()
}

// Updated lets everything pass but updates for which changed says no.
func Updated[T client.Object](changed func(before, after T) bool) func(before, after client.Object) bool {
	return func(before, after client.Object) bool {
		b, ok := before.(T)
		a, ok2 := after.(T)
		return !ok || !ok2 || changed(b, a)
	}
}

// Latest lets a change pass if the object, as it is or as it last was, is
// picked.
func Latest(pick func(client.Object) bool) func(before, after client.Object) bool {
	return func(before, after client.Object) bool {
		if after != nil {
			return pick(after)
		}
		return pick(before)
	}
}
