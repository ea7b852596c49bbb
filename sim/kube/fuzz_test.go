package kube

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FuzzStore plays calls at random on a few objects, and holds what happens
// against what must hold for any store of this kind.
func FuzzStore(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		calls := make([]byte, 300)
		for i := range calls {
			calls[i] = byte(rng.Uint32())
		}
		f.Add(calls)
	}
	f.Fuzz(func(t *testing.T, calls []byte) {
		g := newGame(t)
		for len(calls) >= 3 {
			g.play(calls[0], calls[1], calls[2])
			calls = calls[3:]
		}
		g.settle()
	})
}

// game is a cluster and what is known of it from its events.
type game struct {
	*world
	cache  *Cache
	reader *Client
	stored map[string]client.Object // by kind and key
	texts  map[client.Object]string // of everything ever stored
	uids   map[types.UID]string
	last   uint64
	forced bool // the present call may remove what is held
}

func newGame(t *testing.T) *game {
	g := &game{world: newWorld(t), stored: map[string]client.Object{}, texts: map[client.Object]string{}, uids: map[types.UID]string{}}
	g.Subscribe(g.see)
	g.cache = g.Cache("fuzz")
	g.reader = g.CachedClient("fuzz", g.cache)
	return g
}

func text(o client.Object) string {
	b, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func (g *game) see(e Event) {
	o := e.Object()
	name := e.Kind() + " " + objectKey(o)
	if e.Version <= g.last {
		g.t.Fatalf("%s: version %d after %d", name, e.Version, g.last)
	}
	g.last = e.Version
	old := g.stored[name]
	if (old == nil) != (e.Old == nil) {
		g.t.Fatalf("%s: the event says %v, known was %v", name, e.Old != nil, old != nil)
	}
	if e.New == nil {
		g.removed(name, old, o)
		delete(g.stored, name)
		return
	}
	if o.GetResourceVersion() != fmt.Sprint(e.Version) {
		g.t.Fatalf("%s: version %s in event %d", name, o.GetResourceVersion(), e.Version)
	}
	if old == nil {
		if was, used := g.uids[o.GetUID()]; used {
			g.t.Fatalf("%s: UID of %s", name, was)
		}
		g.uids[o.GetUID()] = name
	} else {
		g.changed(name, old, o)
	}
	g.stored[name], g.texts[o] = o, text(o)
}

// changed checks what a change must not do.
func (g *game) changed(name string, old, o client.Object) {
	switch {
	case old.GetUID() != o.GetUID():
		g.t.Fatalf("%s: UID has changed", name)
	case !old.GetCreationTimestamp().Time.Equal(o.GetCreationTimestamp().Time):
		g.t.Fatalf("%s: creation time has changed", name)
	case old.GetDeletionTimestamp() != nil && o.GetDeletionTimestamp() == nil:
		g.t.Fatalf("%s: came back to life", name)
	case old.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) > len(old.GetFinalizers()):
		g.t.Fatalf("%s: new finalizers on what is being deleted", name)
	}
	field := func(o client.Object) any { return reflect.ValueOf(o).Elem().FieldByName("Spec").Interface() }
	began := (old.GetDeletionTimestamp() == nil) != (o.GetDeletionTimestamp() == nil)
	_, binding := o.(*corev1.Pod)
	if same := equality.Semantic.DeepEqual(field(old), field(o)); !began && !binding && same != (old.GetGeneration() == o.GetGeneration()) {
		g.t.Fatalf("%s: same spec %v, generations %d and %d", name, same, old.GetGeneration(), o.GetGeneration())
	}
	a, b := old.DeepCopyObject().(client.Object), o.DeepCopyObject().(client.Object)
	a.SetResourceVersion("")
	b.SetResourceVersion("")
	if text(a) == text(b) {
		g.t.Fatalf("%s: an event without a change", name)
	}
}

func ptr[T any](v T) *T { return &v }

// removed checks that nothing held what is gone.
func (g *game) removed(name string, old, last client.Object) {
	if g.forced {
		return
	}
	if len(last.GetFinalizers()) > 0 {
		g.t.Fatalf("%s: gone in spite of its finalizers", name)
	}
	if p, ok := old.(*corev1.Pod); ok && p.Spec.NodeName != "" && !finished(p) && last.GetDeletionTimestamp() != nil && *last.GetDeletionGracePeriodSeconds() > 0 {
		g.t.Fatalf("%s: gone before its kubelet was done", name)
	}
}

