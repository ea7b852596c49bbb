package planner

import (
	"context"
	"testing"
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
