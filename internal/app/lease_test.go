package app

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// held is a lease as somebody reads it, one state after the other; the last stays.
type held struct {
	resourcelock.Interface
	states []string // holder and renewal
	err    error
	reads  int
}

func (h *held) Identity() string { return "me" }

func (h *held) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	s := h.states[min(h.reads, len(h.states)-1)]
	h.reads++
	holder := ""
	if s != "" {
		holder = s[:2]
	}
	return &resourcelock.LeaderElectionRecord{HolderIdentity: holder}, []byte(s), h.err
}

// TestAFollowerHearsOfAFreeLease: the election hears of the lease when it can be
// had, however often the holder renews it before.
func TestAFollowerHearsOfAFreeLease(t *testing.T) {
	for name, c := range map[string]struct {
		states []string
		err    error
		reads  int
	}{
		"free":                   {[]string{""}, nil, 1},
		"ours":                   {[]string{"me"}, nil, 1},
		"no answer":              {[]string{"ab"}, errors.New("down"), 1},
		"given back":             {[]string{"ab 1", "ab 1", "ab 2", "ab 3", ""}, nil, 5},
		"not renewed any more":   {[]string{"ab 1", "ab 2"}, nil, 2 + 10},
		"renewed just in time":   {[]string{"ab 1", "ab 1", "ab 1", "ab 1", "ab 1", "ab 1", "ab 1", "ab 1", "ab 1", "ab 1", "ab 2", "ab 3"}, nil, 12 + 10},
		"another one was faster": {[]string{"ab 1", "cd 1", "cd 2", ""}, nil, 4},
	} {
		now := time.Unix(0, 0)
		h := &held{states: c.states, err: c.err}
		p := &patient{Interface: h, expires: 10 * time.Second, now: func() time.Time { now = now.Add(time.Second); return now }}
		record, _, err := p.Get(t.Context())
		if !errors.Is(err, c.err) || h.reads != c.reads || err == nil && record.HolderIdentity != "" && record.HolderIdentity != "me" {
			t.Errorf("%s: %d reads, want %d; holder %q, %v", name, h.reads, c.reads, record.HolderIdentity, err)
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := (&patient{Interface: &held{states: []string{"ab"}}, every: time.Hour, expires: time.Hour, now: time.Now}).Get(over); !errors.Is(err, context.Canceled) {
		t.Errorf("at the end: %v", err)
	}
}
