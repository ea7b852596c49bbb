// Package catalog keeps what the cloud sells up to date: it asks for a refresh
// when the process starts and from time to time, and remembers what went wrong.
//
// It may import settings and log; the cloud comes through a small interface.
package catalog

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// Times between refreshes.
const (
	every      = 5 * time.Minute
	firstRetry = 2 * time.Second
	lastRetry  = time.Minute
)

// Controller refreshes the catalogue.
type Controller struct {
	// Refresh asks the cloud about instance types, offerings and prices; what is
	// still fresh is not asked again.
	Refresh func(context.Context) error
	Now     func() time.Time
	Log     logr.Logger

	mu      sync.Mutex
	trouble string
	wait    time.Duration
	done    bool
}

// Pass refreshes once and returns when to come again.
func (c *Controller) Pass(ctx context.Context) time.Time {
	err := c.Refresh(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.wait = min(max(2*c.wait, firstRetry), lastRetry)
		if c.trouble != err.Error() {
			c.Log.Error(err, "cannot learn what the cloud sells; trying again", "after", c.wait)
		}
		c.trouble = err.Error()
		return c.Now().Add(c.wait)
	}
	if c.trouble != "" || !c.done {
		c.Log.Info("the catalogue is up to date")
	}
	c.trouble, c.wait, c.done = "", 0, true
	return c.Now().Add(every)
}

// Trouble says why nothing can be bought; empty if the last refresh went well.
func (c *Controller) Trouble() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.trouble == "" && !c.done {
		return "the catalogue of the cloud has not been read yet"
	}
	return c.trouble
}

// Run refreshes until the context ends.
func (c *Controller) Run(ctx context.Context) error {
	for {
		timer := time.NewTimer(c.Pass(ctx).Sub(c.Now()))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}
