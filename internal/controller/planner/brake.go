package planner

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apiv1 "karpenter/api/v1"
	"karpenter/internal/core/brake"
	"karpenter/internal/core/disrupt"
	"karpenter/internal/core/schedule"
	"karpenter/internal/core/world"
	"karpenter/internal/journal"
	"karpenter/internal/kube/dialect"
	"karpenter/internal/kube/mirror"
)

// undone is how soon after a removal to save money a purchase for the same pool
// means that the removal was a mistake.
const undone = 2 * time.Minute

// accounts are what was bought and what came of it. They are learnt anew after a
// restart: machines that are on their way then count as bought.
type accounts struct {
	open  map[string]purchase // machines that are not usable yet, by NodeClaim
	pods  map[world.ObjectName]brake.Tally
	pools map[poolName]brake.Tally
	// saved is what was last removed to save money, churn how often that was
	// undone.
	saved map[poolName]saving
	churn map[poolName]brake.Tally
	// usable are machines that came up and whose pods still wait; yield is what
	// came of the machines of each pool.
	usable map[string]usable
	yield  map[poolName]brake.Yield
}

// saving is a machine that went to save money, and whose pods ran on it.
type saving struct {
	at     time.Time
	owners map[string]bool
}

type poolName struct{ kind, name string }

// purchase is a machine that was bought.
type purchase struct {
	pool poolName
	pods []world.ObjectName
	// replaces: its pods run elsewhere until it is there.
	replaces bool
	// lacks is how far it has come, in words.
	lacks string
}

func (a *accounts) init() {
	if a.open == nil {
		*a = accounts{map[string]purchase{}, map[world.ObjectName]brake.Tally{}, map[poolName]brake.Tally{}, map[poolName]saving{}, map[poolName]brake.Tally{}, map[string]usable{}, map[poolName]brake.Yield{}}
	}
}

// bought notes a machine that was written down. If it is for pods like those of
// a machine that went just now, that one should have stayed.
func (p *Planner) bought(v *mirror.View, rec *world.Record, m *schedule.Machine, replaces bool) {
	p.acc.init()
	pool := poolName{m.PoolKind, m.Pool}
	p.acc.open[rec.Name] = purchase{pool: pool, pods: m.Pods, replaces: replaces}
	last, ok := p.acc.saved[pool]
	if !ok || replaces || p.Now().Sub(last.at) >= undone {
		return
	}
	for i := range v.Pending {
		if pod := &v.Pending[i]; slices.Contains(m.Pods, pod.ObjectName) && last.owners[ownerOf(pod)] {
			p.acc.churn[pool] = p.acc.churn[pool].Fail(p.Now())
			delete(p.acc.saved, pool)
			return
		}
	}
}

func ownerOf(pod *world.Pod) string {
	return pod.Namespace + "/" + pod.Owner.Kind + "/" + pod.Owner.Name
}

// settleAccounts looks at what has become of the machines that were bought, and
// lets pools rest of which none became usable.
func (p *Planner) settleAccounts(ctx context.Context, v *mirror.View) {
	p.acc.init()
	there := map[string]*world.Node{}
	for i := range v.Nodes {
		n := &v.Nodes[i]
		if n.Claim == "" || n.Pool == "" {
			continue
		}
		there[n.Claim] = n
		if _, known := p.acc.open[n.Claim]; !known && !n.Initialized && !n.Deleting {
			p.acc.open[n.Claim] = purchase{pool: poolName{n.PoolKind, n.Pool}}
		}
	}
	for _, claim := range slices.Sorted(maps.Keys(p.acc.open)) {
		b, n := p.acc.open[claim], there[claim]
		switch {
		case n != nil && n.Initialized:
			p.helped(claim, b)
		case n != nil && !n.Deleting:
			b.lacks = p.lacks(ctx, claim, b.lacks)
			p.acc.open[claim] = b
		default:
			p.lost(v, claim, b)
		}
	}
	p.settleYield(v)
	p.forgetAccounts(v)
	p.holdPools(v)
}

func (p *Planner) helped(claim string, b purchase) {
	delete(p.acc.open, claim)
	delete(p.acc.pools, b.pool)
	p.acc.cameUp(claim, b, p.Now())
}

// lost counts a machine that went before it was usable, and tells its pool.
func (p *Planner) lost(v *mirror.View, claim string, b purchase) {
	now := p.Now()
	delete(p.acc.open, claim)
	p.acc.pools[b.pool] = p.acc.pools[b.pool].Fail(now)
	p.useless(b, now)
	for _, pod := range b.pods {
		p.acc.pods[pod] = p.acc.pods[pod].Fail(now)
	}
	n := p.acc.pools[b.pool].Failed
	text := fmt.Sprintf("NodeClaim %s went before its node was usable (%s); %d in a row", claim, b.lacks, n)
	p.Journal.Add(journal.Noted(journal.Lost, text, "", [][2]string{{claim, ""}}, now))
	p.Log.Info("a machine did not help", poolWord(b.pool.kind), b.pool.name, "nodeclaim", claim, "reason", b.lacks, "inARow", n)
	if pool := v.Pool(b.pool.kind, b.pool.name); pool != nil {
		o := dialect.Of(pool.Kind).Pool()
		o.SetName(pool.Name)
		o.SetUID(types.UID(pool.UID))
		p.Events.Event(o, corev1.EventTypeWarning, "MachineLost", text)
	}
}

