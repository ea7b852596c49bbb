// Package week runs a cluster with a load that goes up by day and down at night
// and at weekends, and holds what consolidation makes of it against two rules:
// it does not oscillate, and it costs little more than a cluster that is bought
// anew each hour.
//
// It imports the scenarios and who plays them. What always holds: the same
// variant gives the same figures.
package week

import (
	"embed"
	"fmt"
	"time"

	"karpenter/internal/scenario"
	"karpenter/internal/scenario/cases"
	"karpenter/sim/rig/play"
	"karpenter/sim/rig/record"
)

//go:embed *.yaml
var files embed.FS

// Variant is which kind of pool buys the machines.
type Variant string

// The variants.
const (
	Provisioner Variant = "provisioner"
	NodePool    Variant = "nodepool"
)

// Limits of the rules.
const (
	// Dearest is what may be paid in an hour for each dollar that Solve would pay
	// for the same pods on an empty cluster.
	Dearest = 1.10
	// Rest is how long a pod stays where it was moved to, unless its machine
	// cannot.
	Rest = time.Hour
)

// Scenario is the week of a variant, for a share of its pods and of its time.
func Scenario(v Variant, pods float64, length time.Duration) (*cases.Scenario, error) {
	var docs []scenario.Document
	for _, name := range []string{"week.yaml", string(v) + ".yaml"} {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("variant %q: %w", v, err)
		}
		docs = append(docs, scenario.Split(name, text)...)
	}
	s, err := cases.ReadScenario(docs)
	if err != nil {
		return nil, err
	}
	return s, s.Shrink(pods, length)
}

// Run plays it, and returns the rules that were broken.
func Run(s *cases.Scenario, progress func(time.Duration)) (*record.Report, []string, error) {
	r, err := play.Simulate(s, progress)
	if err != nil {
		return nil, nil, err
	}
	return r, Broken(r), nil
}

// Broken says which rules a record breaks, and where.
func Broken(r *record.Report) (out []string) {
	for i := range r.Hours {
		h := &r.Hours[i]
		if ratio, ok := h.Ratio(min(time.Hour, r.End.Sub(h.Start))); ok && ratio > Dearest {
			out = append(out, fmt.Sprintf("the hour from %s costs %.3f times what the same pods would cost on an empty cluster, more than %.2f", h.Start.UTC().Format("Mon 15:04"), ratio, Dearest))
		}
	}
	for _, d := range r.Again(Rest) {
		out = append(out, fmt.Sprintf("%s: %s is moved from %s by %s, %s after it was moved there", d.At.UTC().Format("Mon 15:04:05"), d.Pod, d.Node, d.Reason, d.Before))
	}
	return out
}
