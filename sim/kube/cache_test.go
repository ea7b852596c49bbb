package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// seen is what a cache shows of the pods, as name=label "x".
func (w *world) seen(r client.Reader) string {
	w.t.Helper()
	var list corev1.PodList
	w.ok(r.List(w.t.Context(), &list))
	var out []string
	for i := range list.Items {
		out = append(out, list.Items[i].Name+"="+list.Items[i].Labels["x"])
	}
	return strings.Join(out, " ")
}

func (w *world) shows(r client.Reader, want string) {
	w.t.Helper()
	if got := w.seen(r); got != want {
		w.t.Errorf("shows %q, want %q", got, want)
	}
}

// label writes the label "x" of a pod through a client.
func (w *world) label(c client.Client, name, value string) {
	w.t.Helper()
	p := w.pod(name)
	p.Labels["x"] = value
	w.ok(c.Update(w.t.Context(), p))
}

func TestACacheKnowsWhatWasDelivered(t *testing.T) {
	w := newWorld(t, pod("a"))
	cache := w.Cache("mirror")
	var told []string
	w.ok(cache.Handle(&corev1.Pod{}, func(old, new client.Object) {
		told = append(told, fmt.Sprintf("%v%v", old != nil, new != nil))
	}))
	w.ok(w.Create(t.Context(), pod("b")))
	w.ok(w.Create(t.Context(), claim("c")))
	w.label(w.Client, "a", "1")
	w.ok(w.Delete(t.Context(), pod("b")))
	w.shows(cache, "a=")
	if n := cache.Pending(); n != 4 {
		t.Errorf("%d events on the way", n)
	}
	if n := cache.Pending(claim("")); n != 1 {
		t.Errorf("%d events of claims on the way", n)
	}
	cache.Deliver(1)
	w.shows(cache, "a= b=")
	cache.Deliver(1, &corev1.Pod{})
	w.shows(cache, "a=1 b=")
	if n := cache.Deliver(-1); n != 2 || cache.Pending() != 0 {
		t.Errorf("%d delivered, %d left", n, cache.Pending())
	}
	w.shows(cache, "a=1")
	if got := strings.Join(told, " "); got != "falsetrue falsetrue truetrue truefalse" {
		t.Errorf("told: %s", got)
	}
}

func TestEventsAreLostUntilARelist(t *testing.T) {
	w := newWorld(t, pod("a"), pod("b"))
	cache := w.Cache("mirror")
	gone := 0
	w.ok(cache.Handle(&corev1.Pod{}, func(_, new client.Object) {
		if new == nil {
			gone++
		}
	}))
	w.label(w.Client, "a", "1")
	w.ok(w.Delete(t.Context(), pod("b")))
	w.ok(w.Create(t.Context(), pod("c")))
	cache.Drop(2)
	cache.Deliver(-1)
	w.shows(cache, "a= b= c=")
	cache.Relist()
	w.shows(cache, "a=1 c=")
	if gone != 1 {
		t.Errorf("told %d times of what is gone", gone)
	}
}

func TestEventsAreRepeated(t *testing.T) {
	w := newWorld(t, pod("a"))
	cache := w.Cache("mirror")
	w.label(w.Client, "a", "1")
	w.label(w.Client, "a", "2")
	cache.Deliver(-1)
	if n := cache.Repeat(2); n != 2 {
		t.Fatalf("%d to repeat", n)
	}
	cache.Deliver(1)
	w.shows(cache, "a=1")
	cache.Deliver(-1)
	w.shows(cache, "a=2")
}

func TestReadYourWrites(t *testing.T) {
	w := newWorld(t, pod("a"), pod("b"))
	cache := w.Cache("mirror")
	c, lagging := w.CachedClient("karpenter", cache), w.LaggingClient("karpenter", cache)
	w.label(w.Client, "b", "theirs")
	w.label(lagging, "a", "1")
	w.shows(lagging, "a= b=")
	w.label(c, "a", "2")
	w.label(w.Client, "b", "later")
	w.shows(cache, "a= b=")
	w.shows(c, "a=2 b=theirs")
	w.shows(cache, "a=2 b=theirs")
	w.ok(c.Delete(t.Context(), pod("a")))
	w.shows(c, "b=later")

	w.label(c, "b", "mine")
	cache.Drop(-1)
	var list corev1.PodList
	w.is(c.List(t.Context(), &list), apierrors.IsTimeout, "catch up")
	cache.Relist()
	w.shows(c, "b=mine")
}

