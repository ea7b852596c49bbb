package aws

import (
	"context"
	"maps"
	"reflect"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// cache keeps answers for a while. Callers that ask for the same at the same
// time share one call. When a call fails, the last answer serves on, and the
// next call is made a little later.
type cache[V any] struct {
	last  time.Duration
	now   func() time.Time
	calls singleflight.Group

	mu      sync.Mutex
	version uint64
	answers map[string]cached[V]
}

type cached[V any] struct {
	value V
	// version changes whenever the answer is another one; at is when it was
	// given, fresh until when it is believed without asking.
	version uint64
	at      time.Time
	fresh   time.Time
}

// loadLimit bounds one call, whoever waits for it.
const loadLimit = time.Minute

func newCache[V any](last time.Duration, now func() time.Time) *cache[V] {
	return &cache[V]{last: last, now: now, answers: map[string]cached[V]{}}
}

// get returns the answer for the key, loading it if there is none or it is
// old. An error means that there never was an answer.
func (c *cache[V]) get(ctx context.Context, key string, load func(context.Context) (V, error)) (cached[V], error) {
	have, ok := c.have(key)
	if ok && c.now().Before(have.fresh) {
		return have, nil
	}
	got, err := c.reload(ctx, key, load)
	if err == nil || !ok {
		return got, err
	}
	return have, nil
}

// reload asks anew. After an error an answer that was there before is left in
// its place.
func (c *cache[V]) reload(ctx context.Context, key string, load func(context.Context) (V, error)) (cached[V], error) {
	wait := c.calls.DoChan(key, func() (any, error) {
		// The call serves everybody who waits, so it must not end with the
		// first of them.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadLimit)
		defer cancel()
		value, err := load(ctx)
		if err != nil {
			c.postpone(key)
			return cached[V]{}, err
		}
		return c.put(key, value), nil
	})
	select {
	case r := <-wait:
		return r.Val.(cached[V]), r.Err
	case <-ctx.Done():
		return cached[V]{}, ctx.Err()
	}
}

func (c *cache[V]) have(key string) (cached[V], bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	have, ok := c.answers[key]
	return have, ok
}

func (c *cache[V]) put(key string, value V) cached[V] {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	// What nobody has asked for in a long time belongs to a class that is gone.
	maps.DeleteFunc(c.answers, func(_ string, a cached[V]) bool { return now.Sub(a.fresh) > 10*c.last })
	a := cached[V]{value: value, at: now, fresh: now.Add(c.last)}
	if old, ok := c.answers[key]; ok && reflect.DeepEqual(old.value, value) {
		a.value, a.version = old.value, old.version
	} else {
		c.version++
		a.version = c.version
	}
	c.answers[key] = a
	return a
}

// keep sets how long answers that come from now on are believed.
func (c *cache[V]) keep(last time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = last
}

// forget makes the next caller ask anew.
func (c *cache[V]) forget(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.answers, key)
}

// postpone lets the old answer serve for a sixth of its time before the next
// call.
func (c *cache[V]) postpone(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a, ok := c.answers[key]; ok {
		a.fresh = c.now().Add(c.last / 6)
		c.answers[key] = a
	}
}
