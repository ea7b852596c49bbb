package faults

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"karpenter/internal/cloud"
	"karpenter/sim/ec2"
	"karpenter/sim/rig"
)

// chaos is what goes wrong, in parts of a thousand calls or events.
type chaos struct {
	w   *world
	rng *rand.Rand
	on  bool
	// ended is when things stopped to go wrong; zero: they have not.
	ended time.Time

	fails, lost, crashes, moves int
	late, dropped, repeated     int
	slow, small                 int
	closed                      []ec2.Subnet // that were deleted
}

// newChaos draws how wrong things go.
func newChaos(w *world) *chaos {
	r := w.rng
	some := func(most int) int { // often nothing at all
		if r.IntN(3) == 0 {
			return 0
		}
		return r.IntN(most)
	}
	return &chaos{w: w, rng: r, fails: some(80), lost: some(40), crashes: some(12), moves: some(6), late: some(300), dropped: some(60), repeated: some(60), slow: some(200), small: some(100)}
}

func (c *chaos) strikes(perMille int) bool { return c.on && c.rng.IntN(1000) < perMille }

// begin lets things go wrong until a time.
func (c *chaos) begin(until time.Time) {
	c.on = true
	c.w.Late = func() time.Duration {
		if c.strikes(c.late) {
			return time.Duration(c.rng.IntN(20_000)) * time.Millisecond
		}
		return time.Duration(c.rng.IntN(50)) * time.Millisecond
	}
	c.cloud(until)
	c.queue(until)
	c.w.At(until, c.end)
	for at := c.w.Now(); at.Before(until); at = at.Add(time.Duration(5+c.rng.IntN(120)) * time.Second) {
		c.w.At(at, c.happen)
	}
}

// end puts everything right.
func (c *chaos) end() {
	c.on, c.ended = false, c.w.Now()
	c.w.Late = nil
	c.w.Cloud.Heal()
	c.openSubnets()
	c.settle()
	for _, i := range c.w.Cloud.Instances() { // nobody leaves stopped machines lying about
		if i.State == ec2.Stopped || i.State == ec2.Stopping {
			c.w.must(c.w.Cloud.Terminate(i.ID))
		}
	}
	if c.w.Process == nil {
		c.w.Start()
	}
	c.w.Process.Skew(0)
	c.w.Process.Cache().Relist() // watches end after a while, and begin anew
}

// call is the interceptor of all calls.
func (c *chaos) call(call rig.Call) error {
	c.w.rules.call(call)
	switch {
	case c.strikes(c.crashes) && call.Write:
		c.crash(call.Process)
		return nil
	case !call.After && c.strikes(c.moves) && call.Write:
		c.move(call.Process)
		return nil
	case !call.After && c.strikes(c.fails), call.After && c.strikes(c.lost):
		return c.failure(call.Cloud)
	}
	return nil
}

// failure is one of the answers that a call can get.
func (c *chaos) failure(cloudCall bool) error {
	if cloudCall {
		if c.rng.IntN(2) == 0 {
			return &cloud.ThrottledError{Err: errors.New("RequestLimitExceeded: injected")}
		}
		return errors.New("InternalError: injected")
	}
	gr := schema.GroupResource{Resource: "things"}
	switch c.rng.IntN(4) {
	case 0:
		return apierrors.NewTimeoutError("injected", 1)
	case 1:
		return apierrors.NewTooManyRequests("injected", 1)
	case 2:
		return apierrors.NewServerTimeout(gr, "any", 1)
	}
	return apierrors.NewInternalError(errors.New("injected"))
}

// crash ends the process; another one starts after a while.
func (c *chaos) crash(p *rig.Process) {
	if p.Dead() {
		return
	}
	p.Kill()
	c.w.After(time.Duration(1+c.rng.IntN(30))*time.Second, func() {
		if c.w.Process == nil {
			c.w.Start()
		}
	})
}

// move gives the lead to another process while the old one is in the middle of
// a pass: it finishes what it was about to do.
func (c *chaos) move(old *rig.Process) {
	if c.w.Process != old {
		return
	}
	next := c.w.Start()
	c.w.Outlive(old, next)
}

