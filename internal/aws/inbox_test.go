package aws_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"karpenter/internal/aws"
	"karpenter/internal/aws/notice"
	"karpenter/internal/cloud"
	"karpenter/sim/ec2"
	"karpenter/sim/ec2/direct"
)

// TestInbox: what happens to a spot machine arrives as notices; what others put
// into the queue arrives as none, and everything can be taken off.
func TestInbox(t *testing.T) {
	r := newRig(t, ec2.Options{})
	inbox := aws.NewInbox(direct.New(r.sim), r.clock.Now)
	var unknown *notice.UnknownQueueError
	if _, err := inbox.Receive(t.Context(), "q", 20*time.Second); !errors.As(err, &unknown) {
		t.Errorf("no queue: %v", err)
	}
	r.sim.AddQueue("q")
	req := request("uid-1")
	req.Requirements[2].Values = []string{"spot"}
	id := r.launch("uid-1", r.prepare(req)).ID
	r.clock.pass(time.Minute)
	for _, do := range []func(string) error{r.sim.Rebalance, r.sim.Interrupt, r.sim.Interrupt} {
		if err := do(id); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.sim.Send("q", "{", 0); err != nil {
		t.Fatal(err)
	}
	list, err := inbox.Receive(t.Context(), "q", 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []cloud.NoticeKind
	for _, d := range list {
		kinds = append(kinds, d.Kind)
		if d.Kind == cloud.SpotInterrupted && (!slices.Equal(d.Instances, []string{id}) || d.Deadline.Sub(r.clock.Now()) != 2*time.Minute) {
			t.Errorf("notice %+v", d)
		}
	}
	want := []cloud.NoticeKind{cloud.NoNotice, cloud.NoNotice, cloud.RebalanceRecommended, cloud.SpotInterrupted, cloud.SpotInterrupted, cloud.NoNotice}
	if !slices.Equal(kinds, want) {
		t.Errorf("notices %v, want %v", kinds, want)
	}
	for _, done := range [][]cloud.Delivery{list, nil} {
		if err := inbox.Acknowledge(t.Context(), "q", done); err != nil {
			t.Error(err)
		}
	}
	r.clock.pass(notice.Visibility)
	if list, err := inbox.Receive(t.Context(), "q", 0); err != nil || len(list) > 0 {
		t.Errorf("acknowledged, but %+v, %v", list, err)
	}
	r.clock.pass(2 * time.Minute)
	list, err = inbox.Receive(t.Context(), "q", 0)
	if err != nil || len(list) != 2 || list[1].Kind != cloud.InstanceTerminated {
		t.Errorf("its end: %+v, %v", list, err)
	}
}

func TestUnwell(t *testing.T) {
	r := newRig(t, ec2.Options{})
	inbox := aws.NewInbox(direct.New(r.sim), r.clock.Now)
	id := r.launch("uid-1", r.prepare(request("uid-1"))).ID
	r.clock.pass(time.Minute)
	if err := r.sim.Impair(id, true); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		after time.Duration
		want  int
	}{{119 * time.Second, 0}, {time.Second, 1}} {
		r.clock.pass(test.after)
		if list, err := inbox.Unwell(t.Context()); err != nil || len(list) != test.want {
			t.Errorf("%s later: %+v, %v", test.after, list, err)
		}
	}
	r.sim.SetAllow([]string{"ec2:DescribeInstances"})
	var forbidden *cloud.ForbiddenError
	if _, err := inbox.Unwell(t.Context()); !errors.As(err, &forbidden) {
		t.Errorf("without the right: %v", err)
	}
}
