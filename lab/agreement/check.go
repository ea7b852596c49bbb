package agreement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"karpenter/internal/core/quantity"
	"karpenter/internal/core/schedule"
	"karpenter/internal/core/world"
)

// Case is what came of one cluster.
type Case struct {
	// Disagreement is nil if plan and Kubernetes agree.
	Disagreement *Disagreement
	// Planned pods, on nodes that exist and on machines to be bought; Left are
	// those that stay pending.
	Planned, Left, Machines int
	// Endings of the tellings; nil if the story was not told. Mixed: pods have
	// different priorities, so that they push each other out, and nothing is
	// asked of the endings. Price is that of the plan.
	Endings []ending
	Mixed   bool
	Price   quantity.Price
}

// tellings are the ways in which a story is told. The first is the property
// that must hold; the others are counted.
var tellings = [...]telling{{nominate: true}, {nominate: false}, {nominate: true, staggered: true}, {nominate: false, staggered: true}}

// Check plans the cluster and judges the plan. seed decides what the cloud
// picks and in which order things happen; story hands the plan to the freely
// running scheduler too. The same arguments give the same answer. An error is a
// fault of this package.
func Check(j *Judge, c *Cluster, solve Planner, seed uint64, story bool) (out Case, err error) {
	t, breach, err := newTrial(c, solve, seed)
	if breach != nil || err != nil {
		return Case{Disagreement: breach}, err
	}
	out.Left, out.Machines = len(t.plan.Unplaced), len(t.plan.Machines)
	out.Planned = len(t.view.Pending) - out.Left
	same, err := t.sameAnyway(solve)
	if err != nil || !same {
		out.Disagreement = &Disagreement{"legal", "order", "another plan is made if everything is listed the other way round"}
		return out, err
	}
	if out.Disagreement, err = t.legal(j); out.Disagreement != nil || err != nil {
		return out, err
	}
	if out.Disagreement, err = t.incomplete(j, seed); out.Disagreement != nil || err != nil || !story || t.unstoppable() {
		return out, err
	}
	out.Mixed, out.Price = t.mixed(), max(0, t.plan.Price())
	if t.plan.Price() == quantity.PriceUnknown {
		out.Price = 0
	}
	for i, how := range tellings {
		e, err := t.tell(seed, how)
		if err != nil {
			return out, err
		}
		if i == 0 && !out.Mixed {
			out.Disagreement = e.breach()
		}
		out.Endings = append(out.Endings, e)
	}
	return out, nil
}

// mixed reports whether pods have different priorities.
func (t *trial) mixed() bool {
	return slices.ContainsFunc(t.Pods, func(p corev1.Pod) bool { return *p.Spec.Priority != 0 })
}

// draws is how often the cloud is asked before a plan counts as incomplete: a plan
// need not bet on what it picks.
const draws = 16

// incomplete reports a pod that is left although there is a place where it would
// fit, whatever the cloud picks. On the way the plan must be legal each time.
func (t *trial) incomplete(j *Judge, seed uint64) (*Disagreement, error) {
	any := false
	if err := t.vacancies(j, func(vacancy) bool { any = true; return true }); !any || err != nil {
		return nil, err
	}
	all, err := t.possible(j)
	if err != nil {
		return nil, err
	}
	for i := range uint64(draws) {
		again, breach, err := newTrial(t.Cluster, func(*world.Snapshot) schedule.Plan { return t.plan }, seed+1+i)
		if breach != nil || err != nil {
			return breach, err
		}
		if breach, err := again.legal(j); breach != nil || err != nil {
			return breach, err
		}
		here, err := again.possible(j)
		if err != nil {
			return nil, err
		}
		all = slices.DeleteFunc(all, func(v vacancy) bool {
			return !slices.ContainsFunc(here, func(o vacancy) bool { return o.key() == v.key() })
		})
	}
	if len(all) == 0 {
		return nil, nil
	}
	return all[0].disagreement(), nil
}

// possible are the vacancies, without machines that would make the plan itself
// impossible: the scheduler sees them from the first, and a new domain may be one
// over which the planned pods are to be spread.
func (t *trial) possible(j *Judge) (out []vacancy, err error) {
	if err := t.vacancies(j, func(v vacancy) bool { out = append(out, v); return false }); err != nil {
		return nil, err
	}
	for i := 0; i < len(out) && err == nil; {
		var breach *Disagreement
		if c := out[i].bought; c != nil {
			breach, err = t.follow(j, c)
		}
		if breach != nil {
			out = slices.Delete(out, i, i+1)
		} else {
			i++
		}
	}
	return out, err
}

// Broken returns a test for [Shrink]: whether a cluster still shows the same
// kind of disagreement.
func Broken(j *Judge, solve Planner, f Found) func(*Cluster) bool {
	return func(c *Cluster) bool {
		r, err := Check(j, c, solve, f.Seed, f.Story)
		return err == nil && r.Disagreement != nil && r.Disagreement.Property == f.Property && r.Disagreement.Rule == f.Rule
	}
}
