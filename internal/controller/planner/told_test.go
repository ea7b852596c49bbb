package planner

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/runtime"

	"karpenter/internal/core/disrupt"
	"karpenter/internal/core/world"
	"karpenter/internal/journal"
	"karpenter/internal/kube/mirror"
)

type heard []string

func (h *heard) Event(_ runtime.Object, _, reason, message string) {
	*h = append(*h, reason+": "+message)
}

// A look every 10 seconds for an hour must not be heard each time.
func TestWhyMachinesStayIsSaidOnceInAWhile(t *testing.T) {
	var said heard
	logged := 0
	p := &Planner{Events: &said, Journal: journal.New(5, 5), Log: funcr.New(func(string, string) { logged++ }, funcr.Options{Verbosity: 1})}
	pod := world.ObjectName{Namespace: "default", Name: "p"}
	v := &mirror.View{Snapshot: &world.Snapshot{
		Nodes:   []world.Node{{Name: "a", Claim: "a", Pods: []world.Pod{{ObjectName: pod, Node: "a", Labels: map[string]string{"app": "x"}, Misread: "yes"}}}, {Name: "b", Claim: "b"}},
		Budgets: []world.PodBudget{{ObjectName: world.ObjectName{Namespace: "default", Name: "shut"}, Never: true}},
	}}
	now := time.Unix(0, 0)
	for range 360 {
		p.stays(v, disrupt.Decision{Kept: []disrupt.Kept{{Node: "a", Method: disrupt.Consolidation, Reason: disrupt.NotCheaper{Price: 100_000}}}}, now)
		now = now.Add(10 * time.Second)
	}
	count := map[string]int{}
	for _, s := range said {
		reason, _, _ := strings.Cut(s, ":")
		count[reason]++
	}
	if count["Unconsolidatable"] != 4 || count["NeverAllowsDisruption"] != 1 || count["InvalidDoNotDisrupt"] != 1 || len(said) != 6 {
		t.Errorf("said %v", said)
	}
	if logged != 1 {
		t.Errorf("logged %d times", logged)
	}
	e := p.Journal.Entries()
	if len(e) != 1 || e[0].Kind != journal.Kept || len(e[0].Decision.(disrupt.Decision).Kept) != 2 {
		t.Errorf("journal %+v", e)
	}
	p.stays(v, disrupt.Decision{Kept: []disrupt.Kept{{Node: "a", Method: disrupt.Drift, Reason: disrupt.ProtectedPod{Pod: pod}}}}, now)
	p.stays(v, disrupt.Decision{Kept: []disrupt.Kept{{Node: "a", Method: disrupt.Drift, Reason: disrupt.BudgetSpent{Pod: pod}}}}, now)
	if n := len(said); n != 10 { // another hour of the budget and the annotation has begun as well
		t.Errorf("%d, last %v", n, said[6:])
	}
}
