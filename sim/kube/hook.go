package kube

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// Phase tells when a hook looks at a call.
type Phase string

// A call is seen before it has an effect, and, if it had one, after it.
const (
	Before Phase = "before"
	After  Phase = "after"
)

// Call is one request to the API server.
type Call struct {
	// Actor is who calls, as named when the client was made.
	Actor string
	// Verb is get, list, create, update, patch, delete or deletecollection.
	Verb string
	Kind string
	// Name is empty for lists, and for objects whose name is generated (before
	// the call).
	Name types.NamespacedName
	// Subresource is status, eviction, binding or empty.
	Subresource string
	// Seq counts the calls of the client, from 1.
	Seq   int
	Phase Phase
}

// Write reports whether the call may change something.
func (c Call) Write() bool { return c.Verb != "get" && c.Verb != "list" }

// String is for a timeline.
func (c Call) String() string {
	kind := c.Kind
	if c.Subresource != "" {
		kind += "/" + c.Subresource
	}
	return fmt.Sprintf("%s %s %s %s", c.Actor, c.Verb, kind, c.Name.String())
}

// Hook sees a call. An error that it returns before the call is the answer, and
// the call has no effect; an error that it returns after the call is the answer
// although the call has had its effect, as when the answer is lost. A hook may
// call the cluster, and may kill the client.
type Hook func(Call) error

// SetHook replaces the hook.
func (c *Cluster) SetHook(h Hook) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opt.Hook = h
}
