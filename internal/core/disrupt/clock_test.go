package disrupt

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"karpenter/internal/core/world"
)

// Until the moment that it names, the same snapshot gives the same decision.
func TestADecisionHoldsUntilTheMomentThatItNames(t *testing.T) {
	changed, never := 0, 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s := restless(rng)
		now := t0
		for range 12 {
			d := Decide(s, now, Options{WhatIfs: 100})
			if d.Until.IsZero() {
				never++
				now = now.Add(24 * time.Hour)
			} else if !d.Until.After(now) {
				t.Fatalf("seed %d: at %s the answer is good until %s", seed, now, d.Until)
			}
			for range 3 {
				at := now.Add(time.Duration(rng.Int64N(int64(24 * time.Hour))))
				if !d.Until.IsZero() {
					at = now.Add(time.Duration(rng.Int64N(int64(d.Until.Sub(now)))))
				}
				again := Decide(s, at, Options{WhatIfs: 100})
				again.Until = d.Until
				if !reflect.DeepEqual(d, again) {
					t.Fatalf("seed %d: an answer of %s, good until %s, is another one at %s:\n%+v\n%+v", seed, now, d.Until, at, d, again)
				}
			}
			if d.Until.IsZero() {
				break
			}
			now = d.Until
			if next := Decide(s, now, Options{WhatIfs: 100}); len(next.Commands) != len(d.Commands) || len(next.Kept) != len(d.Kept) {
				changed++
			}
		}
	}
	if changed < 400 || never < 100 {
		t.Errorf("the worlds say little: %d answers changed when they could, %d were good for ever", changed, never)
	}
}

// restless is a world in which something becomes due, or lapses, all the time.
func restless(rng *rand.Rand) *world.Snapshot {
	soon := func() time.Time { return t0.Add(time.Duration(rng.IntN(7200)-3600) * time.Second) }
	maybe := func() *time.Time {
		if rng.IntN(2) == 0 {
			return nil
		}
		at := soon()
		return &at
	}
	var nodes []world.Node
	for i := range 1 + rng.IntN(5) {
		var pods []world.Pod
		for k := range rng.IntN(3) {
			pods = append(pods, pod(fmt.Sprintf("p-%d-%d", i, k), int64(200+rng.IntN(1500)), func(p *world.Pod) {
				p.MovedAt, p.DoNotEvictUntil = maybe(), maybe()
			}))
		}
		nodes = append(nodes, node(fmt.Sprintf("n-%d", i), func(n *world.Node) {
			n.Created, n.NominatedUntil, n.PodEvent, n.EmptySince, n.DriftedSince = soon(), maybe(), maybe(), maybe(), maybe()
			n.Unused = rng.IntN(3) == 0
			if n.DriftedSince != nil && rng.IntN(3) == 0 {
				n.Drifted = "image"
			}
			if rng.IntN(6) == 0 {
				n.Failures = world.Failures{Count: 1 + rng.IntN(3), Last: soon()}
			}
		}, pods...))
	}
	return cluster(func(p *world.Pool) {
		p.Consolidate = rng.IntN(2) == 0
		if rng.IntN(2) == 0 {
			p.ExpireAfter = nil
		}
		if rng.IntN(2) == 0 {
			p.Disruption.QuietFor = &world.Duration{Duration: time.Duration(rng.IntN(600)) * time.Second}
		}
	}, nodes...)
}

// Where more machines are due than may be looked at, the next look is at others.
func TestADecisionInTurnDoesNotHold(t *testing.T) {
	var nodes []world.Node
	for i := range 4 {
		nodes = append(nodes, node(fmt.Sprint("n-", i), nil, pod(fmt.Sprint("p-", i), 3000, nil)))
	}
	now := t0.Add(2 * time.Hour)
	s := cluster(nil, nodes...)
	if d := Decide(s, now, Options{WhatIfs: 2}); d.Until.After(now) {
		t.Errorf("got %s", d.Until)
	}
	if d := Decide(s, now, Options{WhatIfs: 100}); !d.Until.IsZero() {
		t.Errorf("got %s", d.Until)
	}
}
