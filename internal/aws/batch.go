package aws

import (
	"context"
	"sync"
)

// batch joins the calls of one moment: while one is on its way, the keys that
// are asked for wait, and go together in the next. Who is alone goes at once, so
// nobody waits for a timer.
type batch[V any] struct {
	// most keys fit into one call.
	most int
	// call answers for all keys; one without an answer is left out.
	call func(ctx context.Context, keys []string) (map[string]V, error)

	mu      sync.Mutex
	busy    bool
	waiting []*ask[V]
}

// ask is a key that waits for its answer.
type ask[V any] struct {
	key   string
	done  chan struct{}
	value V
	ok    bool
	err   error
}

// get returns the answer for the key, and whether there is one.
func (b *batch[V]) get(ctx context.Context, key string) (value V, ok bool, err error) {
	a := &ask[V]{key: key, done: make(chan struct{})}
	b.mu.Lock()
	alone := !b.busy
	if b.busy {
		b.waiting = append(b.waiting, a)
	}
	b.busy = true
	b.mu.Unlock()
	if alone {
		b.serve(ctx, []*ask[V]{a})
		b.next(ctx)
	}
	select {
	case <-a.done:
		return a.value, a.ok, a.err
	case <-ctx.Done():
		return value, false, ctx.Err()
	}
}

// next serves those who came while a call was on its way, if any.
func (b *batch[V]) next(ctx context.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.waiting), b.most)
	if b.busy = n > 0; !b.busy {
		return
	}
	now := b.waiting[:n:n]
	b.waiting = b.waiting[n:]
	go func() {
		b.serve(ctx, now)
		b.next(ctx)
	}()
}

// serve makes one call. It is for everybody who waits, so it must not end with
// the first of them.
func (b *batch[V]) serve(ctx context.Context, asks []*ask[V]) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadLimit)
	defer cancel()
	var keys []string
	known := map[string]bool{}
	for _, a := range asks {
		if !known[a.key] {
			known[a.key] = true
			keys = append(keys, a.key)
		}
	}
	answers, err := b.call(ctx, keys)
	for _, a := range asks {
		a.value, a.ok = answers[a.key]
		a.err = err
		close(a.done)
	}
}
