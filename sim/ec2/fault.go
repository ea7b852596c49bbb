package ec2

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// Fault makes calls fail. It is applied in the order of injection; the first
// that matches counts.
type Fault struct {
	// ID is set by Inject.
	ID string `json:"id,omitempty"`
	// On is the name of an action ("DescribeInstanceTypes"; wildcards, any
	// case), or "create" (starting one machine: refuses single choices of a
	// fleet), or "boot" (the machine runs but nothing comes of it).
	On string `json:"on"`
	// Match limits "create" and "boot" to machines with these properties.
	Match Match `json:"match,omitzero"`
	// Error is the code of the answer, Message its words (default: the usual
	// ones). With code "ConnectionReset" the HTTP face drops the connection.
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
}

func (m Match) holds(i *Instance) bool {
	is := func(pattern, value string) bool { return pattern == "" || wildcard(pattern, value) }
	return is(m.Type, i.Type) && is(m.Zone, i.Zone) && is(m.Market, string(i.Market)) &&
		is(m.Subnet, i.SubnetID) && is(m.Image, i.ImageID)
}

// Inject adds a fault and returns its id. A fault must say on what, and
// (except on "boot") with what error.
func (c *Cloud) Inject(f Fault) (string, error) {
	switch {
	case f.On == "":
		return "", fmt.Errorf(`fault: "on" is empty; name an action such as CreateFleet, or "create" or "boot"`)
	case f.Error == "" && f.On != "boot":
		return "", fmt.Errorf(`fault on %q: "error" is empty; name an error code such as InsufficientInstanceCapacity`, f.On)
	case f.Match != Match{} && f.On != "create" && f.On != "boot":
		return "", fmt.Errorf(`fault on %q: "match" is for "create" and "boot" only`, f.On)
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
	return c.strike(func(f *Fault) bool { return f.On != "create" && f.On != "boot" && wildcard(f.On, action) })
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
