package planner

import (
	"context"
	"fmt"

	"karpenter/internal/kube/mirror"
)

// Simulations is how many of them one look for machines to remove may make, for
// each method.
const Simulations = whatIfs

// Look returns what a pass would decide from now, for people. It changes nothing
// and may be called at any time.
func (p *Planner) Look(ctx context.Context) (*mirror.View, error) {
	set := p.Settings()
	v, err := p.Mirror.View(ctx, p.Now(), policy(set), nominationWindow(set))
	if err != nil {
		return nil, fmt.Errorf("taking a snapshot: %w", err)
	}
	return v, nil
}
