package notice

import (
	"context"
	"errors"
	"time"

	"karpenter/internal/cloud"
)

// checkEvery is how often the cloud is asked how machines do. That needs no queue.
const checkEvery = time.Minute

// checks is what is known about asking.
type checks struct {
	trouble string // as last said; empty: the cloud answers
	// seen are the notices that were acted upon and have come again since.
	seen map[string]bool
}

// Check asks how machines do, acts on what is wrong with ours, and returns when it
// wants to run again; the zero time is never, as the right to ask is missing. It is
// not safe for concurrent use with itself.
func (c *Controller) Check(ctx context.Context) (next time.Time, err error) {
	next = c.Now().Add(checkEvery)
	list, err := c.Inbox.Unwell(ctx)
	var forbidden *cloud.ForbiddenError
	switch {
	case errors.As(err, &forbidden):
		c.Log.Error(err, "status checks of machines are not looked at any more: give the controller the right ec2:DescribeInstanceStatus and start it anew, or do without")
		return time.Time{}, nil
	case err != nil:
		if text := err.Error(); text != c.checks.trouble {
			c.checks.trouble = text
			c.Log.Error(err, "status checks of machines cannot be looked at; those that are out of order are not noticed")
		}
		return next, nil
	}
	c.checks.trouble = ""
	seen := map[string]bool{}
	defer func() { c.checks.seen = seen }()
	if len(list) == 0 {
		return next, nil
	}
	machines, err := c.machines(ctx)
	if err != nil {
		return next, err
	}
	var failed []error
	for _, n := range list {
		key := string(n.Kind) + " " + n.ID + " " + n.Instances[0]
		if machines[n.Instances[0]] == nil {
			continue // somebody else's
		}
		if c.checks.seen[key] {
			seen[key] = true
			continue
		}
		c.Metrics.unhealthy(n.Kind)
		if err := c.one(ctx, n, machines); err != nil {
			failed = append(failed, err)
			continue
		}
		seen[key] = true
	}
	return next, errors.Join(failed...)
}
