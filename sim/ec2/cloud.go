// Package ec2 is a simulated EC2, with what belongs to it: STS, SSM, IAM, SQS,
// EKS and the price list. It speaks their wire protocols over HTTP ([Cloud.Handler]), so that the real SDK and
// the real command line talk to it, and has the same actions as Go calls
// ([Call]).
//
// It is one state machine. Time comes from Options.Now and chance from
// Options.Seed; nothing happens on its own: what has become due is applied by
// [Cloud.Tick] and at the start of every call, in the order in which it became
// due. The same calls at the same times give the same answers.
//
// It imports internal/aws/catalog for the facts about instance types, and must
// not import awsapi: the two meet on the wire only.
package ec2

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"karpenter/internal/aws/catalog"
)

// Options configure a simulated region. The zero value is a usable one.
type Options struct {
	// Region is us-west-2 by default; Zones are all zones of the region.
	Region string
	Zones  []string
	// Account owns everything; default 123456789012.
	Account string
	// Seed decides ids, jitter and small differences of spot prices.
	Seed uint64
	// Now is the clock; default time.Now.
	Now func() time.Time

	// BootDelay is the time from pending to running (default 5 s),
	// JitterPercent how much it varies (default 20), ShutdownDelay the time
	// from shutting-down to terminated (default 5 s). Negative means none.
	BootDelay     time.Duration
	JitterPercent int
	ShutdownDelay time.Duration
	// KeepTerminated is how long a terminated instance can still be described
	// (default 1 h).
	KeepTerminated time.Duration
	// Lag is how long a new instance, or a change of its tags, stays invisible
	// to Describe calls.
	Lag time.Duration
	// IAMLag is how long a new instance profile, or the role in it, stays
	// unknown to EC2 and to those who ask.
	IAMLag time.Duration
	// Sleep passes the time of a fault that delays a call; default time.Sleep.
	// It is called without a lock held. On a virtual clock it may move the
	// clock.
	Sleep func(time.Duration)
	// ReuseAddresses hands out the lowest free address of a subnet instead of
	// the one after the last.
	ReuseAddresses bool

	// Limits throttle calls, by action name (wildcards allowed; the first
	// match in sorted order counts). Without an entry an action is not
	// throttled.
	Limits map[string]Limit
	// Allow lists the allowed actions, such as "ec2:CreateFleet" or
	// "ec2:Describe*". nil allows everything. SetPolicy can say more.
	Allow []string
	// World is what exists at the start; default [DefaultWorld].
	World *World
}

// Limit is a token bucket.
type Limit struct {
	PerSecond float64 `json:"perSecond"`
	Burst     float64 `json:"burst"`
}

// Event is a change of an instance's state.
type Event struct {
	Time     time.Time `json:"time"`
	From     State     `json:"from,omitempty"`
	Instance Instance  `json:"instance"`
}

// Cloud is the simulated region. Its methods may be called from any goroutine.
type Cloud struct {
	opt Options

	mu        sync.Mutex
	rng       *rand.Rand
	requests  *rand.Rand // ids of HTTP requests, apart: both faces make the same things
	world     World
	types     map[string]*catalog.Row
	offers    map[offerKey]Offer
	sold      []Offer     // the same, by type and zone
	instances []*Instance // in launch order
	byID      map[string]*Instance
	launched  int
	nextDue   time.Time // zero: nothing is due
	templates []*Template
	volumes   []*Volume
	fleets    map[string]Tags
	answers   map[string]answer
	faults    []*Fault
	policy    *Policy
	used      map[string]bool // entries of policies that were needed
	profiles  map[string]*profile
	roles     map[string]role
	// deletedProfiles are unknown even where every name is known.
	deletedProfiles map[string]bool
	queues          map[string]*queue
	buckets         map[string]*bucket
	log             callLog

	subscribers []func(Event)
	outbox      []Event
	delivering  bool
}

// New returns a region in which nothing has happened yet.
func New(opt Options) *Cloud {
	opt.setDefaults()
	if opt.World == nil {
		w := DefaultWorld(opt.Region, opt.Zones, opt.Seed)
		opt.World = &w
	}
	c := &Cloud{
		opt: opt, world: opt.World.clone(), policy: allowing(opt.Allow),
		rng:      rand.New(rand.NewPCG(opt.Seed, 0x65633273696d)),
		requests: rand.New(rand.NewPCG(opt.Seed, 0x68747470)),
		types:    map[string]*catalog.Row{},
		offers:   map[offerKey]Offer{},
		byID:     map[string]*Instance{},
		fleets:   map[string]Tags{},
		answers:  map[string]answer{},
		buckets:  map[string]*bucket{},
		used:     map[string]bool{}, profiles: map[string]*profile{}, roles: map[string]role{}, deletedProfiles: map[string]bool{}, queues: map[string]*queue{},
		log: callLog{counts: map[string]int{}},
	}
	c.index()
	return c
}

// index rebuilds the look-ups into the world.
func (c *Cloud) index() {
	w := &c.world
	slices.SortFunc(w.Types, func(a, b catalog.Row) int { return strings.Compare(a.Name, b.Name) })
	clear(c.types)
	for i := range w.Types {
		c.types[w.Types[i].Name] = &w.Types[i]
	}
	c.sold = slices.SortedFunc(slices.Values(w.Offers), func(a, b Offer) int {
		return cmp.Or(strings.Compare(a.Type, b.Type), strings.Compare(a.Zone, b.Zone))
	})
	clear(c.offers)
	for _, o := range w.Offers {
		c.offers[offerKey{o.Type, o.Zone}] = o
	}
	for i := range w.Subnets {
		if s := &w.Subnets[i]; s.used == nil {
			s.used = map[netip.Addr]bool{}
		}
	}
}

