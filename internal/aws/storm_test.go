package aws_test

import (
	"container/heap"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"karpenter/internal/cloud"
	"karpenter/internal/core/label"
	"karpenter/internal/core/lifecycle"
	"karpenter/internal/core/world"
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
// machine. Where no two want the same it takes little more than one call each,
// and little more than the time that the limit asks for; where they want the
// same, a few calls and seconds.
func TestThousandClaimsUnderThrottling(t *testing.T) {
	claims := 1000
	if testing.Short() {
		claims = 100
	}
	t.Run("all different", func(t *testing.T) {
		took, calls := storm(t, claims, unlike)
		least, limit := 2*claims, time.Duration(claims-5)/5*time.Second
		if calls > 3*least/2 {
			t.Errorf("%d calls, want less than %d", calls, 3*least/2)
		}
		if took > limit*5/4 {
			t.Errorf("it took %s, the limit asks for %s", took, limit)
		}
	})
	t.Run("longer than a launch may take", func(t *testing.T) {
		if testing.Short() {
			t.Skip("takes a while")
		}
		took, _ := storm(t, 1800, unlike) // whoever is given up is an error
		if limit := lifecycle.DefaultLimits().Launch; took <= limit {
			t.Errorf("it took %s: nobody waited longer than %s", took, limit)
		}
	})
	t.Run("all alike", func(t *testing.T) {
		took, calls := storm(t, claims, func(int, *cloud.LaunchRequest) {})
		if most := claims/20 + 50; calls > most || took > time.Minute {
			t.Errorf("%d calls in %s, want less than %d in a minute", calls, took, most)
		}
	})
}

// unlike makes the n-th request ask for other machines than all others: every one
// for another set of sizes or zones.
func unlike(n int, req *cloud.LaunchRequest) {
	pick := func(bits int, from ...string) (out []string) {
		for i, one := range from {
			if bits>>i&1 == 1 {
				out = append(out, one)
			}
		}
		return out
	}
	zones, sizes := n%15+1, n/15+1
	req.Requirements[1] = in("karpenter.k8s.aws/instance-size", pick(sizes, "xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge", "24xlarge")...)
	req.Requirements = append(req.Requirements, in(label.Zone, pick(zones, "us-west-2a", "us-west-2b", "us-west-2c", "us-west-2d")...))
}

// storm launches for so many NodeClaims at once and returns how long that took
// and how many calls it cost.
func storm(t *testing.T, claims int, change func(n int, req *cloud.LaunchRequest)) (took time.Duration, total int) {
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
	held := map[int]time.Time{}
	givenUp := 0
	machines := map[string]bool{}
	for len(todo) > 0 {
		v := heap.Pop(&todo).(visit)
		if wait := v.at.Sub(r.clock.Now()); wait > 0 {
			r.clock.pass(wait)
		}
		token := fmt.Sprintf("t%d", v.claim)
		record := lifecycle.Input{Now: r.clock.Now(), Limits: lifecycle.DefaultLimits(), HeldBack: held[v.claim], Record: world.Record{Created: start}}
		if lifecycle.Next(record).Delete != "" {
			givenUp++
			continue
		}
		if prepared[v.claim] == "" {
			req := request(token)
			change(v.claim, &req)
			prepared[v.claim] = r.prepare(req)
		}
		i, err := r.Launch(t.Context(), token, prepared[v.claim])
		var rewritten *cloud.RewrittenError
		if errors.As(err, &rewritten) {
			prepared[v.claim] = rewritten.Prepared
			i, err = r.Launch(t.Context(), token, prepared[v.claim])
		}
		var slow *cloud.ThrottledError
		switch {
		case errors.As(err, &slow):
			if slow.After <= 0 {
				t.Fatalf("nobody says when to come back: %v", err)
			}
			held[v.claim] = r.clock.Now().Add(slow.After)
			later(v.claim, slow.After)
		case err != nil:
			t.Fatal(err)
		default:
			machines[i.ID] = true
		}
	}
	took = r.clock.Now().Sub(start)
	counts := r.sim.CallCounts()
	for _, n := range counts {
		total += n
	}
	t.Logf("%d machines in %s; %d calls: %v", len(machines), took, total, counts)
	if len(machines) != claims || r.running() != claims {
		t.Errorf("%d machines, %d running, %d given up; want %d", len(machines), r.running(), givenUp, claims)
	}
	return took, total
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
