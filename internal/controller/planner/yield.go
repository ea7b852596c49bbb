package planner

import (
	"maps"
	"slices"
	"time"

	"karpenter/internal/core/lifecycle"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/mirror"
)

// usable is a machine that has come up and whose pods are not on it yet.
type usable struct {
	purchase
	since time.Time
}

// cameUp notes that a machine is usable: now its pods should get their place. Of
// one that was bought before a restart it is not known whose it was.
func (a *accounts) cameUp(claim string, b purchase, now time.Time) {
	if len(b.pods) > 0 && !b.replaces {
		a.usable[claim] = usable{b, now}
	}
}

// settleYield looks at what has become of the pods of machines that came up. One
// whose pods all still wait after the scheduler's sweep was of no use.
func (p *Planner) settleYield(v *mirror.View) {
	if len(p.acc.usable) == 0 {
		return
	}
	now, waits, bound := p.Now(), map[world.ObjectName]bool{}, map[world.ObjectName]bool{}
	for i := range v.Pending {
		waits[v.Pending[i].ObjectName] = true
	}
	for pod := range v.Promised {
		waits[pod] = true
	}
	for i := range v.Nodes {
		for k := range v.Nodes[i].Pods {
			if pod := &v.Nodes[i].Pods[k]; pod.Node == v.Nodes[i].Name {
				bound[pod.ObjectName] = true
			}
		}
	}
	for _, claim := range slices.Sorted(maps.Keys(p.acc.usable)) {
		b := p.acc.usable[claim]
		left := 0
		for _, pod := range b.pods {
			switch {
			case bound[pod]:
				y := p.acc.yield[b.pool]
				y.Placed = append(y.Placed, now)
				p.acc.yield[b.pool] = y
				delete(p.acc.pods, pod)
			case waits[pod]:
				left++
				continue
			}
		}
		switch {
		case left < len(b.pods): // some were placed, or do not want it any more
			delete(p.acc.usable, claim)
		case now.Sub(b.since) >= lifecycle.PlannedHold:
			delete(p.acc.usable, claim)
			p.useless(b.purchase, now)
			for _, pod := range b.pods {
				p.acc.pods[pod] = p.acc.pods[pod].Fail(now)
			}
			p.Log.Info("no pod uses a machine that was bought", poolWord(b.pool.kind), b.pool.name, "nodeclaim", claim, "pods", len(b.pods))
		}
	}
}

// useless counts a machine that nobody got anything from.
func (p *Planner) useless(b purchase, now time.Time) {
	y := p.acc.yield[b.pool].Since(now)
	y.Useless = append(y.Useless, now)
	p.acc.yield[b.pool] = y
}

// Braked says why a pool is not allowed to buy at present although nothing is
// wrong with it: what was bought lately has not helped. Empty: it may. It is safe
// for concurrent use.
func (p *Planner) Braked(kind, name string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.braked[poolName{kind, name}]
}