// cloud lays faults on the cloud.
func (c *chaos) cloud(until time.Time) {
	inject := func(f ec2.Fault) {
		f.Until = until
		_, err := c.w.Cloud.Inject(f)
		c.w.must(err)
	}
	if c.rng.IntN(2) == 0 {
		inject(ec2.Fault{On: "create", Error: "InsufficientInstanceCapacity", Percent: 1 + c.rng.IntN(60), Match: c.match()})
	}
	if c.rng.IntN(3) == 0 {
		inject(ec2.Fault{On: "boot", Percent: 1 + c.rng.IntN(40), Match: c.match()})
	}
	if c.rng.IntN(4) == 0 {
		inject(ec2.Fault{On: "create", Error: "InsufficientFreeAddressesInSubnet", Percent: 30, Match: ec2.Match{Subnet: "subnet-" + zones[c.rng.IntN(3)]}})
	}
	if c.rng.IntN(6) == 0 {
		inject(ec2.Fault{On: "CreateFleet", Error: "VcpuLimitExceeded", Percent: 20})
	}
}

// match is a part of the region, or all of it.
func (c *chaos) match() ec2.Match {
	switch c.rng.IntN(4) {
	case 0:
		return ec2.Match{Zone: zones[c.rng.IntN(3)]}
	case 1:
		return ec2.Match{Type: []string{"m5.large", "m5.xlarge", "m5.*"}[c.rng.IntN(3)]}
	}
	return ec2.Match{}
}

// happen is something that happens from outside.
func (c *chaos) happen() {
	p := c.w.Process
	if !c.on || p == nil {
		return
	}
	switch c.rng.IntN(14) {
	case 0:
		c.instance()
	case 1:
		p.Skew(time.Duration(c.rng.IntN(240)-120) * time.Second)
	case 2:
		p.Skew(0)
	case 3:
		if c.rng.IntN(1000) < 10*c.dropped {
			p.Cache().Drop(1 + c.rng.IntN(3))
			c.w.After(time.Duration(30+c.rng.IntN(300))*time.Second, func() {
				if !p.Dead() {
					p.Cache().Relist()
				}
			})
		}
	case 4:
		if c.rng.IntN(1000) < 10*c.repeated {
			p.Cache().Repeat(1 + c.rng.IntN(5))
		}
	case 5:
		c.template()
	case 6, 7:
		c.message()
	case 8:
		c.class()
	case 9:
		c.images()
	case 10:
		c.closeSubnet()
	case 11:
		c.pool()
	}
}

// instance does something to a machine from outside.
func (c *chaos) instance() {
	var alive []ec2.Instance
	for _, i := range c.w.Cloud.Instances() {
		if i.State == ec2.Running {
			alive = append(alive, i)
		}
	}
	if len(alive) == 0 {
		return
	}
	i := alive[c.rng.IntN(len(alive))]
	switch c.rng.IntN(3) {
	case 0:
		c.w.must(c.w.Cloud.Terminate(i.ID))
	case 1:
		c.w.must(c.w.Cloud.Stop(i.ID))
	case 2: // a reboot: its node is not ready for a while
		c.w.setDown(i.ProviderID(), true)
		c.w.After(time.Duration(30+c.rng.IntN(90))*time.Second, func() {
			if now, ok := c.w.Cloud.Instance(i.ID); ok && now.State == ec2.Running {
				c.w.setDown(i.ProviderID(), false)
			}
		})
	}
}

// template deletes all launch templates.
func (c *chaos) template() {
	out, err := ec2.Call(c.w.Cloud, &ec2.DescribeLaunchTemplatesInput{})
	if err != nil {
		return // it is failing just now
	}
	for _, t := range out.Templates {
		_, _ = ec2.Call(c.w.Cloud, &ec2.DeleteLaunchTemplateInput{LaunchTemplateID: t.ID})
	}
}

// boot is how much later than usual a machine joins.
func (c *chaos) boot() time.Duration {
	if c.strikes(c.slow) {
		return time.Duration(c.rng.IntN(1200)) * time.Second
	}
	return 0
}

// shrink makes a node offer less than its type promised.
func (c *chaos) shrink(n *corev1.Node) {
	if c.strikes(c.small) {
		cpu := n.Status.Allocatable[corev1.ResourceCPU]
		n.Status.Allocatable[corev1.ResourceCPU] = *resource.NewMilliQuantity(cpu.MilliValue()*int64(50+c.rng.IntN(50))/100, resource.DecimalSI)
	}
}

// String says how wrong things go.
func (c *chaos) String() string {
	return fmt.Sprintf("per thousand: calls fail %d, answers lost %d, crashes %d, leaders change %d, changes late %d, dropped %d, repeated %d, slow boots %d, small nodes %d",
		c.fails, c.lost, c.crashes, c.moves, c.late, c.dropped, c.repeated, c.slow, c.small)
}
