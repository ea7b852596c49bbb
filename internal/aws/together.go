package aws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"karpenter/internal/aws/class"
	"karpenter/internal/aws/launch"
	"karpenter/internal/cloud"
)

// Launches that want the same, and wait because EC2 throttles, become one
// request. It cannot say which machine is whose, so who takes part is written on
// every NodeClaim before it is sent, and the machines are dealt in the order of
// their ids. Then a NodeClaim has one machine whoever dies when: the same
// request with the same token gives the same machines again.
const (
	// gatherFor is how long those who wait are gathered, writeFor how long it is
	// waited for all of them to have written it down.
	gatherFor = time.Second
	writeFor  = 10 * time.Second
	// togetherLast is how long the answer is kept for those who come late.
	togetherLast = 15 * time.Minute
	// mostTogether is how many machines one request asks for.
	mostTogether = 100
)

// waiters are the launches that wait, and the requests that they became.
type waiters struct {
	now func() time.Time

	mu sync.Mutex
	// crowds wait for the same, by what it is; places tell who became part of
	// which request.
	crowds   map[string]*crowd
	places   map[string]*together
	requests map[string]*together
}

type crowd struct {
	since time.Time
	// orders of the members, by token.
	orders map[string]*launch.Order
}

// together is one request for several.
type together struct {
	launch.Together
	fleet launch.Fleet
	since time.Time

	mu      sync.Mutex
	written map[string]bool
	// answer is nil until the request was sent; machines are in the order in
	// which they are dealt.
	answer   *launch.Answer
	machines []cloud.Instance
}

// wait lets a launch that is throttled wait with others that want the same. It
// returns when to come back, or the request that it has become part of.
func (w *waiters) wait(token string, order *launch.Order, turn time.Duration) (time.Duration, *together) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.places[token]; t != nil {
		return 0, t
	}
	fleet, ok := order.Fleet.Shared()
	if !ok {
		return turn, nil
	}
	now, same := w.now(), key(fleet)
	c := w.crowds[same]
	if c == nil {
		c = &crowd{since: now, orders: map[string]*launch.Order{}}
		w.crowds[same] = c
	}
	c.orders[token] = order
	left := c.since.Add(gatherFor).Sub(now)
	switch {
	case len(c.orders) >= mostTogether:
	case left > 0:
		return min(turn, left), nil
	case len(c.orders) == 1: // nobody else wants it
		delete(w.crowds, same)
		return turn, nil
	}
	delete(w.crowds, same)
	return 0, w.seal(fleet, c)
}

// seal makes one request of a crowd.
func (w *waiters) seal(fleet launch.Fleet, c *crowd) *together {
	var tokens []string
	for token := range c.orders {
		tokens = append(tokens, token)
	}
	t := &together{Together: launch.JoinFleet(&fleet, tokens), fleet: fleet, since: w.now(), written: map[string]bool{}}
	w.requests[t.Token] = t
	for _, token := range tokens {
		w.places[token] = t
	}
	return t
}

// part returns the request that a launch has become part of, or nil.
func (w *waiters) part(token string) *together {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.places[token]
}

// leave takes a launch out of its crowd, as it is about to be sent by itself,
// unless it has become part of a request.
func (w *waiters) leave(token string, fleet *launch.Fleet) *together {
	shared, ok := fleet.Shared()
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.places[token]; t != nil || !ok || len(w.crowds) == 0 {
		return t
	}
	same := key(shared)
	if c := w.crowds[same]; c != nil {
		if delete(c.orders, token); len(c.orders) == 0 {
			delete(w.crowds, same)
		}
	}
	return nil
}

// find returns the request that an order is part of. Another process may have
// made it.
func (w *waiters) find(order *launch.Order) *together {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	for name, t := range w.requests {
		if now.Sub(t.since) > togetherLast {
			delete(w.requests, name)
			for _, member := range t.Members {
				delete(w.places, member)
			}
		}
	}
	t := w.requests[order.Together.Token]
	if t == nil {
		t = &together{Together: *order.Together, fleet: order.Fleet, since: now, written: map[string]bool{}}
		w.requests[t.Token] = t
	}
	return t
}

// rewritten is what a member of a request has to write down before it is sent.
func (t *together) rewritten(order *launch.Order) error {
	next := *order
	next.Fleet, next.Together = t.fleet, &t.Together
	prepared, err := launch.Encode(next)
	if err != nil {
		return err
	}
	return &cloud.RewrittenError{Prepared: prepared}
}

// launchTogether gets the member its machine: when all members have written down
// that they are, the first of them sends the request for all.
func (p *Provider) launchTogether(ctx context.Context, token string, order *launch.Order) (cloud.Instance, error) {
	t := p.waiters.find(order)
	at, member := slices.BinarySearch(t.Members, token)
	if !member {
		return cloud.Instance{}, fmt.Errorf("the stored launch is for the tokens %v, and %q is not among them", t.Members, token)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.written[token] = true
	if t.answer == nil {
		if len(t.written) < len(t.Members) && p.now().Sub(t.since) < writeFor {
			return cloud.Instance{}, &cloud.ThrottledError{Err: errors.New("the others of its request have not written it down yet"), After: gatherFor}
		}
		p.pace.leave(t.Members...)
		answer, err := p.send(ctx, t.Token, order)
		if err != nil {
			return cloud.Instance{}, err
		}
		t.answer, t.machines = &answer, p.machines(ctx, order, answer.Machines)
	}
	refused := p.remember(order, t.answer.Errors)
	if at < len(t.machines) {
		return promise(t.machines[at], order), nil
	}
	if len(t.answer.Errors) == 0 && len(t.machines) > 0 {
		return cloud.Instance{}, &cloud.NoCapacityError{Detail: fmt.Sprintf("EC2 Fleet launched %d machines of %d, and gave no reason", len(t.machines), len(t.Members))}
	}
	return cloud.Instance{}, p.nothing(order, t.answer.Errors, refused)
}

// machines describes the machines of an answer, in the order in which they are
// dealt. EC2 may not show them yet; then what the fleet said must do.
func (p *Provider) machines(ctx context.Context, order *launch.Order, list []launch.Machine) []cloud.Instance {
	var ids []string
	for _, m := range list {
		ids = append(ids, m.ID)
	}
	shown := map[string]cloud.Instance{}
	for part := range slices.Chunk(ids, filterValues) {
		found, err := p.api.Instances(ctx, nil, []class.Filter{{Name: "instance-id", Values: part}})
		for _, i := range found {
			if err == nil {
				shown[i.ID] = i
			}
		}
	}
	out := make([]cloud.Instance, 0, len(list))
	for _, m := range list {
		out = append(out, p.complete(p.asLaunched(order, m, shown[m.ID])))
	}
	slices.SortFunc(out, func(a, b cloud.Instance) int { return cmp.Compare(a.ID, b.ID) })
	return out
}
