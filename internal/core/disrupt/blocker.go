package disrupt

import (
	"time"

	"karpenter/internal/core/label"
	"karpenter/internal/core/reason"
	"karpenter/internal/core/world"
)

// blockers in the order in which they are asked; the first that holds is the
// reason shown.
var blockers = []func(candidate) reason.Reason{
	notOurs,
	deleting,
	notInitialized,
	promised,
	protectedNode,
	notConsolidated,
	failing,
	protectedPod,
	justMoved,
	budget,
}

func (c candidate) blocked() reason.Reason {
	for _, b := range blockers {
		if r := b(c); r != nil {
			return r
		}
	}
	return nil
}

func notOurs(c candidate) reason.Reason {
	if c.node.Claim == "" || c.pool == nil {
		return NotOurs{}
	}
	return nil
}

// deleting lets a machine pass that was marked by the method that asks.
func deleting(c candidate) reason.Reason {
	if c.node.Deleting && c.node.Disruption != c.method {
		return Deleting{}
	}
	return nil
}

func notInitialized(c candidate) reason.Reason {
	if !c.node.Initialized {
		return NotInitialized{}
	}
	return nil
}

// promised: pods are expected here that are not bound yet.
func promised(c candidate) reason.Reason {
	for _, p := range c.node.Pods {
		if p.Node != c.node.Name {
			return Promised{Pod: p.ObjectName}
		}
	}
	if u := c.node.NominatedUntil; u != nil && c.before(*u) {
		return Promised{}
	}
	return nil
}

// Annotations by which a person keeps a node; either generation's is honoured.
const (
	doNotDisrupt     = "karpenter.sh/do-not-disrupt"
	doNotConsolidate = "karpenter.sh/do-not-consolidate"
)

func protectedNode(c candidate) reason.Reason {
	if c.node.Annotations[doNotDisrupt] == "true" {
		return ProtectedNode{Annotation: doNotDisrupt}
	}
	return nil
}

// notConsolidated: with any value but true the annotation counts as absent.
func notConsolidated(c candidate) reason.Reason {
	if c.method == Consolidation && c.node.Annotations[doNotConsolidate] == "true" {
		return ProtectedNode{Annotation: doNotConsolidate}
	}
	return nil
}

// Pauses after replacements that did not come up: the first, and the longest.
const (
	firstPause = 5 * time.Minute
	lastPause  = 12 * time.Hour
)

// failing: what was bought in the place of machines of the pool did not come up.
// The old ones are the only ones that work; attempts get rarer.
func failing(c candidate) reason.Reason {
	f := c.failures
	if c.quick || f.Count == 0 || c.node.Disruption != "" {
		return nil
	}
	pause := lastPause
	if f.Count < 10 {
		pause = min(firstPause<<(f.Count-1), lastPause)
	}
	if again := f.Last.Add(pause); c.before(again) {
		return ReplacementsFail{Pool: c.node.Pool, Times: f.Count, Why: f.Why, Again: again}
	}
	return nil
}

func protectedPod(c candidate) reason.Reason {
	if c.eventual && c.node.Bounded {
		return nil
	}
	for _, p := range c.node.Pods {
		if c.protects(&p) && !p.Finished && !p.IsStatic() && p.DeletedAt == nil {
			return ProtectedPod{Pod: p.ObjectName, Until: p.ProtectedUntil()}
		}
	}
	return nil
}

// protects reports whether the pod keeps its place now.
func (c candidate) protects(p *world.Pod) bool {
	until := p.ProtectedUntil()
	if until != nil {
		return c.before(*until)
	}
	return p.DoNotEvict
}

// restFor is how long a pod that was moved to save money is left alone.
const restFor = time.Hour

func justMoved(c candidate) reason.Reason {
	if c.method != Consolidation {
		return nil
	}
	for i := range c.node.Pods {
		p := &c.node.Pods[i]
		if p.MovedAt != nil && p.Leaves(c.node) && c.before(p.MovedAt.Add(restFor)) {
			return JustMoved{Pod: p.ObjectName, Until: p.MovedAt.Add(restFor)}
		}
	}
	return nil
}

// budget: a PodDisruptionBudget allows no eviction, or a pod has more than one,
// which the Eviction API refuses for ever.
func budget(c candidate) reason.Reason {
	if c.eventual && c.node.Bounded {
		return nil
	}
	for _, p := range c.node.Pods {
		if !p.Leaves(c.node) {
			continue
		}
		if r := CannotEvict(p, c.snap.Budgets); r != nil {
			return r
		}
	}
	return nil
}

// Immovable returns why a pod on a node can not leave it at any time, whatever
// the others do; nil if all can.
func Immovable(pods []world.Pod, budgets []world.PodBudget) reason.Reason {
	for _, p := range pods {
		switch {
		case p.Finished || p.IsStatic() || p.DeletedAt != nil:
		case p.DoNotEvict:
			return ProtectedPod{Pod: p.ObjectName}
		case !p.IsDaemon():
			r := CannotEvict(p, budgets)
			if spent, ok := r.(BudgetSpent); ok && !spent.Never {
				continue
			}
			if r != nil {
				return r
			}
		}
	}
	return nil
}

// CannotEvict returns why budgets do not let the pod go now; nil if they do.
func CannotEvict(p world.Pod, budgets []world.PodBudget) reason.Reason {
	var first *world.PodBudget
	for i := range budgets {
		b := &budgets[i]
		if b.Namespace != p.Namespace || b.Selector.Nothing || !label.Matches(b.Selector.Requirements, p.Labels) {
			continue
		}
		if b.Allowed < 1 {
			return BudgetSpent{Pod: p.ObjectName, Budget: b.ObjectName, Never: b.Never}
		}
		if first != nil {
			return TwoBudgets{Pod: p.ObjectName, Budgets: [2]world.ObjectName{first.ObjectName, b.ObjectName}}
		}
		first = b
	}
	return nil
}
