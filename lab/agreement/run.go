package agreement

import (
	"fmt"
)

// Case is what came of one cluster.
type Case struct {
	// Disagreement is nil if plan and Kubernetes agree.
	Disagreement *Disagreement
	// Planned pods, on nodes that exist and on machines to be bought; Left are
	// those that stay pending.
	Planned, Left, Machines int
	// Told: the plan was handed to the freely running scheduler.
	Told bool
	// Rebuy and Empty: a second purchase is needed, and a machine stays empty,
	// per telling.
	Rebuy, Empty map[telling]bool
}

// tellings are what is counted without a target.
var tellings = []telling{{nominate: false}, {nominate: true, staggered: true}, {nominate: false, staggered: true}}

// Check plans the cluster and judges the plan. seed decides what the cloud
// picks and in which order things happen. The same arguments give the same
// answer.
func Check(j *Judge, c *Cluster, solve Planner, seed uint64, storied bool) (out Case, err error) {
	t, err := newTrial(c, solve, seed)
	if err != nil {
		return Case{Disagreement: &Disagreement{"legal", "unusable", err.Error()}}, nil
	}
	out.Left, out.Machines = len(t.plan.Unplaced), len(t.plan.Machines)
	out.Planned = len(t.view.Pending) - out.Left
	if out.Disagreement = t.legal(j); out.Disagreement != nil {
		return out, nil
	}
	if out.Disagreement = t.complete(j); out.Disagreement != nil || !storied || t.unstoppable() {
		return out, nil
	}
	if out.Disagreement, err = t.comesTrue(seed); err != nil || out.Disagreement != nil {
		return out, err
	}
	out.Told, out.Rebuy, out.Empty = true, map[telling]bool{}, map[telling]bool{}
	for _, how := range tellings {
		e, err := t.tell(seed, how)
		if err != nil {
			return out, err
		}
		out.Rebuy[how], out.Empty[how] = len(e.homeless) > 0, len(e.empty) > 0
	}
	return out, nil
}

// harness reports that the disagreement is a fault of this package.
func (d *Disagreement) harness() error {
	if d != nil && d.Rule == "harness" {
		return fmt.Errorf("%s", d)
	}
	return nil
}
