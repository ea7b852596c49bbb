package disrupt

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"karpenter/internal/core/quantity"
	"karpenter/internal/core/reason"
	"karpenter/internal/core/world"
)

// The reasons why a machine stays. Each is a reason.Reason.
type (
	// NotOurs: foreign, stand-alone, or the pool is gone.
	NotOurs struct{}
	// Deleting: it is on its way out already.
	Deleting struct{}
	// Gone: it does not exist any more.
	Gone struct{}
	// NotDue: what asked for its removal does not hold any more.
	NotDue struct{}
	// NotMarked: its mark was taken back, so pods may have come meanwhile.
	NotMarked struct{}
	// NotLookedAt: the round had used up its simulations.
	NotLookedAt struct{}
	// NotInitialized: it is still coming up.
	NotInitialized struct{}
	// Promised: pods are expected here. Pod is one of them, if known.
	Promised struct {
		Pod world.ObjectName `json:"pod"`
	}
	// ProtectedNode: a person annotated the node.
	ProtectedNode struct {
		Annotation string `json:"annotation"`
	}
	// ProtectedPod: a person annotated a pod on it. Until is when that lapses; nil:
	// it does not.
	ProtectedPod struct {
		Pod   world.ObjectName `json:"pod"`
		Until *time.Time       `json:"until,omitempty"`
	}
	// BudgetSpent: a PodDisruptionBudget allows no disruption now, or Never.
	BudgetSpent struct {
		Pod    world.ObjectName `json:"pod"`
		Budget world.ObjectName `json:"budget"`
		Never  bool             `json:"never,omitempty"`
	}
	// TwoBudgets: a pod has several budgets; the Eviction API refuses it.
	TwoBudgets struct {
		Pod     world.ObjectName    `json:"pod"`
		Budgets [2]world.ObjectName `json:"budgets"`
	}
	// Busy: another machine of the pool is being replaced.
	Busy struct {
		Other string `json:"other"`
	}
	// NoOtherPlace: a pod on it fits nowhere else.
	NoOtherPlace struct {
		Pod     world.ObjectName `json:"pod"`
		Reasons []reason.Reason  `json:"reasons,omitempty"`
	}
	// WaitsFor: a pod on it would go to a node that is not up yet.
	WaitsFor struct {
		Pod  world.ObjectName `json:"pod"`
		Node string           `json:"node"`
	}
	// PoolBudget: a disruption budget of the pool is used up. Ends is when its
	// window closes; nil = it always holds.
	PoolBudget struct {
		Pool    string     `json:"pool"`
		Nodes   string     `json:"nodes"`
		Allowed int        `json:"allowed"`
		Going   int        `json:"going"`
		Ends    *time.Time `json:"ends,omitempty"`
	}
	// NoPrice: what the machine costs is not known, so nothing can be cheaper.
	NoPrice struct{}
	// NotCheaper: its pods need a machine, and none costs less.
	NotCheaper struct {
		Price quantity.Price `json:"price"`
	}
	// SeveralNeeded: its pods need more than one new machine.
	SeveralNeeded struct {
		Machines int `json:"machines"`
	}
	// SpotStays: a spot machine is not replaced by another one.
	SpotStays struct {
		Types int `json:"types"`
	}
	// FewSpotTypes: too few cheaper spot types would be left to choose from.
	FewSpotTypes struct {
		Types int `json:"types"`
		Least int `json:"least"`
	}
	// RulesKeep: there would be room for the pod but for rules between pods.
	// Rules are the kinds that it has itself; empty: it is those of others.
	RulesKeep struct {
		Pod   world.ObjectName `json:"pod"`
		Rules []string         `json:"rules,omitempty"`
	}
	// ReplacementsFail: what was bought in the place of machines of the pool did
	// not come up; nothing is tried before Again.
	ReplacementsFail struct {
		Pool  string    `json:"pool"`
		Times int       `json:"times"`
		Why   string    `json:"why"`
		Again time.Time `json:"again"`
	}
	// Unbalanced: the best move that was found saves too little for what it
	// disturbs.
	Unbalanced struct {
		Pool     string         `json:"pool"`
		Score    float64        `json:"score"`
		Saves    quantity.Price `json:"saves"`
		Disturbs float64        `json:"disturbs"`
	}
	// PoolKeeps: its pool does not remove machines in use to save money.
	PoolKeeps struct {
		Pool string `json:"pool"`
	}
	// NotQuiet: pods came or went a short while ago; it is looked at from Until on.
	NotQuiet struct {
		Until time.Time `json:"until"`
	}
	// JustMoved: a pod on it was moved to save money a short while ago.
	JustMoved struct {
		Pod   world.ObjectName `json:"pod"`
		Until time.Time        `json:"until"`
	}
	// RoomTaken: what was bought is ready, and others have taken the room of the
	// pod, or there is less of it than was promised.
	RoomTaken struct {
		Pod world.ObjectName `json:"pod"`
	}
	// NotCarriedOut: whoever chose the machine did not go on.
	NotCarriedOut struct{}
	// Unreadable: what was written down about the command cannot be read.
	Unreadable struct {
		Problem string `json:"problem"`
	}
	// ReplacementFailed: something that was bought is gone before it was ready.
	ReplacementFailed struct{}
	// ReplacementsLate: what was bought was not ready in time.
	ReplacementsLate struct {
		Ready  int `json:"ready"`
		Wanted int `json:"wanted"`
	}
	// Reduced: the command of which it was a part has changed.
	Reduced struct{}
)

