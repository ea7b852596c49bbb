package ec2

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Fault makes calls fail or last. It is applied in the order of injection; the
// first that matches counts.
type Fault struct {
	// ID is set by Inject.
	ID string `json:"id,omitempty"`
	// On is the name of an action ("DescribeInstanceTypes"; wildcards, any
	// case), or
	//   - "create": starting one machine; refuses single choices of a fleet;
	//   - "boot": the machine runs but nothing comes of it, or with Delay only
	//     later;
	//   - "visible": Describe calls do not show the machine for Delay longer;
	//   - "event": an event on its way to the queues is, by Error, Lost,
	//     Duplicate or Malformed; with Delay it is late.
	On string `json:"on"`
	// Match limits all but actions to machines, or events, with these
	// properties.
	Match Match `json:"match,omitzero"`
	// Error is the code of the answer, Message its words (default: the usual
	// ones). With code "ConnectionReset" the HTTP face drops the connection.
	// An action may have Delay alone: it takes that long.
	Error   string `json:"error,omitempty"`
	Message string `json:"message,omitempty"`
	// Skip lets so many matching calls through first; Times is how often it
	// then strikes (0: always); Until ends it.
	Skip  int       `json:"skip,omitempty"`
	Times int       `json:"times,omitempty"`
	Until time.Time `json:"until,omitzero"`
	// Percent is the chance, by the seed, that it strikes at a match (0: 100).
	Percent int `json:"percent,omitempty"`
	// After lets the call take effect and loses the answer. It is for whole
	// actions only.
	After bool `json:"after,omitempty"`
	// Delay is how long a call lasts (see Options.Sleep) before it takes
	// effect, or with After before the answer is lost; for the others see On.
	Delay time.Duration `json:"delay,omitempty"`

	// Struck counts how often it has struck.
	Struck int `json:"struck"`
}

// Match holds patterns with the wildcards * and ?; empty ones match
// everything.
type Match struct {
	Type   string `json:"type,omitempty"`
	Zone   string `json:"zone,omitempty"`
	Market string `json:"market,omitempty"`
	Subnet string `json:"subnet,omitempty"`
	Image  string `json:"image,omitempty"`
	// Event is the detail-type of an event.
	Event string `json:"event,omitempty"`
}

func (m Match) holds(i *Instance) bool {
	is := func(pattern, value string) bool { return pattern == "" || wildcard(pattern, value) }
	return is(m.Type, i.Type) && is(m.Zone, i.Zone) && is(m.Market, string(i.Market)) &&
		is(m.Subnet, i.SubnetID) && is(m.Image, i.ImageID)
}

// special are the values of On that are no actions.
var special = []string{"create", "boot", "visible", "event"}

// Inject adds a fault and returns its id. A fault must say on what, and do
// something.
func (c *Cloud) Inject(f Fault) (string, error) {
	isAction := !slices.Contains(special, f.On)
	switch {
	case f.On == "":
		return "", fmt.Errorf(`fault: "on" is empty; name an action such as CreateFleet, or one of %s`, strings.Join(special, ", "))
	case f.Error == "" && (f.On == "create" || f.Delay == 0 && f.On != "boot"):
		return "", fmt.Errorf(`fault on %q: "error" is empty; name an error code such as InsufficientInstanceCapacity`, f.On)
	case f.Match != Match{} && isAction:
		return "", fmt.Errorf(`fault on %q: "match" is for %s only`, f.On, strings.Join(special, ", "))
	case f.On == "event" && !slices.Contains([]string{"", "Lost", "Duplicate", "Malformed"}, f.Error):
		return "", fmt.Errorf(`fault on "event": "error" is %q; an event is Lost, Duplicate or Malformed`, f.Error)
	case f.On == "visible" && f.Delay == 0:
		return "", fmt.Errorf(`fault on "visible": "delay" is missing; say how long, such as 10s`)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	f.ID, f.Struck = c.newID("fault"), 0
	c.faults = append(c.faults, &f)
	return f.ID, nil
}

// Heal removes faults by id; without ids all of them.
func (c *Cloud) Heal(ids ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = slices.DeleteFunc(c.faults, func(f *Fault) bool { return len(ids) == 0 || slices.Contains(ids, f.ID) })
}

// Faults returns the faults in order, with how often each has struck.
func (c *Cloud) Faults() []Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]Fault, len(c.faults))
	for i, f := range c.faults {
		out[i] = *f
	}
	return out
}

// callFault returns the fault that strikes a whole action, or nil.
func (c *Cloud) callFault(action string) *Fault {
	return c.strike(func(f *Fault) bool { return !slices.Contains(special, f.On) && wildcard(f.On, action) })
}

// machineFault returns the fault that strikes one machine, or nil.
func (c *Cloud) machineFault(on string, i *Instance) *Fault {
	return c.strike(func(f *Fault) bool { return f.On == on && f.Match.holds(i) })
}

func (c *Cloud) strike(match func(*Fault) bool) *Fault {
	now := c.now()
	for _, f := range c.faults {
		switch {
		case !f.Until.IsZero() && !now.Before(f.Until), f.Times > 0 && f.Struck >= f.Times, !match(f):
		case f.Percent > 0 && c.rng.IntN(100) >= f.Percent:
		case f.Skip > 0:
			f.Skip--
		default:
			f.Struck++
			return f
		}
	}
	return nil
}

func (f *Fault) err() *Error {
	e := &Error{Code: f.Error, Message: f.Message}
	if e.Message == "" {
		e.Message = messages[f.Error]
	}
	if e.Message == "" {
		e.Message = "Injected by the simulation."
	}
	return e
}

// bucket is the state of a Limit.
type bucket struct {
	tokens float64
	at     time.Time
}

// take asks the token bucket of an action for leave.
func (c *Cloud) take(action string) bool {
	for _, pattern := range slices.Sorted(maps.Keys(c.opt.Limits)) {
		if !wildcard(pattern, action) {
			continue
		}
		limit, now := c.opt.Limits[pattern], c.now()
		b := c.buckets[pattern]
		if b == nil {
			b = &bucket{tokens: limit.Burst, at: now}
			c.buckets[pattern] = b
		}
		b.tokens = math.Min(limit.Burst, b.tokens+now.Sub(b.at).Seconds()*limit.PerSecond)
		b.at = now
		if b.tokens < 1 {
			return false
		}
		b.tokens--
		return true
	}
	return true
}

// SetLimits replaces the throttling limits.
func (c *Cloud) SetLimits(limits map[string]Limit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opt.Limits, c.buckets = maps.Clone(limits), map[string]*bucket{}
}
