package planner

import (
	"context"
	"slices"
	"testing"
	"time"

	"karpenter/internal/journal"
)

// TestLookSaysWhichPoolsRest: what people are told is what is planned with.
func TestLookSaysWhichPoolsRest(t *testing.T) {
	r := newRig(t, provisioner())
	for _, why := range []string{"", "it rests"} {
		r.braked = map[poolName]string{{"Provisioner", "test"}: why}
		s, err := r.Look(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Pools) != 1 || s.Pools[0].NotReady != why {
			t.Errorf("%q became %+v", why, s.Pools)
		}
	}
}

// TestThePodThatWaitsIsInTheJournal: once, as long as the reason is the same.
func TestThePodThatWaitsIsInTheJournal(t *testing.T) {
	p := pending("huge", "1000")
	r := newRig(t, provisioner(), p)
	r.Notice(nil, p)
	r.pass(2 * time.Second)
	r.pass(30 * time.Second)
	found := 0
	for _, e := range r.Journal.Entries() {
		if e.Kind == journal.Provision && len(e.Alternatives) == 1 && slices.Contains(e.Pods, "default/huge") {
			found++
		}
	}
	if found != 1 {
		t.Errorf("%d entries about it: %+v", found, r.Journal.Entries())
	}
}
