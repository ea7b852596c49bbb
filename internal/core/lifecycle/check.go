package lifecycle

import (
	"fmt"
	"time"
)

// Limits of what is told about machines that are not as they should be.
const (
	// lateAfter is the age at which a machine that is not usable yet is told of.
	lateAfter = time.Hour
	// leastPercent of what its instance type promises is what a node has at least.
	leastPercent = 90
)

// findings are what is wrong with a registered node, for people: nothing is done
// about it. why says why it is not usable yet; nil: it is.
func findings(in *Input, n *Node, why *Condition) (out []Event) {
	find := func(text string) { out = append(out, Event{true, "FailedInflightCheck", text}) }
	if why != nil {
		if in.Now.Sub(in.Record.Created) >= lateAfter {
			find("not usable an hour after it was bought: " + why.Message)
		}
		return out
	}
	for _, a := range in.Record.Allocatable.Amounts() {
		has := n.Allocatable.Get(a.Name)
		switch {
		case a.Value <= 0:
		case has == 0:
			find(fmt.Sprintf("resource %s is promised by the instance type, and the node does not offer any", a.Name))
		case float64(has) < float64(a.Value)*leastPercent/100:
			find(fmt.Sprintf("the node offers %.0f%% of the %s that its instance type promises", float64(has)/float64(a.Value)*100, a.Name))
		}
	}
	return out
}
