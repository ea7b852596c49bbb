package agreement

import (
	"fmt"
	"math/rand/v2"
)

// Case is what came of one cluster.
type Case struct {
	// Disagreement is nil if plan and Kubernetes agree.
	Disagreement *Disagreement
	// Planned pods, on nodes that exist and on machines to be bought; Left are
	// those that stay pending.
	Planned, Left, Machines int
	// Rebuy: without nominations a second purchase would be needed.
	Rebuy bool
}

// Check plans the cluster and judges the plan. seed decides what the cloud
// picks and in which order things happen. The same arguments give the same
// answer.
func Check(j *Judge, c *Cluster, solve Planner, seed uint64, storied bool) (out Case, err error) {
	t, err := newTrial(c, solve, rand.New(rand.NewPCG(seed, 0x7c15)))
	if err != nil {
		return Case{Disagreement: &Disagreement{"legal", "unusable", err.Error()}}, nil
	}
	out.Left, out.Machines = len(t.plan.Unplaced), len(t.plan.Machines)
	out.Planned = len(t.view.Pending) - out.Left
	if out.Disagreement = t.legal(j); out.Disagreement != nil {
		return out, nil
	}
	out.Disagreement = t.complete(j)
	return out, nil
}

// harness reports that the disagreement is a fault of this package.
func (d *Disagreement) harness() error {
	if d != nil && d.Rule == "harness" {
		return fmt.Errorf("%s", d)
	}
	return nil
}
