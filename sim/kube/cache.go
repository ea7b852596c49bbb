package kube

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// repeatable is how many of the last events can be delivered once more.
const repeatable = 256

// Cache is a copy of the store that is fed by watches, as an informer's is: it
// knows a change when its driver delivers it, and not before. It implements
// [client.Reader] and [client.FieldIndexer].
//
// Where kinds are named, they are named by an empty object each; no kinds means
// all of them, in the order of the changes.
type Cache struct {
	cluster *Cluster
	name    string

	queue []Event // on the way
	past  []Event // the last that were delivered
	kinds map[*kind]*view
}

// view is what a cache has of one kind.
type view struct {
	table
	lost      []uint64 // versions of events that were dropped
	handlers  []func(old, new client.Object)
	transform func(any) (any, error)
}

// Cache returns a cache that has seen everything up to now.
func (c *Cluster) Cache(name string) *Cache {
	c.mu.Lock()
	cache := &Cache{cluster: c, name: name, kinds: map[*kind]*view{}}
	for _, k := range c.sorted {
		cache.kinds[k] = &view{}
	}
	c.caches = append(c.caches, cache)
	c.mu.Unlock()
	cache.Relist()
	return cache
}

// Close ends the watches: its process has died.
func (c *Cache) Close() {
	c.cluster.mu.Lock()
	defer c.cluster.mu.Unlock()
	c.cluster.caches = slices.DeleteFunc(c.cluster.caches, func(o *Cache) bool { return o == c })
	c.queue = nil
}

// IndexField implements [client.FieldIndexer].
func (c *Cache) IndexField(_ context.Context, o client.Object, field string, values client.IndexerFunc) error {
	c.cluster.mu.Lock()
	defer c.cluster.mu.Unlock()
	k, err := c.cluster.kindOf(o)
	if err != nil {
		return err
	}
	return c.kinds[k].addIndex(field, values)
}

// Handle calls f for every change of a kind that is delivered: old is nil for
// what is new, new for what is gone. What is there already is told at once. The
// objects are the cache's and must not be changed.
func (c *Cache) Handle(o client.Object, f func(old, new client.Object)) error {
	c.cluster.mu.Lock()
	k, err := c.cluster.kindOf(o)
	if err != nil {
		c.cluster.mu.Unlock()
		return err
	}
	v := c.kinds[k]
	v.handlers = append(v.handlers, f)
	known := slices.Clone(v.list)
	c.cluster.mu.Unlock()
	for _, e := range known {
		f(nil, e.obj)
	}
	return nil
}

// Transform changes objects of a kind before they are kept; f gets a copy. It
// has the signature of client-go's, and holds for what is already there too.
func (c *Cache) Transform(o client.Object, f func(any) (any, error)) error {
	c.cluster.mu.Lock()
	defer c.cluster.mu.Unlock()
	k, err := c.cluster.kindOf(o)
	if err != nil {
		return err
	}
	v := c.kinds[k]
	v.transform = f
	for _, e := range slices.Clone(v.list) {
		v.put(v.kept(e.obj))
	}
	return nil
}

// kept is what is kept of an object.
func (v *view) kept(o client.Object) client.Object {
	if v.transform == nil {
		return o
	}
	out, err := v.transform(o.DeepCopyObject())
	if kept, ok := out.(client.Object); ok && err == nil {
		return kept
	}
	return o
}

// among returns a test for the named kinds.
func (c *Cache) among(kinds []client.Object) func(*kind) bool {
	return func(k *kind) bool {
		return len(kinds) == 0 || slices.ContainsFunc(kinds, func(o client.Object) bool { return reflect.TypeOf(o).Elem() == k.typ })
	}
}

// Pending is how many events are on the way.
func (c *Cache) Pending(kinds ...client.Object) int {
	c.cluster.mu.Lock()
	defer c.cluster.mu.Unlock()
	n, of := 0, c.among(kinds)
	for _, e := range c.queue {
		if of(e.kind) {
			n++
		}
	}
	return n
}

// Deliver lets the next n events through, all if n is negative, and returns how
// many there were.
func (c *Cache) Deliver(n int, kinds ...client.Object) int {
	return c.take(n, c.among(kinds), c.apply)
}

// Drop loses the next n events, all if n is negative: the cache stays as it is
// until the object changes again, or until [Cache.Relist].
func (c *Cache) Drop(n int, kinds ...client.Object) int {
	return c.take(n, c.among(kinds), func(e Event) func() {
		v := c.kinds[e.kind]
		v.lost = append(v.lost, e.Version)
		return nil
	})
}

// take removes events from the queue, hands them to f, and then calls what f
// returned, without the lock. Events that come meanwhile wait.
func (c *Cache) take(n int, of func(*kind) bool, f func(Event) func()) int {
	c.cluster.mu.Lock()
	var now, later []Event
	for i, e := range c.queue {
		if n >= 0 && len(now) == n {
			if later == nil { // nothing was passed over
				later = c.queue[i:]
			} else {
				later = append(later, c.queue[i:]...)
			}
			break
		}
		if of(e.kind) {
			now = append(now, e)
		} else {
			later = append(later, e)
		}
	}
	c.queue = later
	c.cluster.mu.Unlock()
	for _, e := range now {
		c.cluster.mu.Lock()
		tell := f(e)
		c.cluster.mu.Unlock()
		if tell != nil {
			tell()
		}
	}
	return len(now)
}

// apply makes an event known and returns what tells the handlers.
func (c *Cache) apply(e Event) func() {
	if c.past = append(c.past, e); len(c.past) > repeatable {
		c.past = slices.Delete(c.past, 0, len(c.past)-repeatable/2)
	}
	v := c.kinds[e.kind]
	key := objectKey(e.Object())
	old := v.get(key)
	if e.New == nil {
		v.remove(key)
		if old == nil {
			return nil
		}
		return v.tell(old, nil)
	}
	kept := v.kept(e.New)
	v.put(kept)
	return v.tell(old, kept)
}

