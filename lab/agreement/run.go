// Package agreement holds plans against the real kube-scheduler.
//
// A seed makes a random cluster of API objects. It goes the way of the
// controller, through convert and mirror into a snapshot, and is planned; the
// plan is applied to a cluster in memory, and the code of kube-scheduler and of
// the DaemonSet controller, in their default configuration, judges:
//
//   - legal: every pod passes the filters on the node planned for it;
//   - complete: no pod is left pending that some node, existing, planned or to
//     be bought, would take;
//   - comes true: the freely running scheduler binds every planned pod, and no
//     machine was bought in vain.
//
// What belongs to one constraint is one generate_*.go file and one line in the
// lists of generate.go; the judges know no constraint. The package may import
// everything.
package agreement

import (
	"fmt"
	"sync"
	"sync/atomic"

	"karpenter/internal/core/quantity"
)

// Options say what to run.
type Options struct {
	// Cases is the number of clusters, Seed that of the first.
	Cases int
	Seed  uint64
	// Stories is how many of them are also handed to the freely running
	// scheduler, spread evenly.
	Stories int
	Workers int
	// Solve is the planner; nil means that of the controller.
	Solve Planner
	// Progress, if set, is called now and then, by one goroutine at a time.
	Progress func(done int, r *Report)
	// MaxFound ends the run once as many disagreements are found; 0: never.
	MaxFound int
}

// Report is what came of a run.
type Report struct {
	Cases         int `json:"cases"`
	Disagreements int `json:"disagreements"`
	// WithoutNominationRebuy is the share of stories in which pods that are not
	// nominated leave one of them without a node, so that more must be bought.
	WithoutNominationRebuy float64 `json:"withoutNominationRebuy"`

	Stories int `json:"stories"`
	// Pods that were pending, and of those the ones that the plans left so.
	Pods     int `json:"pods"`
	Left     int `json:"left"`
	Machines int `json:"machines"`
	// Together, Staggered: shares of the stories in which all pods have the same
	// priority, as machines join together or minutes apart; Mixed: of those with
	// different priorities.
	Together       Shares `json:"together"`
	Staggered      Shares `json:"staggered"`
	MixedStories   int    `json:"mixedStories"`
	MixedTogether  Shares `json:"mixedTogether"`
	MixedStaggered Shares `json:"mixedStaggered"`
	// Rules counts disagreements by property and rule.
	Rules map[string]int `json:"rules,omitempty"`
	Found []Found        `json:"-"`
}

// Shares of stories in which something happens that was not planned.
type Shares struct {
	// Rebuy: a planned pod has no node. Empty: a machine has no pod.
	Rebuy                  float64 `json:"rebuy"`
	Empty                  float64 `json:"empty"`
	WithoutNominationRebuy float64 `json:"withoutNominationRebuy"`
	WithoutNominationEmpty float64 `json:"withoutNominationEmpty"`
	// Cost of what must be bought again, as a part of the price of all plans.
	Cost                  float64 `json:"cost"`
	WithoutNominationCost float64 `json:"withoutNominationCost"`
}

// Found is a cluster on which plan and Kubernetes do not agree.
type Found struct {
	Seed  uint64
	Story bool
	Disagreement
}

// Run judges many clusters. An error is a fault of this package.
func Run(o Options) (*Report, error) {
	if o.Solve == nil {
		o.Solve = Solve
	}
	r := &Report{Rules: map[string]int{}}
	var (
		mu     sync.Mutex
		wait   sync.WaitGroup
		next   atomic.Int64
		failed error
		tally  tallies
	)
	work := func() {
		defer wait.Done()
		j, err := NewJudge()
		if err == nil {
			defer j.Close()
		}
		for {
			i := int(next.Add(1)) - 1
			if i >= o.Cases {
				return
			}
			seed := o.Seed + uint64(i)
			var c Case
			story := tellsStory(i, o.Cases, o.Stories)
			if err == nil {
				c, err = Check(j, Generate(seed), o.Solve, seed, story)
			}
			mu.Lock()
			if err != nil && failed == nil {
				failed = fmt.Errorf("seed %d: %w", seed, err)
			}
			r.count(c, Found{Seed: seed, Story: story}, &tally)
			stop := failed != nil || o.MaxFound > 0 && len(r.Found) >= o.MaxFound
			if o.Progress != nil && (r.Cases%500 == 0 || c.Disagreement != nil) {
				o.Progress(r.Cases, r)
			}
			mu.Unlock()
			if stop {
				return
			}
		}
	}
	for range max(1, o.Workers) {
		wait.Add(1)
		go work()
	}
	wait.Wait()
	r.shares(tally)
	return r, failed
}

// tellsStory spreads n stories over the cases.
func tellsStory(i, cases, n int) bool {
	return n >= cases || i*n/cases != (i+1)*n/cases
}

// outcome counts the stories of one telling.
type outcome struct {
	rebuy, empty int
	cost         quantity.Price
}

// tallies are the outcomes of all tellings, of stories with equal priorities and
// of those with different ones.
type tallies [2]struct {
	stories int
	price   quantity.Price // of the plans
	of      [len(tellings)]outcome
}

func (r *Report) count(c Case, f Found, tally *tallies) {
	r.Cases++
	r.Pods += c.Planned + c.Left
	r.Left += c.Left
	r.Machines += c.Machines
	if c.Disagreement != nil {
		f.Disagreement = *c.Disagreement
		r.Disagreements++
		r.Rules[f.Property+"/"+f.Rule]++
		r.Found = append(r.Found, f)
	}
	if c.Endings == nil {
		return
	}
	r.Stories++
	to := &tally[0]
	if c.Mixed {
		to = &tally[1]
	}
	to.stories++
	to.price += c.Price
	for i, e := range c.Endings {
		if len(e.homeless) > 0 {
			to.of[i].rebuy++
		}
		if len(e.empty) > 0 {
			to.of[i].empty++
		}
		to.of[i].cost += e.rebuy
	}
}

func (r *Report) shares(tally tallies) {
	of := func(mixed, with, without int) Shares {
		t := tally[mixed]
		share := func(n int) float64 { return float64(n) / float64(max(1, t.stories)) }
		cost := func(p quantity.Price) float64 { return float64(p) / float64(max(1, t.price)) }
		a, b := t.of[with], t.of[without]
		return Shares{share(a.rebuy), share(a.empty), share(b.rebuy), share(b.empty), cost(a.cost), cost(b.cost)}
	}
	r.Together, r.Staggered = of(0, 0, 1), of(0, 2, 3)
	r.MixedStories, r.MixedTogether, r.MixedStaggered = tally[1].stories, of(1, 0, 1), of(1, 2, 3)
	r.WithoutNominationRebuy = r.Together.WithoutNominationRebuy
}
