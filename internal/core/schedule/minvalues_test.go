package schedule

import (
	"testing"

	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
)

var varied = []string{label.InstanceType, label.InstanceType, label.Zone, label.Arch, label.CapacityType, "karpenter.k8s.aws/instance-generation"}

// diversify lets pools ask for different values of some of the keys.
func (d dice) diversify(s *world.Snapshot, keys []string) {
	s.Policy.RelaxMinValues = d.chance(25)
	for i := range s.Pools {
		for range d.IntN(3) {
			s.Pools[i].Requirements = append(s.Pools[i].Requirements, label.Requirement{Key: one(d, keys...), Op: label.Exists, MinValues: 1 + d.IntN(3)})
		}
	}
}

// FuzzMinValues: every plan is legal, keeps the different values that pools ask
// for, and does not depend on the order of the input.
func FuzzMinValues(f *testing.F) {
	fuzz(f, func(t *testing.T, seed uint64) {
		d := newDice(seed)
		s := d.world(d.chance(50))
		keys := varied
		if d.chance(40) {
			keys = keys[:2] // rules that decide a topology leave one value of its key
			for i := range s.Pending {
				d.rules(&s.Pending[i])
			}
		}
		d.diversify(s, keys)
		plan := Solve(s, Options{MaxOptions: d.IntN(2) * 3})
		for _, fault := range Check(s, &plan) {
			t.Error(fault)
		}
		again := Solve(d.shuffled(s), Options{})
		if first := Solve(s, Options{}); dump(first) != dump(again) {
			t.Error("another order gives another plan")
		}
		if t.Failed() {
			t.Log(dump(s))
			t.Log(plan.Text())
		}
	})
}

// TestAloneIfAtAll: a pod without rules stays pending only if no zone and
// capacity type has enough different values of instance types that hold it.
func TestAloneIfAtAll(t *testing.T) {
	missed, could := 0, 0
	for _, seed := range sample(3000) {
		d := newDice(seed)
		s := d.world(false)
		s.Pools, s.Nodes, s.Daemons = s.Pools[:1], nil, nil
		s.Pools[0].Requirements = append(s.Pools[0].Requirements, label.Requirement{Key: label.InstanceType, Op: label.Exists, MinValues: 2})
		plan := Solve(s, Options{})
		for _, u := range plan.Unplaced {
			for i := range s.Pending {
				if p := &s.Pending[i]; p.ObjectName == u.Pod && p.Refused == "" && variedAlone(s, &s.Pools[0], p) {
					missed++
					if missed == 1 {
						t.Logf("seed %d, pod %s: %v", seed, p.Name, u.Reasons)
					}
				}
			}
		}
		could += len(s.Pending) - len(plan.Unplaced)
	}
	t.Logf("%d placed, %d missed", could, missed)
	if missed*200 > could {
		t.Errorf("%d pods stay pending that could be bought for, %d are placed", missed, could)
	}
}

func variedAlone(s *world.Snapshot, p *world.Pool, pod *world.Pod) bool {
	if p.NotReady != "" {
		return false
	}
	c := s.Catalogs[p.Catalog]
	types := map[[2]string]map[string]bool{}
	for t := range c.Types {
		for _, o := range c.Types[t].Offerings {
			at := newPlace(p, &c, &c.Types[t], &o, p.Labels)
			place := [2]string{o.Zone, o.CapacityType}
			if o.Available && possible(p, at, pod) && pod.Requests.Fits(at.room) {
				if types[place] == nil {
					types[place] = map[string]bool{}
				}
				types[place][c.Types[t].Name] = true
				if len(types[place]) > 1 {
					return true
				}
			}
		}
	}
	return false
}
