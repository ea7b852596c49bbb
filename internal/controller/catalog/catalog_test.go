package catalog

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
)

func TestTroubleIsRetriedWithBackoff(t *testing.T) {
	now := time.Unix(0, 0)
	var err error
	c := &Controller{Refresh: func(context.Context) error { return err }, Now: func() time.Time { return now }, Log: logr.Discard()}
	if c.Trouble() == "" {
		t.Error("no trouble before the first refresh")
	}
	err = errors.New("down")
	for i, want := range []time.Duration{2, 4, 8, 16, 32, 60, 60} {
		if got := c.Pass(t.Context()).Sub(now); got != want*time.Second || c.Trouble() != "down" {
			t.Errorf("refresh %d: again in %s, want %ds; trouble %q", i, got, want, c.Trouble())
		}
	}
	err = nil
	if got := c.Pass(t.Context()).Sub(now); got != every || c.Trouble() != "" {
		t.Errorf("again in %s, trouble %q", got, c.Trouble())
	}
	err = errors.New("down")
	if got := c.Pass(t.Context()).Sub(now); got != firstRetry {
		t.Errorf("again in %s after a new failure", got)
	}
}
