package planner

import (
	"context"
	"fmt"
	"slices"
	"time"

	"karpenter/internal/core/world"
	"karpenter/internal/kube/mirror"
	"karpenter/internal/settings"
)

// Snapshot returns the cluster as the planner would see it, for whoever asks the
// same questions again. Pools that rest are not left out.
func Snapshot(ctx context.Context, m viewer, now time.Time, set settings.Settings) (*world.Snapshot, error) {
	v, err := see(ctx, m, now, set)
	if err != nil {
		return nil, err
	}
	return v.Snapshot, nil
}

func see(ctx context.Context, m viewer, now time.Time, set settings.Settings) (*mirror.View, error) {
	v, err := m.View(ctx, now, policy(set), nominationWindow(set))
	if err != nil {
		return nil, fmt.Errorf("taking a snapshot: %w", err)
	}
	return v, nil
}

// Look returns what a pass would decide from now, for people: pools that rest say
// so. It changes nothing and may be called at any time.
func (p *Planner) Look(ctx context.Context) (*world.Snapshot, error) {
	s, err := Snapshot(ctx, p.Mirror, p.Now(), p.Settings())
	if err != nil {
		return nil, err
	}
	out := *s
	out.Pools = slices.Clone(s.Pools)
	for i := range out.Pools {
		if pool := &out.Pools[i]; pool.NotReady == "" {
			pool.NotReady = p.Braked(pool.Kind, pool.Name)
		}
	}
	return &out, nil
}
