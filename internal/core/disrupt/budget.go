package disrupt

import (
	"slices"
	"strconv"
	"strings"

	"karpenter/internal/core/reason"
	"karpenter/internal/core/world"
)

// Reasons that budgets of pools name.
const (
	ReasonEmpty         = "Empty"
	ReasonDrifted       = "Drifted"
	ReasonUnderutilized = "Underutilized"
)

// poolKey names a pool.
type poolKey struct{ kind, name string }

func (c candidate) poolKey() poolKey { return poolKey{c.node.PoolKind, c.node.Pool} }

// ledger counts, for one method, how many machines each pool lets go.
type ledger struct {
	method method
	pools  map[poolKey]*account
}

type account struct {
	machines, going int    // when the round began
	drawn           int    // taken by the method so far
	other           string // a machine that is just being replaced, if any
}

// open counts the machines of all pools.
func (m method) open(s *world.Snapshot) *ledger {
	l := &ledger{m, map[poolKey]*account{}}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		a := l.of(poolKey{n.PoolKind, n.Pool})
		if slow(n.Disruption) && a.other == "" {
			a.other = n.Name
		}
		if !n.Initialized {
			continue
		}
		a.machines++
		if n.Deleting || !n.Ready {
			a.going++
		}
	}
	return l
}

func (l *ledger) of(k poolKey) *account {
	if l.pools[k] == nil {
		l.pools[k] = &account{}
	}
	return l.pools[k]
}

// refuses says why the pool lets no further machine go; nil if it does. A pool
// without budgets, or one whose replacements failed lately, has one command at a
// time, and what is empty goes at once.
func (l *ledger) refuses(c candidate) reason.Reason {
	a := l.of(c.poolKey())
	if l.method.budget == "" || len(c.pool.Disruption.Budgets) == 0 || c.failures.Count > 0 && !l.method.quick {
		if a.other != "" && a.other != c.node.Name && !l.method.quick {
			return Busy{Other: a.other}
		}
	}
	return overBudget(c.pool, l.method.budget, a.machines, a.going+a.drawn)
}

// overBudget says which budget lets no further machine go for the named reason,
// where so many of the machines are going; nil if none forbids it, or no budget is
// asked as the reason is empty.
func overBudget(pool *world.Pool, name string, machines, going int) reason.Reason {
	if name == "" {
		return nil
	}
	for _, b := range pool.Disruption.Budgets {
		if b.Inactive || len(b.Reasons) > 0 && !slices.Contains(b.Reasons, name) {
			continue
		}
		if allowed := allowedBy(b.Nodes, machines); going >= allowed {
			return PoolBudget{Pool: pool.Name, Nodes: b.Nodes, Allowed: allowed, Going: going, Ends: b.Ends}
		}
	}
	return nil
}

// draw notes that the machine goes.
func (l *ledger) draw(c candidate) { l.of(c.poolKey()).drawn++ }

// back takes machines back that do not go after all.
func (l *ledger) back(some []candidate) {
	for _, c := range some {
		l.of(c.poolKey()).drawn--
	}
}

// close notes that the machine is being replaced: without budgets the pool's
// others wait.
func (l *ledger) close(c candidate) { l.of(c.poolKey()).other = c.node.Name }

// allowedBy is how many of the machines may go: a number, or a share that is
// rounded up. What cannot be read allows none.
func allowedBy(nodes string, machines int) int {
	number, share := strings.CutSuffix(nodes, "%")
	n, err := strconv.Atoi(number)
	switch {
	case err != nil:
		return 0
	case share:
		return (machines*n + 99) / 100
	}
	return n
}

// slow reports whether a machine that is marked by the method waits for others.
func slow(name string) bool { return name != "" && name != Emptiness }
