package aws_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"karpenter/internal/aws"
	"karpenter/internal/aws/launch"
	"karpenter/internal/cloud"
	"karpenter/sim/ec2"
)

// throttled is a rig in which EC2 has refused so many CreateFleet calls that some
// seconds pass between two.
func throttled(t *testing.T) *rig {
	r := newRig(t, ec2.Options{})
	r.fault(ec2.Fault{On: "CreateFleet", Error: "RequestLimitExceeded"})
	prepared := r.prepare(request("first"))
	var slow *cloud.ThrottledError
	for wait := time.Duration(0); wait < 3*time.Second; wait = slow.After {
		r.clock.pass(wait)
		if _, err := r.Launch(t.Context(), "first", prepared); !errors.As(err, &slow) {
			t.Fatalf("err = %v, want a ThrottledError", err)
		}
	}
	r.sim.Heal()
	return r
}

// gather lets launches wait until they have become one request, and returns what
// each of them has to write down.
func gather(r *rig, tokens ...string) map[string]cloud.Prepared {
	r.t.Helper()
	prepared := map[string]cloud.Prepared{}
	for _, token := range tokens {
		prepared[token] = r.prepare(request(token))
	}
	for range 2 {
		for _, token := range tokens {
			_, err := r.Launch(r.t.Context(), token, prepared[token])
			var rewritten *cloud.RewrittenError
			var slow *cloud.ThrottledError
			switch {
			case errors.As(err, &rewritten):
				prepared[token] = rewritten.Prepared
			case !errors.As(err, &slow):
				r.t.Fatalf("%s: %v, want a ThrottledError or a RewrittenError", token, err)
			}
		}
		r.clock.pass(time.Second)
	}
	for token, p := range prepared {
		o, err := launch.Decode(p)
		if err != nil || o.Together == nil || len(o.Together.Members) != len(tokens) {
			r.t.Fatalf("%s was not gathered: %+v, %v", token, o.Together, err)
		}
	}
	return prepared
}

// serve launches until nobody has to wait any more.
func serve(r *rig, p *aws.Provider, prepared map[string]cloud.Prepared) (map[string]cloud.Instance, map[string]error) {
	r.t.Helper()
	got, failed := map[string]cloud.Instance{}, map[string]error{}
	for round := 0; len(got)+len(failed) < len(prepared); round++ {
		if round > 60 {
			r.t.Fatalf("after a minute %d have a machine and %d none", len(got), len(failed))
		}
		for token, order := range prepared {
			if _, served := got[token]; served || failed[token] != nil {
				continue
			}
			i, err := p.Launch(r.t.Context(), token, order)
			var slow *cloud.ThrottledError
			switch {
			case errors.As(err, &slow):
			case err != nil:
				failed[token] = err
			default:
				got[token] = i
			}
		}
		r.clock.pass(time.Second)
	}
	return got, failed
}

func distinct(machines map[string]cloud.Instance) int {
	ids := map[string]bool{}
	for _, i := range machines {
		ids[i.ID] = true
	}
	return len(ids)
}

func TestThreeWhoWantTheSameGoTogether(t *testing.T) {
	r := throttled(t)
	before := r.sim.CallCounts()["CreateFleet"]
	got, failed := serve(r, r.Provider, gather(r, "a", "b", "c"))
	if len(got) != 3 || distinct(got) != 3 || len(failed) != 0 || r.running() != 3 {
		t.Fatalf("machines %v, errors %v, %d run", got, failed, r.running())
	}
	if n := r.sim.CallCounts()["CreateFleet"] - before; n != 1 {
		t.Errorf("%d calls for three machines", n)
	}
	for token, i := range got {
		if i.Type != "m6a.xlarge" || i.Allocatable.MilliCPU == 0 || i.Tags[launch.TogetherTag] == "" || i.Token != "" {
			t.Errorf("%s: %+v", token, i)
		}
	}
	list, err := r.List(t.Context())
	if err != nil || len(list) != 3 {
		t.Errorf("%d of 3 machines are listed as ours, %v", len(list), err)
	}
}

func TestTwoMachinesForThree(t *testing.T) {
	r := throttled(t)
	r.fault(ec2.Fault{On: "create", Error: "InsufficientInstanceCapacity", Skip: 2})
	got, failed := serve(r, r.Provider, gather(r, "a", "b", "c"))
	if distinct(got) != 2 || len(failed) != 1 || r.running() != 2 {
		t.Fatalf("machines %v, errors %v, %d run", got, failed, r.running())
	}
	for token, err := range failed {
		var none *cloud.NoCapacityError
		if !errors.As(err, &none) || token != "c" {
			t.Errorf("%s: %v, want the last to get a NoCapacityError", token, err)
		}
	}
}

// TestTogetherAfterACrash: whatever another process has done, who is part of a
// request gets the same machine.
func TestTogetherAfterACrash(t *testing.T) {
	r := throttled(t)
	prepared := gather(r, "a", "b", "c")
	first, _ := serve(r, r.Provider, prepared)
	restarted := aws.New(aws.Config{API: r.API, Classes: r.classes, Settings: r.Settings, Now: r.clock.Now})
	second, failed := serve(r, restarted, prepared)
	if len(second) != 3 || len(failed) != 0 || r.running() != 3 {
		t.Fatalf("machines %v, errors %v, %d run", second, failed, r.running())
	}
	for token, i := range first {
		if second[token].ID != i.ID {
			t.Errorf("%s got %s, and %s after the crash", token, i.ID, second[token].ID)
		}
	}
}

// TestWhoNeverWritesItDownDoesNotStopTheOthers.
func TestWhoNeverWritesItDownDoesNotStopTheOthers(t *testing.T) {
	r := throttled(t)
	prepared := gather(r, "a", "b", "c")
	delete(prepared, "b") // its claim was deleted
	start := r.clock.Now()
	got, failed := serve(r, r.Provider, prepared)
	if distinct(got) != 2 || len(failed) != 0 {
		t.Fatalf("machines %v, errors %v", got, failed)
	}
	if took := r.clock.Now().Sub(start); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
	if _, err := r.Launch(t.Context(), "stranger", prepared["a"]); err == nil || !strings.Contains(err.Error(), "not among them") {
		t.Errorf("a stranger got a machine: %v", err)
	}
}

// TestWhoIsAloneGoesAlone: other wishes, and machines of no pool, which only their
// own tags tell to be ours.
func TestWhoIsAloneGoesAlone(t *testing.T) {
	for name, change := range map[string]func(n int, req *cloud.LaunchRequest){
		"other wishes": func(n int, req *cloud.LaunchRequest) { req.Labels = map[string]string{"n": fmt.Sprint(n)} },
		"no pool":      func(_ int, req *cloud.LaunchRequest) { req.Pool = "" },
	} {
		t.Run(name, func(t *testing.T) {
			r := throttled(t)
			prepared := map[string]cloud.Prepared{}
			for n := range 3 {
				req := request(fmt.Sprint("t", n))
				change(n, &req)
				prepared[req.Token] = r.prepare(req)
			}
			got, failed := serve(r, r.Provider, prepared)
			if distinct(got) != 3 || len(failed) != 0 {
				t.Fatalf("machines %v, errors %v", got, failed)
			}
			for token, i := range got {
				if i.Token != token {
					t.Errorf("%s got the machine of %q", token, i.Token)
				}
			}
		})
	}
}
