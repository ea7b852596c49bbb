package direct_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"karpenter/internal/aws/class"
	"karpenter/internal/aws/launch"
	"karpenter/internal/cloud"
	"karpenter/internal/core/label"
	"karpenter/sim/ec2"
	"karpenter/sim/ec2/direct"
)

// That every method answers as awsapi does is tested there.

// region is a simulation on a clock that stands until it is moved.
func region(t testing.TB, opt ec2.Options) (*direct.API, *ec2.Cloud, *time.Time) {
	t.Helper()
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	opt.Now = func() time.Time { return now }
	if opt.Sleep == nil {
		opt.Sleep = func(d time.Duration) { now = now.Add(d) }
	}
	c := ec2.New(opt)
	return direct.New(c), c, &now
}

// machines makes a launch template and n machines.
func machines(t testing.TB, a *direct.API, n int) []string {
	t.Helper()
	ctx := context.Background()
	image, err := a.Parameter(ctx, "/aws/service/eks/optimized-ami/1.37/amazon-linux-2023/x86_64/standard/recommended/image_id")
	must(t, err)
	must(t, a.CreateTemplate(ctx, launch.Template{Name: "template", Data: launch.TemplateData{ImageID: image, SecurityGroups: []string{ec2.WorkshopGroup}}}))
	subnets, err := a.Subnets(ctx, []class.Filter{{Name: "tag:Name", Values: []string{"*PrivateSubnet1"}}})
	must(t, err)
	var ids []string
	for i := range n {
		token := fmt.Sprint("uid-", i)
		out, err := a.CreateFleet(ctx, token, launch.Fleet{CapacityType: label.OnDemand,
			Configs: []launch.Config{{Template: "template", Version: "$Latest", Overrides: []launch.Override{{Type: "m6a.xlarge", Subnet: subnets[0].ID, Zone: subnets[0].Zone}}}},
			Tags:    []launch.Tag{{Key: launch.TokenTag, Value: token}, {Key: launch.OwnedTag("workshop"), Value: "owned"}}})
		must(t, err)
		ids = append(ids, out.Machines[0].ID)
	}
	return ids
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestTimePassesOnTheClock: a call that lasts, a long poll and a time-out after
// success cost virtual time at most.
func TestTimePassesOnTheClock(t *testing.T) {
	a, c, now := region(t, ec2.Options{})
	ids := machines(t, a, 1)
	begin, really := *now, time.Now()
	c.AddQueue("q")
	for _, f := range []ec2.Fault{{On: "DescribeInstances", Delay: time.Hour, Times: 1}, {On: "TerminateInstances", Delay: 2 * time.Hour, Error: "RequestTimeout", After: true, Times: 1}} {
		_, err := c.Inject(f)
		must(t, err)
	}
	_, err := a.Instances(t.Context(), ids, nil)
	must(t, err)
	if got := now.Sub(begin); got != time.Hour {
		t.Errorf("describing lasted %s", got)
	}
	if err := a.Terminate(t.Context(), ids...); err == nil {
		t.Error("the time-out is lost")
	}
	list, err := a.Instances(t.Context(), nil, nil)
	if err != nil || len(list) > 0 || now.Sub(begin) != 3*time.Hour {
		t.Errorf("after %s: %+v, %v; it was ended and is forgotten", now.Sub(begin), list, err)
	}
	if got, err := a.Receive(t.Context(), "q", 20*time.Second); err != nil || len(got) > 0 {
		t.Errorf("received %v, %v", got, err)
	}
	if took := time.Since(really); took > 5*time.Second {
		t.Errorf("three hours took %s", took)
	}
}

// TestGivenUp: a caller that has given up is told so, and nothing is called.
func TestGivenUp(t *testing.T) {
	a, c, _ := region(t, ec2.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Instances(ctx, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if calls := c.Calls(); len(calls) > 0 {
		t.Errorf("called %+v", calls)
	}
}

// TestSameSeedSameHistory: the same calls at the same times give the same
// answers, chance included.
func TestSameSeedSameHistory(t *testing.T) {
	history := func(seed uint64) string {
		a, c, now := region(t, ec2.Options{Seed: seed, Lag: time.Second})
		_, err := c.Inject(ec2.Fault{On: "create", Error: "InsufficientInstanceCapacity", Percent: 30, Skip: 3})
		must(t, err)
		c.AddQueue("q")
		out := fmt.Sprintln(machines(t, a, 3))
		*now = now.Add(time.Minute)
		list, err := a.Instances(t.Context(), nil, nil)
		must(t, err)
		messages, err := a.Receive(t.Context(), "q", 0)
		must(t, err)
		return out + fmt.Sprintln(list, messages, c.Instances())
	}
	first, again := history(1), history(1)
	if first != again {
		t.Error("the same seed gave another history")
	}
	if first == history(2) {
		t.Error("another seed gave the same history")
	}
}

// The calls that a controller makes all the time, with 500 machines.
func BenchmarkCalls(b *testing.B) {
	a, _, now := region(b, ec2.Options{})
	ids := machines(b, a, 500)
	*now = now.Add(time.Minute)
	ctx := context.Background()
	owned := []class.Filter{{Name: "tag:" + launch.OwnedTag("workshop"), Values: []string{"owned"}},
		{Name: "instance-state-name", Values: []string{string(cloud.Pending), string(cloud.Running)}}}
	for name, call := range map[string]func() error{
		"list500":   func() error { _, err := a.Instances(ctx, nil, owned); return err },
		"describe1": func() error { _, err := a.Instances(ctx, ids[:1], nil); return err },
		"types":     func() error { _, err := a.InstanceTypes(ctx); return err },
		"offerings": func() error { _, err := a.Offerings(ctx); return err },
		"prices":    func() error { _, err := a.OnDemandPrices(ctx); return err },
		"spot":      func() error { _, err := a.SpotPrices(ctx, *now); return err },
		"subnets":   func() error { _, err := a.Subnets(ctx, nil); return err },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				must(b, call())
			}
		})
	}
}