func (v *view) tell(old, new client.Object) func() {
	if len(v.handlers) == 0 {
		return nil
	}
	handlers := v.handlers
	return func() {
		for _, f := range handlers {
			f(old, new)
		}
	}
}

// Repeat puts the last n delivered events back at the head of the queue, as a
// watch does that begins again too early: delivering them shows old states once
// more, and then the newest. It returns how many there were to repeat.
func (c *Cache) Repeat(n int, kinds ...client.Object) int {
	c.cluster.mu.Lock()
	defer c.cluster.mu.Unlock()
	of := c.among(kinds)
	var again []Event
	for _, e := range slices.Backward(c.past) {
		if len(again) == n {
			break
		}
		if of(e.kind) {
			again = append(again, e)
		}
	}
	slices.Reverse(again)
	c.queue = append(again, c.queue...)
	return len(again)
}

// Relist reads the kinds anew: the cache is then as the store is, and what was on
// the way is forgotten. Handlers are told of everything that is there, and of
// what has gone with its last known state.
func (c *Cache) Relist(kinds ...client.Object) {
	c.cluster.mu.Lock()
	of := c.among(kinds)
	var tells []func()
	note := func(f func()) {
		if f != nil {
			tells = append(tells, f)
		}
	}
	for _, k := range c.cluster.sorted {
		if !of(k) {
			continue
		}
		v := c.kinds[k]
		v.lost = nil
		for _, e := range slices.Clone(v.list) {
			if k.get(e.key) == nil {
				v.remove(e.key)
				note(v.tell(e.obj, nil))
			}
		}
		for _, e := range k.list {
			old, kept := v.get(e.key), v.kept(e.obj)
			v.put(kept)
			note(v.tell(old, kept))
		}
	}
	c.queue = slices.DeleteFunc(c.queue, func(e Event) bool { return of(e.kind) })
	c.past = slices.DeleteFunc(c.past, func(e Event) bool { return of(e.kind) })
	c.cluster.mu.Unlock()
	for _, tell := range tells {
		tell()
	}
}

// Get implements [client.Reader].
func (c *Cache) Get(_ context.Context, key types.NamespacedName, o client.Object, opts ...client.GetOption) error {
	c.cluster.mu.Lock()
	defer c.cluster.mu.Unlock()
	k, err := c.cluster.kindOf(o)
	if err != nil {
		return err
	}
	opt := (&client.GetOptions{}).ApplyOptions(opts)
	return k.read(&c.kinds[k].table, key, o, !unsafe(opt.UnsafeDisableDeepCopy), k.gvk)
}

// List implements [client.Reader].
func (c *Cache) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	c.cluster.mu.Lock()
	defer c.cluster.mu.Unlock()
	k, err := c.cluster.kindOf(list)
	if err != nil {
		return err
	}
	opt := (&client.ListOptions{}).ApplyOptions(opts)
	found, err := c.kinds[k].find(newQuery(opt))
	if err != nil {
		return err
	}
	k.fill(list, found, !unsafe(opt.UnsafeDisableDeepCopy), k.gvk)
	return nil
}

// CachedClient returns a client that reads the cache and writes to the store.
// Before it reads a kind that it has written itself, its own writes are
// delivered, as controller-runtime's read-your-writes consistency does it.
func (c *Cluster) CachedClient(actor string, cache *Cache) *Client {
	out := c.LaggingClient(actor, cache)
	out.after = map[*kind]map[string]uint64{}
	return out
}

// LaggingClient returns a client that reads the cache as it is, even where it
// does not show what the client has just written.
func (c *Cluster) LaggingClient(actor string, cache *Cache) *Client {
	return &Client{cluster: c, actor: actor, cache: cache}
}

// caughtUp lets the cache see the client's own writes of a kind, or of one
// object if key is not nil. It fails if they were dropped: a real client would
// wait in vain.
func (c *Client) caughtUp(ctx context.Context, o runtime.Object, key *types.NamespacedName, disabled bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.dead {
		return ErrKilled
	}
	k, err := c.cluster.kindOf(o)
	if err != nil || disabled {
		return err
	}
	until := c.await(k, key)
	if until == 0 {
		return nil
	}
	n, lost := c.cache.behind(k, until)
	if lost {
		return apierrors.NewTimeoutError(fmt.Sprintf("failed to wait for cache %s to catch up with %s", c.cache.name, k.gvk.Kind), 0)
	}
	if n > 0 {
		c.cache.take(n, func(o *kind) bool { return o == k }, c.cache.apply)
	}
	for key, version := range c.after[k] {
		if version <= until {
			delete(c.after[k], key)
		}
	}
	return nil
}

// await is the version that the cache must have seen; 0: anything will do.
func (c *Client) await(k *kind, key *types.NamespacedName) (until uint64) {
	if key != nil {
		return c.after[k][keyOf(key.Namespace, key.Name)]
	}
	for _, version := range c.after[k] {
		until = max(until, version)
	}
	return until
}

// behind is how many events of a kind are on the way up to a version, and
// whether the one of that version was dropped.
func (c *Cache) behind(k *kind, until uint64) (n int, lost bool) {
	c.cluster.mu.Lock()
	defer c.cluster.mu.Unlock()
	for _, e := range c.queue {
		if e.kind == k && e.Version <= until {
			n++
		}
	}
	return n, slices.Contains(c.kinds[k].lost, until)
}

func formatVersion(v uint64) string { return strconv.FormatUint(v, 10) }
