package aws_test

import (
	"container/heap"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"karpenter/internal/cloud"
	"karpenter/sim/ec2"
)

// visit is when a claim is looked at again.
type visit struct {
	at time.Time
	// seq keeps visits of one moment in order.
	seq, claim int
}

type agenda []visit

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at.Before(a[j].at) || a[i].at.Equal(a[j].at) && a[i].seq < a[j].seq
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(v any)   { *a = append(*a, v.(visit)) }
func (a *agenda) Pop() any {
	old := *a
	v := old[len(old)-1]
	*a = old[:len(old)-1]
	return v
}

// TestThousandClaimsUnderThrottling: a thousand NodeClaims at once, where EC2
// takes five CreateFleet calls a second and twenty Describe calls. All get their
// machine, in little more than the time that the limit asks for, with little
// more than one call each.
func TestThousandClaimsUnderThrottling(t *testing.T) {
	claims := 1000
	if testing.Short() {
		claims = 100
	}
	r := newRig(t, ec2.Options{Limits: map[string]ec2.Limit{
		"CreateFleet": {PerSecond: 5, Burst: 5}, "Describe*": {PerSecond: 20, Burst: 20},
	}})
	start := r.clock.Now()
	var todo agenda
	seq := 0
	later := func(claim int, wait time.Duration) {
		seq++
		heap.Push(&todo, visit{r.clock.Now().Add(wait), seq, claim})
	}
	for n := range claims {
		later(n, 0)
	}
	prepared := map[int]cloud.Prepared{}
	machines := map[string]bool{}
	for len(todo) > 0 {
		v := heap.Pop(&todo).(visit)
		if wait := v.at.Sub(r.clock.Now()); wait > 0 {
			r.clock.pass(wait)
		}
		token := fmt.Sprintf("t%d", v.claim)
		if prepared[v.claim] == "" {
			prepared[v.claim] = r.prepare(request(token))
		}
		i, err := r.Launch(t.Context(), token, prepared[v.claim])
		var slow *cloud.ThrottledError
		switch {
		case errors.As(err, &slow):
			if slow.After <= 0 {
				t.Fatalf("nobody says when to come back: %v", err)
			}
			later(v.claim, slow.After)
		case err != nil:
			t.Fatal(err)
		default:
			machines[i.ID] = true
		}
	}
	took, total := r.clock.Now().Sub(start), 0
	counts := r.sim.CallCounts()
	for _, n := range counts {
		total += n
	}
	// One to launch and one to look at each, less a burst; what is asked once
	// for all does not count.
	least, limit := 2*claims, time.Duration(claims-5)/5*time.Second
	t.Logf("%d machines in %s (the limit alone: %s); %d calls, the least is %d: %v", len(machines), took, limit, total, least, counts)
	if len(machines) != claims || r.running() != claims {
		t.Errorf("%d machines, %d running; want %d", len(machines), r.running(), claims)
	}
	if total > 3*least/2 {
		t.Errorf("%d calls, want less than %d", total, 3*least/2)
	}
	if took > limit*5/4 {
		t.Errorf("it took %s, the limit asks for %s", took, limit)
	}
}

// TestCallsOfOneMomentGoTogether: hundreds who look at their machines, and end
// them, cost a few calls.
func TestCallsOfOneMomentGoTogether(t *testing.T) {
	const machines = 300
	r := newRig(t, ec2.Options{})
	var ids []string
	for n := range machines {
		token := fmt.Sprintf("t%d", n)
		ids = append(ids, r.launch(token, r.prepare(request(token))).ID)
	}
	r.clock.pass(time.Minute)
	all := func(what string, do func(n int) error) map[string]int {
		t.Helper()
		before := r.sim.CallCounts()
		var wait sync.WaitGroup
		for n := range machines {
			wait.Go(func() {
				if err := do(n); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			})
		}
		wait.Wait()
		calls := r.sim.CallCounts()
		for name, n := range before {
			if calls[name] -= n; calls[name] == 0 {
				delete(calls, name)
			}
		}
		t.Logf("%s: %v", what, calls)
		return calls
	}
	var missing *cloud.NotFoundError
	calls := all("describe", func(n int) error {
		i, err := r.Describe(t.Context(), ids[n])
		if err == nil && i.ID != ids[n] {
			err = fmt.Errorf("asked for %s, got %s", ids[n], i.ID)
		}
		return err
	})
	if calls["DescribeInstances"] > machines/10 {
		t.Errorf("describe: %v", calls)
	}
	calls = all("find", func(n int) error {
		if n%10 == 0 {
			if _, err := r.Find(t.Context(), "nobody"); !errors.As(err, &missing) {
				return fmt.Errorf("an unknown token: %w", err)
			}
		}
		i, err := r.Find(t.Context(), fmt.Sprintf("t%d", n))
		if err == nil && i.ID != ids[n] {
			err = fmt.Errorf("asked for %s, got %s", ids[n], i.ID)
		}
		return err
	})
	if calls["DescribeInstances"] > machines/10 {
		t.Errorf("find: %v", calls)
	}
	calls = all("terminate", func(n int) error { return r.Terminate(t.Context(), ids[n]) })
	if calls["TerminateInstances"] > machines/5 || r.running() != 0 {
		t.Errorf("terminate: %v, %d still run", calls, r.running())
	}
}

// TestOneBadIDDoesNotKeepOthersAlive: EC2 refuses the whole call.
func TestOneBadIDDoesNotKeepOthersAlive(t *testing.T) {
	r := newRig(t, ec2.Options{})
	var ids []string
	for n := range 20 {
		token := fmt.Sprintf("t%d", n)
		ids = append(ids, r.launch(token, r.prepare(request(token))).ID)
	}
	r.fault(ec2.Fault{On: "TerminateInstances", Error: "OperationNotPermitted", Times: 3})
	var wait sync.WaitGroup
	failed := make([]error, len(ids))
	for n, id := range ids {
		wait.Go(func() { failed[n] = r.Terminate(t.Context(), id) })
	}
	wait.Wait()
	refused := 0
	for _, err := range failed {
		if err != nil {
			refused++
		}
	}
	if r.running() != refused || refused > 3 {
		t.Errorf("%d machines run, %d were refused; want each to be ended by itself where all of them cannot be", r.running(), refused)
	}
}
