package agreement

// Case is what came of one cluster.
type Case struct {
	// Disagreement is nil if plan and Kubernetes agree.
	Disagreement *Disagreement
	// Planned pods, on nodes that exist and on machines to be bought; Left are
	// those that stay pending.
	Planned, Left, Machines int
	// Endings of the tellings; nil if the story was not told.
	Endings []ending
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
	if out.Disagreement, err = t.complete(j); out.Disagreement != nil || err != nil || !story || t.unstoppable() {
		return out, err
	}
	for i, how := range tellings {
		e, err := t.tell(seed, how)
		if err != nil {
			return out, err
		}
		if i == 0 {
			out.Disagreement = e.breach()
		}
		out.Endings = append(out.Endings, e)
	}
	return out, nil
}

// Broken returns a test for [Shrink]: whether a cluster still shows the same
// kind of disagreement.
func Broken(j *Judge, solve Planner, f Found) func(*Cluster) bool {
	return func(c *Cluster) bool {
		r, err := Check(j, c, solve, f.Seed, f.Story)
		return err == nil && r.Disagreement != nil && r.Disagreement.Property == f.Property && r.Disagreement.Rule == f.Rule
	}
}
