package aws

import (
	"sync"
	"time"
)

// pace spaces calls out after the API has refused some as too many. It never
// waits itself: who comes too early is told when to come back, behind those who
// came before. So a thousand who want the same cost hardly more calls than a
// thousand, and none is forgotten.
type pace struct {
	now func() time.Time

	mu sync.Mutex
	// every is the time between two calls; 0: calls are not spaced out. It was
	// made longer last at changed.
	every   time.Duration
	changed time.Time
	// next is when a call may be made again.
	next time.Time
	// waiting are those who were sent away, in the order of their numbers.
	waiting map[string]ticket
	tickets int
}

type ticket struct {
	number int
	until  time.Time
}

// Bounds of the time between two calls. A refusal makes it longer by a quarter,
// each success shorter by a hundredth: near the limit about one call of twenty
// is refused.
const (
	firstGap    = 100 * time.Millisecond
	longestGap  = 10 * time.Second
	shortestGap = 10 * time.Millisecond
	// forgiven is how long those are waited for who do not come when they were
	// told to.
	forgiven = time.Minute
)

// turn returns how long the caller has to wait; 0 means that it is their turn.
func (p *pace) turn(who string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if p.every == 0 || !now.Before(p.next) {
		p.next = now.Add(p.every)
		delete(p.waiting, who)
		return 0
	}
	return p.queue(who, now)
}

// queue tells how long those will take who came before.
func (p *pace) queue(who string, now time.Time) time.Duration {
	mine, ok := p.waiting[who]
	if !ok {
		p.tickets++
		mine.number = p.tickets
	}
	before := 0
	for name, t := range p.waiting {
		if now.Sub(t.until) > forgiven {
			delete(p.waiting, name)
		} else if t.number < mine.number {
			before++
		}
	}
	wait := p.next.Sub(now) + time.Duration(before)*p.every
	mine.until = now.Add(wait)
	p.waiting[who] = mine
	return wait
}

// leave takes callers out of the queue that will not come by themselves.
func (p *pace) leave(who ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range who {
		delete(p.waiting, name)
	}
}

// refused notes that the API asked to be slower, and returns how long the caller
// has to wait. Refusals of one moment count once.
func (p *pace) refused(who string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if p.every == 0 || now.Sub(p.changed) >= p.every {
		p.every = min(max(p.every*5/4, firstGap), longestGap)
		p.changed = now
	}
	if next := now.Add(p.every); next.After(p.next) {
		p.next = next
	}
	return p.queue(who, now)
}

// served notes that the API took a call.
func (p *pace) served() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.every -= p.every / 100; p.every < shortestGap {
		p.every = 0
	}
}