func (o *Options) setDefaults() {
	set := func(d *time.Duration, def time.Duration) {
		if *d == 0 {
			*d = def
		}
		*d = max(*d, 0)
	}
	set(&o.BootDelay, 5*time.Second)
	set(&o.ShutdownDelay, 5*time.Second)
	set(&o.KeepTerminated, time.Hour)
	if o.JitterPercent == 0 {
		o.JitterPercent = 20
	}
	o.JitterPercent = max(o.JitterPercent, 0)
	if o.Region == "" {
		o.Region = "us-west-2"
	}
	if len(o.Zones) == 0 {
		o.Zones = catalog.RegionZones(o.Region)
	}
	if o.Account == "" {
		o.Account = "123456789012"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = time.Sleep
	}
}

// Region returns the name of the region.
func (c *Cloud) Region() string { return c.opt.Region }

// Zones returns the names of the zones.
func (c *Cloud) Zones() []string { return slices.Clone(c.opt.Zones) }

// now is the clock, to the millisecond as EC2 shows it.
func (c *Cloud) now() time.Time { return c.opt.Now().UTC().Truncate(time.Millisecond) }

// newID returns an id such as i-0123456789abcdef0.
func (c *Cloud) newID(prefix string) string {
	return fmt.Sprintf("%s-0%016x", prefix, c.rng.Uint64())
}

func uuid(rng *rand.Rand) string {
	a, b := rng.Uint64(), rng.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>48&0xfff, b&0xffffffffffff)
}

// Request is the input of an action that answers with Out: every type of this
// package whose name ends in Input is one.
type Request[Out any] interface {
	do(c *Cloud) (Out, error)
}

// idempotent is a request with a client token.
type idempotent interface{ clientToken() string }

// answer is what a client token was answered with.
type answer struct {
	at   time.Time
	body string
	out  any
}

// Call carries out an action. Errors are *[Error].
//
//	out, err := ec2.Call(cloud, &ec2.DescribeInstancesInput{})
func Call[Out any](c *Cloud, in Request[Out]) (Out, error) {
	service, action := actionOf(in)
	c.mu.Lock()
	c.advance()
	fault, refused := c.admit(in, service, action)
	if fault.Delay > 0 && !fault.After {
		c.mu.Unlock()
		c.opt.Sleep(fault.Delay)
		c.mu.Lock()
		c.advance()
	}
	var out Out
	var err error = refused
	if refused == nil {
		out, err = perform(c, action, in, fault)
	}
	c.record(action, in, out, err)
	c.mu.Unlock()
	c.deliver()
	if fault.Delay > 0 && fault.After {
		c.opt.Sleep(fault.Delay)
	}
	return out, err
}

// admit does what all actions have in common before the work: rights,
// throttling, faults. The fault is the zero value if none strikes.
func (c *Cloud) admit(in any, service, action string) (Fault, *Error) {
	if err := c.authorize(in, service, action); err != nil {
		return Fault{}, err
	}
	if !c.take(action) {
		return Fault{}, errorf(throttling(service), "Request limit exceeded.")
	}
	if f := c.callFault(action); f != nil {
		return *f, nil
	}
	return Fault{}, nil
}

// perform carries out a request that was admitted, as the fault lets it.
func perform[Out any](c *Cloud, action string, in Request[Out], fault Fault) (Out, error) {
	var none Out
	if fault.Error != "" && !fault.After {
		return none, fault.err()
	}
	if d, ok := in.(interface{ dryRun() bool }); ok && d.dryRun() {
		return none, errorf("DryRunOperation", "Request would have succeeded, but DryRun flag is set.")
	}
	out, err := once(c, action, in)
	if err == nil && fault.Error != "" {
		return none, fault.err()
	}
	return out, err
}

// once carries out a request unless its client token was answered before.
// Requests that were refused as a whole are not remembered, as nothing came of
// them.
func once[Out any](c *Cloud, action string, in Request[Out]) (Out, error) {
	t, ok := in.(idempotent)
	if !ok || t.clientToken() == "" {
		return in.do(c)
	}
	body, err := json.Marshal(in)
	if err != nil {
		panic("sim/ec2: " + err.Error()) // inputs are plain structs
	}
	key := action + "/" + t.clientToken()
	if old, seen := c.answers[key]; seen {
		if old.body != string(body) {
			var none Out
			return none, errorf("IdempotentParameterMismatch", "Arguments on this idempotent request are inconsistent with arguments used in previous request(s).")
		}
		return old.out.(Out), nil
	}
	out, err := in.do(c)
	if err == nil {
		c.answers[key] = answer{at: c.now(), body: string(body), out: out}
	}
	return out, err
}

// Subscribe calls f for every later change of an instance's state, in order,
// without holding a lock: f may call the cloud.
func (c *Cloud) Subscribe(f func(Event)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.subscribers = append(c.subscribers, f)
}

// deliver hands waiting events to the subscribers. Only one goroutine delivers
// at a time, which keeps their order.
func (c *Cloud) deliver() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.delivering {
		return
	}
	c.delivering = true
	for len(c.outbox) > 0 {
		events, subscribers := c.outbox, slices.Clone(c.subscribers)
		c.outbox = nil
		c.mu.Unlock()
		for _, e := range events {
			for _, f := range subscribers {
				f(e)
			}
		}
		c.mu.Lock()
	}
	c.delivering = false
}
