package planner

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"karpenter/internal/journal"
	"karpenter/internal/kube/mirror"
)

// tallyEvery is how often it is written down what there is, whatever happens.
const tallyEvery = 10 * time.Minute

// noteMachines writes into the journal which machines have become nodes, and which
// nodes are no more. After a restart it goes on from what the journal knows.
func (p *Planner) noteMachines(v *mirror.View) {
	now := p.Now()
	first := p.machines == nil
	if first {
		p.machines = journal.Machines(p.Journal.Entries())
	}
	there := map[string]bool{}
	var joined, gone [][2]string
	for i := range v.Nodes {
		n := &v.Nodes[i]
		if n.Claim == "" {
			continue
		}
		there[n.Claim] = true
		name := ""
		if n.Joined {
			name = n.Name
		}
		before, known := p.machines[n.Claim]
		p.machines[n.Claim] = name
		if name != "" && before != name && (known || !first) {
			joined = append(joined, [2]string{n.Claim, name})
		}
	}
	for _, claim := range slices.Sorted(maps.Keys(p.machines)) {
		if node := p.machines[claim]; !there[claim] {
			delete(p.machines, claim)
			if node != "" {
				gone = append(gone, [2]string{claim, node})
			}
		}
	}
	if len(joined) > 0 {
		p.Journal.Add(journal.Noted(journal.Joined, sayMachines(joined, "joined"), "", joined, now))
	}
	if len(gone) > 0 {
		p.Journal.Add(journal.Noted(journal.Gone, sayMachines(gone, "gone"), "", gone, now))
	}
	if now.Sub(p.tallied) >= tallyEvery {
		p.tallied = now
		in := journal.InputsOf(v.Snapshot)
		p.Journal.Add(journal.Entry{Time: now, Kind: journal.Tally, Inputs: in, Summary: fmt.Sprintf("%d machines for %s, %d pods without a place", in.Machines, in.PerHour, in.Pending)})
	}
}

func sayMachines(machines [][2]string, what string) string {
	var names []string
	for _, m := range machines {
		names = append(names, m[1])
	}
	if len(names) > 3 {
		names = append(names[:3], fmt.Sprintf("%d others", len(names)-3))
	}
	return what + ": " + strings.Join(names, ", ")
}