func (NotOurs) Code() string           { return "NotOurs" }
func (Deleting) Code() string          { return "Deleting" }
func (Gone) Code() string              { return "Gone" }
func (NotDue) Code() string            { return "NotDue" }
func (NotMarked) Code() string         { return "NotMarked" }
func (NotLookedAt) Code() string       { return "NotLookedAt" }
func (NotInitialized) Code() string    { return "NotInitialized" }
func (Promised) Code() string          { return "Promised" }
func (ProtectedNode) Code() string     { return "ProtectedNode" }
func (ProtectedPod) Code() string      { return "ProtectedPod" }
func (BudgetSpent) Code() string       { return "BudgetSpent" }
func (TwoBudgets) Code() string        { return "TwoBudgets" }
func (Busy) Code() string              { return "Busy" }
func (NoOtherPlace) Code() string      { return "NoOtherPlace" }
func (WaitsFor) Code() string          { return "WaitsFor" }
func (PoolBudget) Code() string        { return "PoolBudget" }
func (NoPrice) Code() string           { return "NoPrice" }
func (NotCheaper) Code() string        { return "NotCheaper" }
func (SeveralNeeded) Code() string     { return "SeveralNeeded" }
func (SpotStays) Code() string         { return "SpotStays" }
func (FewSpotTypes) Code() string      { return "FewSpotTypes" }
func (RulesKeep) Code() string         { return "RulesKeep" }
func (ReplacementsFail) Code() string  { return "ReplacementsFail" }
func (Unbalanced) Code() string        { return "Unbalanced" }
func (PoolKeeps) Code() string         { return "PoolKeeps" }
func (NotQuiet) Code() string          { return "NotQuiet" }
func (JustMoved) Code() string         { return "JustMoved" }
func (Reduced) Code() string           { return "Reduced" }
func (RoomTaken) Code() string         { return "RoomTaken" }
func (NotCarriedOut) Code() string     { return "NotCarriedOut" }
func (Unreadable) Code() string        { return "Unreadable" }
func (ReplacementFailed) Code() string { return "ReplacementFailed" }
func (ReplacementsLate) Code() string  { return "ReplacementsLate" }

func (NotOurs) String() string     { return "no pool here owns it" }
func (Deleting) String() string    { return "it is being removed already" }
func (Gone) String() string        { return "it does not exist any more" }
func (NotDue) String() string      { return "it is in use again, or no longer due" }
func (NotMarked) String() string   { return "its mark was taken back" }
func (NotLookedAt) String() string { return "not looked at in this round; it is the next one's turn" }
func (NotInitialized) String() string {
	return "it is not initialized yet"
}
func (r Promised) String() string {
	if r.Pod.Name == "" {
		return "pods are expected on it"
	}
	return fmt.Sprintf("pod %s is expected on it", r.Pod)
}
func (r ProtectedNode) String() string {
	return fmt.Sprintf("the node has the annotation %s", r.Annotation)
}
func (r ProtectedPod) String() string {
	until := ""
	if r.Until != nil {
		until = " until " + r.Until.UTC().Format("2006-01-02 15:04 MST")
	}
	return fmt.Sprintf("pod %s has an annotation that forbids its eviction%s", r.Pod, until)
}
func (r BudgetSpent) String() string {
	if r.Never {
		return fmt.Sprintf("PodDisruptionBudget %s never allows an eviction of pod %s", r.Budget, r.Pod)
	}
	return fmt.Sprintf("PodDisruptionBudget %s allows no eviction of pod %s now", r.Budget, r.Pod)
}
func (r TwoBudgets) String() string {
	return fmt.Sprintf("pod %s has two PodDisruptionBudgets, %s and %s; such a pod cannot be evicted, so remove one of them",
		r.Pod, r.Budgets[0], r.Budgets[1])
}
func (r Busy) String() string {
	return fmt.Sprintf("%s of the same pool is being replaced; one at a time", r.Other)
}
func (r NoOtherPlace) String() string {
	words := make([]string, 0, len(r.Reasons))
	for _, w := range r.Reasons {
		words = append(words, w.String())
	}
	return fmt.Sprintf("pod %s has no other place: %s", r.Pod, strings.Join(words, "; "))
}
func (r WaitsFor) String() string {
	return fmt.Sprintf("pod %s would go to %s, which is not up yet", r.Pod, r.Node)
}