// lacks says how far a machine has come.
func (p *Planner) lacks(ctx context.Context, claim, before string) string {
	c := &apiv1.NodeClaim{}
	if err := p.Client.Get(ctx, client.ObjectKey{Name: claim}, c); err != nil {
		return before
	}
	for _, kind := range []string{apiv1.ConditionLaunched, apiv1.ConditionRegistered, apiv1.ConditionInitialized} {
		cond := meta.FindStatusCondition(c.Status.Conditions, kind)
		if cond != nil && cond.Status == metav1.ConditionTrue {
			continue
		}
		text := map[string]string{apiv1.ConditionLaunched: "was not launched", apiv1.ConditionRegistered: "did not register", apiv1.ConditionInitialized: "was not initialized"}[kind]
		if c.Status.ImageID != "" {
			text = "image " + c.Status.ImageID + " " + text
		}
		if cond != nil && cond.Message != "" {
			text += ": " + cond.Message
		}
		return text
	}
	return before
}

// forgetAccounts drops pods and pools that are no longer there.
func (p *Planner) forgetAccounts(v *mirror.View) {
	wanted := map[world.ObjectName]bool{}
	for i := range v.Pending {
		wanted[v.Pending[i].ObjectName] = true
	}
	for _, b := range p.acc.open {
		for _, pod := range b.pods {
			wanted[pod] = true
		}
	}
	for _, b := range p.acc.usable {
		for _, pod := range b.pods {
			wanted[pod] = true
		}
	}
	maps.DeleteFunc(p.acc.pods, func(pod world.ObjectName, _ brake.Tally) bool { return !wanted[pod] })
	gone := func(pool poolName, t brake.Tally) bool {
		return v.Pool(pool.kind, pool.name) == nil || p.Now().Sub(t.Last) > 2*brake.Pool.Most
	}
	maps.DeleteFunc(p.acc.pools, gone)
	maps.DeleteFunc(p.acc.churn, gone)
	maps.DeleteFunc(p.acc.yield, func(pool poolName, _ brake.Yield) bool { return v.Pool(pool.kind, pool.name) == nil })
}

// brakes says why a pool buys nothing for a while; empty: it buys.
func (a *accounts) brakes(pool poolName, now time.Time) string {
	if failed := a.pools[pool]; brake.Pool.Holds(failed, now) {
		return fmt.Sprintf("%d machines in a row did not become usable, so no more are bought until %s", failed.Failed, brake.Pool.Until(failed).UTC().Format(time.TimeOnly))
	}
	y := a.yield[pool].Since(now)
	if until, holds := y.Until(now); holds {
		return fmt.Sprintf("within an hour %d machines were of no use and %d pods got a place, so no more are bought until %s", len(y.Useless), len(y.Placed), until.UTC().Format(time.TimeOnly))
	}
	return ""
}

// holdPools makes pools rest in the view that is planned with.
func (p *Planner) holdPools(v *mirror.View) {
	now := p.Now()
	var pools []world.Pool
	braked := map[poolName]string{}
	for i := range v.Pools {
		pool := v.Pools[i]
		name := poolName{pool.Kind, pool.Name}
		why, saves := p.acc.brakes(name, now), !brake.Churn.Holds(p.acc.churn[name], now)
		if why == "" && (saves || !pool.Consolidate) {
			continue
		}
		if pools == nil {
			pools = slices.Clone(v.Pools)
		}
		if why != "" {
			braked[name] = why
			pools[i].NotReady = cmp.Or(pool.NotReady, why)
		}
		pools[i].Consolidate = pool.Consolidate && saves
	}
	p.mu.Lock()
	p.braked = braked
	p.mu.Unlock()
	if pools != nil {
		s := *v.Snapshot
		s.Pools = pools
		v.Snapshot = &s
	}
}

// tooEarly reports whether all pods of a machine have had machines that did not
// help, so that the next one waits.
func (p *Planner) tooEarly(m *schedule.Machine) (time.Time, bool) {
	var until time.Time
	for _, pod := range m.Pods {
		t := p.acc.pods[pod]
		if !brake.Pod.Holds(t, p.Now()) {
			return time.Time{}, false
		}
		if end := brake.Pod.Until(t); until.IsZero() || end.Before(until) {
			until = end
		}
	}
	return until, !until.IsZero()
}

// savedMoney notes that a machine goes so that money is saved.
func (p *Planner) savedMoney(v *mirror.View, method string, t disrupt.Target) {
	if method != disrupt.Consolidation {
		return
	}
	p.acc.init()
	one := saving{p.Now(), map[string]bool{}}
	for i := range v.Nodes {
		for k := range v.Nodes[i].Pods {
			if pod := &v.Nodes[i].Pods[k]; v.Nodes[i].Name == t.Node && !pod.IsDaemon() && pod.Owner.Name != "" {
				one.owners[ownerOf(pod)] = true
			}
		}
	}
	p.acc.saved[poolName{t.PoolKind, t.Pool}] = one
}
