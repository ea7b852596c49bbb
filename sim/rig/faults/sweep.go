package faults

import (
	"time"

	"karpenter/sim/ec2"
	"karpenter/sim/rig"
)

// Scenario is a short history in which the process may die at any call.
type Scenario string

// The scenarios.
const (
	ScaleUp     Scenario = "scale-up"
	ScaleDown   Scenario = "scale-down"
	Replacement Scenario = "replacement"
	// Interruption: the cloud takes a spot machine back.
	Interruption Scenario = "interruption"
)

// Scenarios are all of them.
func Scenarios() []Scenario { return []Scenario{ScaleUp, ScaleDown, Replacement, Interruption} }

// Crash plays a scenario in which the process dies at its n-th call (from 1),
// before the call has an effect or after it, and starts again. It returns what
// was broken, and how many calls there were; n = 0: nobody dies.
func Crash(s Scenario, n int, after bool) (broken []string, calls int) {
	w := newWorld(7, "", shape{Spot: s == Interruption, Queue: true})
	w.chaos = newChaos(w) // that never begins
	w.Start()
	from := start.Add(10 * time.Second)
	w.Run(from)
	end := from.Add(20 * time.Minute)
	w.deploy("app", 6, 900, true, false)
	if s != ScaleUp {
		w.Run(from.Add(5 * time.Minute))
	}
	died := false
	w.Intercept(func(c rig.Call) error {
		w.rules.call(c)
		if !c.After {
			calls++
		}
		if n == 0 || died || calls != n || c.After != after {
			return nil
		}
		died = true
		c.Process.Kill()
		w.After(5*time.Second, func() { w.Start() })
		return nil
	})
	switch s {
	case ScaleDown:
		w.scale("app", 0)
	case Interruption:
		for _, i := range w.Cloud.Instances() {
			if i.Market == ec2.Spot && !i.Gone() {
				w.must(w.Cloud.Interrupt(i.ID))
				break
			}
		}
		end = end.Add(10 * time.Minute)
	case Replacement:
		w.expire()
		end = end.Add(20 * time.Minute)
	}
	w.Run(end)
	return append(w.rules.Broken, w.rules.rest()...), calls
}

// expire makes machines of the pool old a minute from now.
func (w *world) expire() {
	p := w.provisioner()
	age := int64(w.Now().Sub(start)/time.Second) + 60
	p.Spec.TTLSecondsUntilExpired = &age
	w.must(w.kube.Update(ctx, p))
	w.After(8*time.Minute, func() { // those that come in their place stay
		p := w.provisioner()
		p.Spec.TTLSecondsUntilExpired = nil
		w.must(w.kube.Update(ctx, p))
	})
}
