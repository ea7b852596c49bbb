package lifecycle

import (
	"testing"
	"time"

	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
)

func TestGarbage(t *testing.T) {
	hour := ago(time.Hour)
	inst := func(id string, change ...func(*Instance)) Instance {
		i := Instance{ID: id, ProviderID: "p/" + id, Launched: hour, State: Alive}
		for _, c := range change {
			c(&i)
		}
		return i
	}
	rec := func(name, id string, change ...func(*world.Record)) world.Record {
		r := world.Record{Name: name, Token: "uid-" + name, ProviderID: "p/" + id, Launched: yes(hour)}
		for _, c := range change {
			c(&r)
		}
		return r
	}
	ours := map[string]string{label.Provisioner: "test"}
	ready := Node{Name: "n", ProviderID: "p/i-1", Labels: ours, Ready: true, Created: hour}
	dead := Node{Name: "n", ProviderID: "p/i-1", Labels: ours, Created: hour}
	unlaunched := func(r *world.Record) { r.ProviderID, r.Launched = "", world.Condition{} }
	for name, c := range map[string]struct {
		instances []Instance
		records   []world.Record
		nodes     []Node
		want      Diff
	}{
		"instance and record":                    {[]Instance{inst("i-1")}, []world.Record{rec("a", "i-1")}, nil, Diff{}},
		"leaked":                                 {[]Instance{inst("i-2"), inst("i-1")}, nil, nil, Diff{Terminate: []Instance{inst("i-1"), inst("i-2")}}},
		"too young to judge":                     {[]Instance{inst("i-1", func(i *Instance) { i.Launched = ago(59 * time.Second) })}, nil, nil, Diff{}},
		"going already":                          {[]Instance{inst("i-1", func(i *Instance) { i.State = Ending }), inst("i-2", func(i *Instance) { i.State = Ended })}, nil, nil, Diff{}},
		"launched, status not written, by token": {[]Instance{inst("i-1", func(i *Instance) { i.Token = "uid-a" })}, []world.Record{rec("a", "", unlaunched)}, nil, Diff{}},
		"launched, status not written, by name":  {[]Instance{inst("i-1", func(i *Instance) { i.Claim = "a" })}, []world.Record{rec("a", "", unlaunched)}, nil, Diff{}},
		"same name, other launch": {[]Instance{inst("i-1", func(i *Instance) { i.Claim, i.Token = "a", "old" })}, []world.Record{rec("a", "", unlaunched)}, nil,
			Diff{Terminate: []Instance{inst("i-1", func(i *Instance) { i.Claim, i.Token = "a", "old" })}}},
		"a second instance for one record": {[]Instance{inst("i-1"), inst("i-2", func(i *Instance) { i.Token = "uid-a" })}, []world.Record{rec("a", "i-1")}, nil,
			Diff{Terminate: []Instance{inst("i-2", func(i *Instance) { i.Token = "uid-a" })}}},

		"instance vanished":                    {nil, []world.Record{rec("a", "i-1")}, nil, Diff{Delete: []string{"a"}}},
		"instance terminated":                  {[]Instance{inst("i-1", func(i *Instance) { i.State = Ended })}, []world.Record{rec("a", "i-1")}, []Node{dead}, Diff{Delete: []string{"a"}}},
		"instance missing, node works":         {nil, []world.Record{rec("a", "i-1")}, []Node{ready}, Diff{}},
		"instance missing, launched just now":  {nil, []world.Record{rec("a", "i-1", func(r *world.Record) { r.Launched.Since = ago(30 * time.Second) })}, nil, Diff{}},
		"record on its way out":                {nil, []world.Record{rec("a", "i-1", func(r *world.Record) { r.DeletedAt = &noon })}, nil, Diff{}},
		"record not launched":                  {nil, []world.Record{rec("a", "", unlaunched)}, nil, Diff{}},
		"node of a registered record vanished": {[]Instance{inst("i-1")}, []world.Record{rec("a", "i-1", func(r *world.Record) { r.Registered = yes(hour) })}, nil, Diff{Delete: []string{"a"}}},
		"node not joined yet":                  {[]Instance{inst("i-1")}, []world.Record{rec("a", "i-1")}, nil, Diff{}},

		"node without record and instance":  {nil, nil, []Node{dead}, Diff{DeleteNodes: []string{"n"}}},
		"foreign node":                      {nil, nil, []Node{{Name: "n", ProviderID: "p/i-1", Created: hour}}, Diff{}},
		"node without record, ready":        {nil, nil, []Node{ready}, Diff{}},
		"node without record, but instance": {[]Instance{inst("i-1", func(i *Instance) { i.Launched = noon })}, nil, []Node{dead}, Diff{}},
	} {
		t.Run(name, func(t *testing.T) { equal(t, Garbage(c.instances, c.records, c.nodes, noon), c.want) })
	}
}
