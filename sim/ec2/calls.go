package ec2

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// APICall is an entry of the log of calls.
type APICall struct {
	Time   time.Time `json:"time"`
	Action string    `json:"action"`
	// Error is the code of the answer if it was one.
	Error string `json:"error,omitempty"`
	// Token is the client token, Instances what was started or ended.
	Token     string   `json:"token,omitempty"`
	Instances []string `json:"instances,omitempty"`
}

// callLog keeps the last calls and the number of all of them.
type callLog struct {
	calls  []APICall
	counts map[string]int
}

// maxCalls is how many calls the log keeps at least.
const maxCalls = 10_000

// Calls returns the last 10,000 calls or more, oldest first; with names, only
// those of these actions.
func (c *Cloud) Calls(actions ...string) []APICall {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := []APICall{}
	for _, call := range c.log.calls {
		if len(actions) == 0 || slices.Contains(actions, call.Action) {
			out = append(out, call)
		}
	}
	return out
}

// CallCounts returns how often each action was called, refused calls
// included.
func (c *Cloud) CallCounts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.log.counts)
}

// instanceReporter is an answer that names instances started or ended.
type instanceReporter interface{ instanceIDs() []string }

func (c *Cloud) record(action string, in, out any, err error) {
	call := APICall{Time: c.now(), Action: action}
	if e, ok := err.(*Error); ok {
		call.Error = e.Code
	}
	if t, ok := in.(idempotent); ok {
		call.Token = t.clientToken()
	}
	if r, ok := out.(instanceReporter); ok && err == nil {
		call.Instances = r.instanceIDs()
	}
	if len(c.log.calls) >= 2*maxCalls {
		c.log.calls = slices.Clone(c.log.calls[maxCalls:])
	}
	c.log.calls = append(c.log.calls, call)
	c.log.counts[action]++
}

// actionOf returns the service and the action of a request.
func actionOf(in any) (service, action string) {
	service = "ec2"
	if s, ok := in.(interface{ service() string }); ok {
		service = s.service()
	}
	return service, strings.TrimSuffix(reflect.TypeOf(in).Elem().Name(), "Input")
}