func TestIndexesAndTransforms(t *testing.T) {
	w := newWorld(t, pod("a"), pod("b"))
	cache := w.Cache("mirror")
	w.ok(cache.IndexField(t.Context(), &corev1.Pod{}, "x", func(o client.Object) []string { return []string{o.GetLabels()["x"]} }))
	w.ok(cache.Transform(&corev1.Pod{}, func(o any) (any, error) {
		o.(*corev1.Pod).Spec.Containers = nil
		return o, nil
	}))
	w.label(w.Client, "b", "1")
	cache.Deliver(-1)
	var list corev1.PodList
	w.ok(cache.List(t.Context(), &list, client.MatchingFields{"x": "1"}))
	if len(list.Items) != 1 || list.Items[0].Name != "b" || list.Items[0].Spec.Containers != nil {
		t.Errorf("found %+v", list.Items)
	}
	if len(w.pod("b").Spec.Containers) != 1 {
		t.Error("the transform has changed the store")
	}
	w.is(w.List(t.Context(), &list, client.MatchingFields{"x": "1"}), apierrors.IsBadRequest) // an index of the cache only
}

func TestHooks(t *testing.T) {
	w := newWorld(t, pod("a"))
	boom := errors.New("boom")
	var calls []string
	var answer func(Call) error
	w.SetHook(func(c Call) error {
		calls = append(calls, c.String()+" "+string(c.Phase))
		return answer(c)
	})
	c := w.Cluster.Client("karpenter")
	refuse := func(at Phase) func(Call) error {
		return func(c Call) error {
			if c.Phase == at && c.Write() {
				return boom
			}
			return nil
		}
	}
	ctx := t.Context()

	answer = refuse(Before)
	if err := c.Delete(ctx, pod("a")); !errors.Is(err, boom) {
		t.Errorf("error is %v", err)
	}
	w.pod("a")
	answer = refuse(After)
	if err := c.Delete(ctx, pod("a")); !errors.Is(err, boom) {
		t.Errorf("error is %v", err)
	}
	w.gone(pod("a"))
	p := pod("b")
	if err := c.Create(ctx, p); !errors.Is(err, boom) || p.UID != "" {
		t.Errorf("the answer was not lost: %v, %q", err, p.UID)
	}
	answer = func(Call) error { return nil }
	if err := c.Create(ctx, pod("b")); !apierrors.IsAlreadyExists(err) {
		t.Errorf("error is %v", err)
	}
	if want := "karpenter delete Pod default/a before"; calls[0] != want {
		t.Errorf("first call %q, want %q", calls[0], want)
	}

	answer = func(call Call) error {
		if call.Phase == After && call.Actor == "karpenter" {
			c.Kill()
		}
		return nil
	}
	for range 2 {
		if err := c.Delete(ctx, pod("b")); !errors.Is(err, ErrKilled) {
			t.Errorf("error is %v", err)
		}
	}
	w.gone(pod("b")) // the first call took effect
	if err := c.Create(ctx, pod("c")); !errors.Is(err, ErrKilled) {
		t.Errorf("error is %v", err)
	}
	w.gone(pod("c"))
	cached := w.CachedClient("karpenter", w.Cache("x"))
	cached.Kill()
	if err := cached.List(ctx, &corev1.PodList{}); !errors.Is(err, ErrKilled) {
		t.Errorf("error is %v", err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := w.Create(ended, pod("d")); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

func TestSubscribersHearInOrder(t *testing.T) {
	w := newWorld(t)
	var heard []string
	w.Subscribe(func(e Event) {
		if e.New != nil && e.New.GetName() == "a" && e.Old == nil {
			w.ok(w.Create(t.Context(), pod("b"))) // an answer to what happened
		}
	})
	w.Subscribe(func(e Event) { heard = append(heard, fmt.Sprint(e.Object().GetName(), e.New == nil)) })
	w.ok(w.Create(t.Context(), pod("a")))
	w.ok(w.Delete(t.Context(), pod("a")))
	w.ok(w.Expunge(pod("b")))
	if got := strings.Join(heard, " "); got != "afalse bfalse atrue btrue" {
		t.Error(got)
	}
}