// play makes one call.
func (g *game) play(verb, what, how byte) {
	ctx := g.t.Context()
	key := client.ObjectKey{Namespace: "default", Name: fmt.Sprintf("o-%d", what/2%4)}
	var o client.Object = &corev1.Pod{}
	if what%2 == 0 {
		o, key.Namespace = claim(""), ""
	}
	found := g.Get(ctx, key, o) == nil
	o.SetName(key.Name)
	o.SetNamespace(key.Namespace)
	before := o.DeepCopyObject().(client.Object)
	g.now = g.now.Add(time.Duration(how%5) * time.Second)
	switch verb % 14 {
	case 0, 1:
		o.SetResourceVersion("")
		o.SetFinalizers([]string{"test/a", "test/b"}[:how%3])
		if p, ok := o.(*corev1.Pod); ok {
			p.Spec = pod("x").Spec
		}
		_ = g.Create(ctx, o)
	case 2:
		change(o, how)
		_ = g.Update(ctx, o)
	case 3:
		change(o, how)
		_ = g.Status().Update(ctx, o)
	case 4:
		change(o, how)
		_ = g.Patch(ctx, o, client.MergeFrom(before))
	case 5:
		change(o, how)
		_ = g.Status().Patch(ctx, o, client.MergeFrom(before))
	case 6:
		_ = g.Delete(ctx, o, client.GracePeriodSeconds(int64(how%3)*20))
	case 7:
		_ = g.Delete(ctx, o)
	case 8:
		_ = g.SubResource("binding").Create(ctx, o, &corev1.Binding{Target: corev1.ObjectReference{Name: "n"}})
	case 9:
		_ = g.SubResource("eviction").Create(ctx, o, &policyv1.Eviction{})
	case 10:
		body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q},"status":{"nominatedNodeName":"n%d"}}`, key.Name, how%3)
		_ = g.Status().Patch(ctx, o, client.RawPatch(types.ApplyPatchType, []byte(body)), client.FieldOwner(fmt.Sprint("m", how%2)))
	case 11:
		g.forced = how%8 == 0
		if g.forced {
			_ = g.Expunge(o)
		}
		g.forced = false
	case 12:
		g.cache.Deliver(int(how % 4))
	case 13:
		g.watch(how)
	}
	if found && verb%14 != 12 {
		// A client that waits for its own writes finds them.
		var mine client.Object = o.DeepCopyObject().(client.Object)
		if g.reader.Get(ctx, key, mine) == nil {
			mine.SetLabels(map[string]string{"reader": fmt.Sprint(how % 7)})
			if g.reader.Update(ctx, mine) == nil {
				again := o.DeepCopyObject().(client.Object)
				if err := g.reader.Get(ctx, key, again); err == nil && again.GetResourceVersion() != mine.GetResourceVersion() {
					g.t.Fatalf("wrote version %s and reads %s", mine.GetResourceVersion(), again.GetResourceVersion())
				}
			}
		}
	}
}

// watch does something to the watches.
func (g *game) watch(how byte) {
	switch how % 3 {
	case 0:
		g.cache.Repeat(int(how % 5))
		g.cache.Deliver(-1)
	case 1:
		g.cache.Drop(int(how % 5))
		g.cache.Relist()
	case 2:
		g.cache.Deliver(2, &corev1.Pod{})
	}
}

// change changes something of an object.
func change(o client.Object, how byte) {
	switch how % 6 {
	case 0:
		o.SetLabels(map[string]string{"v": fmt.Sprint(how)})
	case 1:
		o.SetFinalizers(nil)
	case 2:
		o.SetFinalizers([]string{"test/a", "test/late"})
	case 3:
		o.SetDeletionTimestamp(nil)
		o.SetUID("")
	case 4:
		o.SetResourceVersion("")
	case 5:
		o.SetGeneration(99)
		o.SetCreationTimestamp(metav1.Time{Time: noon.Add(time.Hour)})
	}
	if p, ok := o.(*corev1.Pod); ok {
		p.Status.Message = fmt.Sprint(how)
		p.Status.Phase = []corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded}[how%3]
		p.Spec.ActiveDeadlineSeconds = ptr(int64(how) + 1)
		return
	}
	c := reflect.ValueOf(o).Elem()
	c.FieldByName("Spec").FieldByName("Taints").Set(reflect.MakeSlice(c.FieldByName("Spec").FieldByName("Taints").Type(), int(how%2), int(how%2)))
	c.FieldByName("Status").FieldByName("NodeName").SetString(fmt.Sprint("n", how%4))
}

// settle checks that everybody sees the same in the end.
func (g *game) settle() {
	g.cache.Deliver(-1)
	for o, was := range g.texts {
		if now := text(o); now != was {
			g.t.Fatalf("a stored object was changed:\n%s\n%s", was, now)
		}
	}
	for _, r := range []client.Reader{g.Client, g.cache} {
		n := 0
		for _, k := range g.sorted {
			list, err := g.opt.Scheme.New(k.gvk.GroupVersion().WithKind(k.gvk.Kind + "List"))
			if err != nil {
				g.t.Fatal(err)
			}
			g.ok(r.List(g.t.Context(), list.(client.ObjectList)))
			items := reflect.ValueOf(list).Elem().FieldByName("Items")
			for i := range items.Len() {
				n++
				o := items.Index(i).Addr().Interface().(client.Object)
				known := g.stored[k.gvk.Kind+" "+objectKey(o)]
				if known == nil || known.GetResourceVersion() != o.GetResourceVersion() {
					g.t.Fatalf("%T shows %s %s, which is not what its events say", r, k.gvk.Kind, o.GetName())
				}
			}
		}
		if n != len(g.stored) {
			g.t.Fatalf("%T shows %d objects of %d", r, n, len(g.stored))
		}
	}
}
