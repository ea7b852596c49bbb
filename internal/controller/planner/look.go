package planner

import (
	"context"
	"fmt"
	"time"

	"karpenter/internal/core/world"
	"karpenter/internal/kube/mirror"
	"karpenter/internal/settings"
)

// Snapshot returns the cluster as the planner would see it, for whoever asks the
// same questions again. Pools that rest are not left out.
func Snapshot(ctx context.Context, m *mirror.Mirror, now time.Time, set settings.Settings) (*world.Snapshot, error) {
	v, err := m.View(ctx, now, policy(set), nominationWindow(set))
	if err != nil {
		return nil, fmt.Errorf("taking a snapshot: %w", err)
	}
	return v.Snapshot, nil
}
