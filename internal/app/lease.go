package app

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Times of the lease. Who leads renews it every retryPeriod, gives up when that
// has failed for renewDeadline, and is followed by another one when it was not
// renewed for leaseDuration.
const (
	leaseDuration = 10 * time.Second
	renewDeadline = 7 * time.Second
	retryPeriod   = 2 * time.Second
	// lookAtLease is how often a follower looks whether the lease is free.
	lookAtLease = 500 * time.Millisecond
)

// patient is a lease of which a follower hears only when it can be had. By itself
// the election asks every two to four seconds, with as long a gap after the leader
// has gone; looking is cheap, and only an attempt to take the lease writes.
type patient struct {
	resourcelock.Interface
	every, expires time.Duration
	now            func() time.Time
}

// newLease makes the lease; the candidate's name is unique.
func newLease(cfg *rest.Config, namespace, name string) (resourcelock.Interface, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("naming this replica: %w", err)
	}
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, name,
		resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())}, cfg, renewDeadline)
	if err != nil {
		return nil, fmt.Errorf("preparing the lease %s/%s: %w", namespace, name, err)
	}
	return &patient{Interface: lock, every: lookAtLease, expires: leaseDuration, now: time.Now}, nil
}

// Get returns the lease when it is free, ours, or was not renewed for so long that
// it may be taken; then it names no holder. Whoever takes it writes over exactly
// what was read, so that of two who try only one succeeds. An error or the end of
// the context returns at once.
func (p *patient) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	var last string
	var since time.Time
	for {
		record, raw, err := p.Interface.Get(ctx)
		if err != nil || record.HolderIdentity == "" || record.HolderIdentity == p.Identity() {
			return record, raw, err
		}
		switch now := p.now(); {
		case string(raw) != last: // by this clock: that of the holder may be wrong
			last, since = string(raw), now
		case now.Sub(since) >= p.expires:
			record.HolderIdentity = ""
			return record, raw, nil
		}
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(p.every):
		}
	}
}
