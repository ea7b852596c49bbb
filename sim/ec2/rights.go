package ec2

import (
	"maps"
	"slices"
)

// What a caller may do is a list of actions such as "ec2:CreateFleet", as IAM
// policies have them. A call may need more than the right of its own name, and
// a machine that a fleet starts needs rights of its own: without them the
// choice is refused, not the call.

// needy is a request that needs more rights than that of its own name.
type needy interface{ needs() []string }

// tagRights are what tags at creation need.
func tagRights(specs []TagSpec) []string {
	if len(specs) > 0 {
		return []string{"ec2:CreateTags"}
	}
	return nil
}

// may asks for a right and remembers that it was of use.
func (c *Cloud) may(right string) bool {
	if c.opt.Allow == nil {
		c.used[right] = true
		return true
	}
	for _, allowed := range c.opt.Allow {
		if wildcard(allowed, right) {
			c.used[allowed] = true
			return true
		}
	}
	return false
}

// authorize refuses a request for which a right is missing.
func (c *Cloud) authorize(in any, service, action string) *Error {
	rights := []string{service + ":" + action}
	if n, ok := in.(needy); ok {
		rights = append(rights, n.needs()...)
	}
	for _, r := range rights {
		if !c.may(r) {
			return errorf(unauthorized(service), "You are not authorized to perform this operation: %s", r)
		}
	}
	return nil
}

// mayLaunch refuses to start a machine for which a right is missing.
func (c *Cloud) mayLaunch(i *Instance) *Error {
	rights := []string{"ec2:RunInstances"}
	if i.InstanceProfile != "" {
		rights = append(rights, "iam:PassRole")
	}
	for _, r := range rights {
		if !c.may(r) {
			return errorf("UnauthorizedOperation", "You are not authorized to perform this operation: %s", r)
		}
	}
	return nil
}

// SetAllow replaces the list of allowed actions (nil: everything) and forgets
// which of them were of use.
func (c *Cloud) SetAllow(actions []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opt.Allow = slices.Clone(actions)
	clear(c.used)
}

// UsedRights returns the entries of the list of allowed actions that were
// needed so far, sorted; without a list, the rights themselves.
func (c *Cloud) UsedRights() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.used))
}