func (r PoolBudget) String() string {
	until := ""
	if r.Ends != nil {
		until = " until " + r.Ends.UTC().Format("2006-01-02 15:04 MST")
	}
	return fmt.Sprintf("the disruption budget %s of pool %q lets %d machines go%s, and %d are going or not ready", r.Nodes, r.Pool, r.Allowed, until, r.Going)
}
func (NoPrice) String() string { return "its own price is not known" }
func (r NotCheaper) String() string {
	return fmt.Sprintf("its pods need a machine, and none costs less than %s", r.Price)
}
func (r SeveralNeeded) String() string {
	return fmt.Sprintf("its pods need %d new machines", r.Machines)
}
func (r SpotStays) String() string {
	return fmt.Sprintf("a spot machine is not replaced by another (%d cheaper spot types would hold its pods)", r.Types)
}
func (r FewSpotTypes) String() string {
	return fmt.Sprintf("too few cheaper spot types are left to choose from: %d of %d", r.Types, r.Least)
}
func (r RulesKeep) String() string {
	rules := "the rules of other pods"
	if len(r.Rules) > 0 {
		rules = "its " + strings.Join(r.Rules, ", ")
	}
	return fmt.Sprintf("there would be room for pod %s elsewhere but for %s", r.Pod, rules)
}
func (r ReplacementsFail) String() string {
	return fmt.Sprintf("replacements of machines of pool %q do not come up (%d times in a row, last because %s); it is tried again at %s",
		r.Pool, r.Times, r.Why, r.Again.UTC().Format("2006-01-02 15:04 MST"))
}
func (r Unbalanced) String() string {
	return fmt.Sprintf("the best move found saves %s and disturbs %.1f, a score of %.2f; the balanced pool %q asks for %.2f", r.Saves, r.Disturbs, r.Score, r.Pool, line)
}
func (r PoolKeeps) String() string {
	return fmt.Sprintf("it is in use, and pool %q does not remove such machines to save money", r.Pool)
}
func (r NotQuiet) String() string {
	return "pods came or went a short while ago; it is looked at again from " + r.Until.UTC().Format("2006-01-02 15:04:05 MST") + " on"
}
func (r JustMoved) String() string {
	return fmt.Sprintf("pod %s was moved to save money a short while ago, and is left alone until %s", r.Pod, r.Until.UTC().Format("2006-01-02 15:04 MST"))
}
func (Reduced) String() string { return "the command of which it was a part has changed" }

func (r RoomTaken) String() string {
	return fmt.Sprintf("there is no room any more for pod %s, for which a machine was bought", r.Pod)
}
func (NotCarriedOut) String() string { return "the command was not carried out" }
func (r Unreadable) String() string {
	return "what was written down about the command cannot be read: " + r.Problem
}
func (ReplacementFailed) String() string { return "a replacement failed" }
func (r ReplacementsLate) String() string {
	return fmt.Sprintf("the replacements were not ready in time (%d of %d)", r.Ready, r.Wanted)
}

// MarshalJSON writes the reason as code and text.
func (k Kept) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Node   string        `json:"node"`
		Method string        `json:"method"`
		Code   string        `json:"code"`
		Text   string        `json:"text"`
		About  reason.Reason `json:"about,omitempty"`
	}{k.Node, k.Method, k.Reason.Code(), k.Reason.String(), k.Reason})
}
