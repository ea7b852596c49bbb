package lifecycle

import (
	"slices"
	"strings"
	"testing"
	"time"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

var (
	noon    = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	startup = world.Taint{Key: "agent/not-ready", Effect: world.NoSchedule}
	team    = world.Taint{Key: "team", Value: "a", Effect: world.NoSchedule}
)

func at(s int) time.Time                  { return noon.Add(time.Duration(s) * time.Second) }
func ago(d time.Duration) time.Time       { return noon.Add(-d) }
func pod(name string) world.ObjectName    { return world.ObjectName{Namespace: "default", Name: name} }
func yes(since time.Time) world.Condition { return world.Condition{Status: True, Since: since} }

// booting is a launched machine whose node has just joined with its boot taint.
func booting(change ...func(*Input)) Input {
	in := Input{
		Now:    noon,
		Limits: DefaultLimits(),
		Record: world.Record{
			Name: "test-abcde", Token: "uid-1", Created: ago(time.Minute),
			ProviderID: "aws:///z/i-1", LaunchRequest: "body",
			Labels:        map[string]string{"env": "prod", label.Provisioner: "test"},
			Annotations:   map[string]string{"owner": "me", "karpenter.sh/launch-request": "body", "karpenter.sh/planned-pods": "default/a"},
			Taints:        []world.Taint{team},
			StartupTaints: []world.Taint{startup},
			Requests:      quantity.Resources{MilliCPU: 100, Pods: 2, Extended: []quantity.Amount{{Name: "nvidia.com/gpu", Value: 1}}},
			Capacity:      quantity.Resources{MilliCPU: 4000, Pods: 58, Extended: []quantity.Amount{{Name: "nvidia.com/gpu", Value: 1}}},
			Launched:      yes(ago(50 * time.Second)),
			Registered:    world.Condition{Status: Unknown, Since: ago(50 * time.Second)},
		},
		Nodes: []Node{{
			Name: "node-1", Ready: true, Labels: map[string]string{"env": "wrong"},
			Taints:      []world.Taint{Unregistered},
			Allocatable: quantity.Resources{MilliCPU: 3900, Pods: 58, Extended: []quantity.Amount{{Name: "nvidia.com/gpu", Value: 1}}},
		}},
		StartupTaints: []world.Taint{startup},
		Empty:         Stamp,
	}
	for _, c := range change {
		c(&in)
	}
	return in
}

// running is the same machine, initialised and without pods.
func running(change ...func(*Input)) Input {
	return booting(append([]func(*Input){func(in *Input) {
		in.Record.Registered, in.Record.Initialized = yes(ago(time.Hour)), yes(ago(time.Hour))
		n := &in.Nodes[0]
		n.Held, n.Owned, n.Taints = true, true, nil
		n.Labels = map[string]string{label.Registered: "true", label.Initialized: "true"}
	}}, change...)...)
}

func pointer[T any](v T) *T { return &v }

func TestLaunch(t *testing.T) {
	fresh := func(change func(*Input)) Input {
		return booting(func(in *Input) {
			in.Record.ProviderID, in.Record.LaunchRequest = "", ""
			in.Record.Launched, in.Record.Registered = world.Condition{}, world.Condition{}
			in.Nodes = nil
			if change != nil {
				change(in)
			}
		})
	}
	deadline := ago(time.Minute).Add(5 * time.Minute)
	for name, c := range map[string]struct {
		in   Input
		want Step
	}{
		"the launch is written down first":  {fresh(nil), Step{Prepare: true, Again: deadline}},
		"then it is sent":                   {fresh(func(in *Input) { in.Record.LaunchRequest = "body" }), Step{Launch: true, Again: deadline}},
		"after a failure it waits":          {fresh(func(in *Input) { in.RetryAt = at(2) }), Step{Again: at(2)}},
		"but not beyond the limit":          {fresh(func(in *Input) { in.RetryAt = at(1000) }), Step{Again: deadline}},
		"then it is given up":               {fresh(func(in *Input) { in.Record.Created = ago(5 * time.Minute) }), Step{Delete: LaunchTimeout}},
		"but time held back does not count": {fresh(func(in *Input) { in.Record.Created, in.HeldBack = ago(time.Hour), ago(time.Minute) }), Step{Prepare: true, Again: deadline}},
		"only that":                         {fresh(func(in *Input) { in.Record.Created, in.HeldBack = ago(time.Hour), ago(5*time.Minute) }), Step{Delete: LaunchTimeout}},
		"a new process asks once more for a record that waited for its turn": {fresh(func(in *Input) {
			in.Record.Created, in.Record.Launched, in.Record.LaunchRequest = ago(5*time.Minute), world.Condition{Status: Unknown, Reason: HeldBack}, "body"
		}), Step{Launch: true, Again: at(0)}},
		"a refused launch is given up":          {fresh(func(in *Input) { in.Record.Launched.Status = False }), Step{Delete: LaunchRefused}},
		"a record on its way out is left alone": {fresh(func(in *Input) { in.Record.DeletedAt = &noon }), Step{}},
		"it is looked at when it expires":       {fresh(func(in *Input) { in.Record.Expires = pointer(at(3)) }), Step{Prepare: true, Again: at(3)}},
		"and then goes":                         {fresh(func(in *Input) { in.Record.Expires = pointer(at(0)) }), Step{Delete: Expired}},
		"but not if it would never be empty": {fresh(func(in *Input) { in.Record.Expires, in.Stuck = pointer(at(0)), "a pod stays" }),
			Step{Prepare: true, Again: at(60), Events: []Event{{true, "DisruptionBlocked", "expiration: a pod stays; the node is kept, as its pool sets no terminationGracePeriod"}}}},
		"unless its draining has an end": {fresh(func(in *Input) {
			in.Record.Expires, in.Stuck, in.Record.TerminationGrace = pointer(at(0)), "a pod stays", &world.Duration{}
		}), Step{Delete: Expired}},
		"what the cloud ends, ends": {running(func(in *Input) { in.Record.Interrupted = "spot" }), Step{Delete: Interrupted}},
		"whatever it has become":    {running(func(in *Input) { in.Record.Expires = pointer(at(0)) }), Step{Delete: Expired}},
	} {
		t.Run(name, func(t *testing.T) { equal(t, Next(c.in), c.want) })
	}
}

func TestRegistrationFailures(t *testing.T) {
	none := booting(func(in *Input) { in.Nodes = nil })
	s := Next(none)
	if s.Delete != "" || len(s.Conditions) != 1 || s.Conditions[0].Reason != "NodeNotFound" {
		t.Errorf("no node yet: %+v", s)
	}
	if want := ago(50 * time.Second).Add(15 * time.Minute); !s.Again.Equal(want) {
		t.Errorf("looks again at %s, want %s", s.Again, want)
	}
	late := booting(func(in *Input) { in.Nodes, in.Record.Registered.Since = nil, ago(15*time.Minute) })
	if s := Next(late); s.Delete != RegistrationTimeout {
		t.Errorf("15 minutes without a node: %+v", s)
	}
	two := booting(func(in *Input) { in.Nodes = append(in.Nodes, Node{Name: "node-2"}) })
	if s := Next(two); s.Conditions[0].Reason != "MultipleNodesFound" || !s.Node.IsZero() {
		t.Errorf("two nodes: %+v", s)
	}
	gone := booting(func(in *Input) { in.Nodes, in.Record.Registered = nil, yes(ago(time.Hour)) })
	if s := Next(gone); s.Delete != "" || len(s.Conditions) != 0 {
		t.Errorf("a registered record whose node is not seen is not judged here: %+v", s)
	}
	bare := booting(func(in *Input) { in.Record.Registered = yes(ago(time.Hour)) })
	if s := Next(bare); s.Delete != "" || s.Node.Labels[label.Registered] != "true" {
		t.Errorf("a node that came back bare is registered again: %+v", s)
	}
}

func TestRegisterPutsTheNodeRight(t *testing.T) {
	s := Next(booting())
	p := s.Node
	if p.Labels["env"] != "prod" || p.Labels[label.Provisioner] != "test" || p.Labels[label.Registered] != "true" {
		t.Errorf("labels: %v", p.Labels)
	}
	if len(p.Annotations) != 1 || p.Annotations["owner"] != "me" {
		t.Errorf("annotations: %v, want those of people only", p.Annotations)
	}
	if !slices.Equal(p.AddTaints, []world.Taint{team, startup}) || !slices.Equal(p.DropTaints, []world.Taint{Unregistered}) {
		t.Errorf("taints: +%v -%v", p.AddTaints, p.DropTaints)
	}
	if !p.Hold || !p.Own || s.Joined != "node-1" || s.Conditions[0] != holds(Registered) || len(s.Events) != 0 {
		t.Errorf("step: %+v", s)
	}

	synced := booting(func(in *Input) { in.Nodes[0].Labels[DoNotSyncTaints] = "true" })
	if s := Next(synced); len(s.Node.AddTaints) != 0 {
		t.Errorf("taints were synced by the boot script, got +%v", s.Node.AddTaints)
	}
	again := booting(func(in *Input) { in.Nodes[0].Held = true })
	if s := Next(again); len(s.Node.AddTaints) != 0 {
		t.Errorf("a startup taint that an agent took off came back: +%v", s.Node.AddTaints)
	}
	bare := booting(func(in *Input) { in.Nodes[0].Taints = nil })
	if s := Next(bare); len(s.Events) != 1 || s.Events[0].Reason != "UnregisteredTaintMissing" || s.Node.Labels[label.Registered] != "true" {
		t.Errorf("no boot taint: %+v", s)
	}
}

// TestNominationBeforeOpening plays the passes of one registration on a clock.
func TestNominationBeforeOpening(t *testing.T) {
	half := 500 * time.Millisecond
	in := booting(func(in *Input) {
		in.Nominations.Pods = []Expected{
			{ObjectName: pod("a")},
			{ObjectName: pod("b"), Nominated: "other", Ours: true},
			{ObjectName: pod("c"), Nominated: "other"}, // by kube-scheduler: not ours to change
		}
	})
	s := Next(in)
	if want := []world.ObjectName{pod("a"), pod("b")}; !slices.Equal(s.Nominate, want) || !s.Again.Equal(noon.Add(half)) {
		t.Fatalf("first pass: nominate %v at %s", s.Nominate, s.Again)
	}
	if len(s.Node.DropTaints) != 0 || s.Node.Labels[label.Registered] != "" || s.Node.Labels["env"] != "prod" {
		t.Fatalf("first pass: the node is put right but stays shut: %+v", s.Node)
	}

	in.Nominations.First, in.Nominations.Last = noon, noon
	in.Nominations.Pods[0] = Expected{pod("a"), "node-1", true}
	in.Nominations.Pods[1] = Expected{pod("b"), "node-1", true}
	in.Now = noon.Add(half / 2)
	if s := Next(in); len(s.Node.DropTaints) != 0 || len(s.Nominate) != 0 || !s.Again.Equal(noon.Add(half)) {
		t.Fatalf("too early: %+v", s)
	}
	in.Now = noon.Add(half)
	if s := Next(in); len(s.Node.DropTaints) != 1 {
		t.Fatalf("not opened: %+v", s)
	}

	in.Nominations.Pods[0].Nominated = "" // the scheduler took it back
	if s := Next(in); !slices.Equal(s.Nominate, []world.ObjectName{pod("a")}) || len(s.Node.DropTaints) != 0 {
		t.Fatalf("lost nomination: %+v", s)
	}
	in.Now, in.Nominations.Last = noon.Add(4*half), noon.Add(3*half)
	if s := Next(in); len(s.Node.DropTaints) != 1 {
		t.Fatalf("a node is not kept shut for ever: %+v", s)
	}

	restarted := booting(func(in *Input) { in.Nominations.Pods = []Expected{{pod("a"), "node-1", true}} })
	if s := Next(restarted); len(s.Nominate) != 1 || len(s.Node.DropTaints) != 0 {
		t.Fatalf("after a restart the pause is made again: %+v", s)
	}
	off := booting(func(in *Input) {
		in.Nominations = Nominations{Off: true, Pods: []Expected{{ObjectName: pod("a")}}}
	})
	if s := Next(off); len(s.Nominate) != 0 || len(s.Node.DropTaints) != 1 {
		t.Fatalf("switched off: %+v", s)
	}
}

// TestNominationIsRenewedUntilTheNodeIsUsable: an open node that is not ready
// yet costs its pods their nomination at every attempt of the scheduler.
func TestNominationIsRenewedUntilTheNodeIsUsable(t *testing.T) {
	world0 := func(ready bool, pods ...Expected) Input {
		return running(func(in *Input) {
			delete(in.Nodes[0].Labels, label.Initialized)
			in.Nodes[0].Ready = ready
			in.Nominations = Nominations{First: ago(time.Second), Last: ago(time.Second), Pods: pods}
		})
	}
	lost := Next(world0(false, Expected{ObjectName: pod("a")}, Expected{pod("b"), "node-1", true}, Expected{ObjectName: pod("c"), Nominated: "other"}))
	if want := []world.ObjectName{pod("a")}; !slices.Equal(lost.Nominate, want) || !lost.Again.Equal(noon.Add(NominationPoll)) {
		t.Errorf("nominate %v at %s, want %v and a look soon", lost.Nominate, lost.Again, want)
	}
	if kept := Next(world0(false, Expected{pod("b"), "node-1", true})); len(kept.Nominate) != 0 || !kept.Again.Equal(noon.Add(NominationPoll)) {
		t.Errorf("a nomination that stands is written again, or not watched: %+v", kept)
	}
	if nobody := Next(world0(false)); !nobody.Again.Equal(noon.Add(Recheck)) {
		t.Errorf("no pod is expected, yet the node is looked at again at %s", nobody.Again)
	}
	if usable := Next(world0(true, Expected{ObjectName: pod("a")})); len(usable.Nominate) != 0 {
		t.Errorf("nominated for a node that is usable: %v", usable.Nominate)
	}
}

func TestInitialization(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Node)
		reason string
	}{
		"usable":           {func(*Node) {}, ""},
		"not ready":        {func(n *Node) { n.Ready = false }, "NodeNotReady"},
		"startup taint":    {func(n *Node) { n.Taints = []world.Taint{{Key: startup.Key, Value: "x", Effect: startup.Effect}} }, "StartupTaintsExist"},
		"its other effect": {func(n *Node) { n.Taints = []world.Taint{{Key: startup.Key, Effect: world.NoExecute}} }, ""},
		"not-ready taint": {func(n *Node) {
			n.Taints = []world.Taint{{Key: "node.kubernetes.io/not-ready", Effect: world.NoExecute}}
		}, "KnownEphemeralTaintsExist"},
		"readiness gate":     {func(n *Node) { n.Taints = []world.Taint{{Key: "readiness.k8s.io/net", Effect: world.NoSchedule}} }, "KnownEphemeralTaintsExist"},
		"no GPU yet":         {func(n *Node) { n.Allocatable = quantity.Resources{MilliCPU: 3900, Pods: 58} }, "ResourceNotRegistered"},
		"boot taint is back": {func(n *Node) { n.Taints = []world.Taint{Unregistered} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := Next(running(func(in *Input) {
				delete(in.Nodes[0].Labels, label.Initialized)
				c.change(&in.Nodes[0])
			}))
			last := s.Conditions[len(s.Conditions)-1]
			if c.reason == "" && (s.Node.Labels[label.Initialized] != "true" || !slices.Contains(s.Conditions, holds(Initialized))) {
				t.Errorf("not initialised: %+v", s)
			}
			if c.reason != "" && (s.Node.Labels[label.Initialized] != "" || last.Reason != c.reason || last.Status != Unknown) {
				t.Errorf("got %+v, want reason %s", last, c.reason)
			}
		})
	}
	missing := Next(running(func(in *Input) {
		delete(in.Nodes[0].Labels, label.Initialized)
		in.Nodes[0].Allocatable = quantity.Resources{MilliCPU: 1, Pods: 1}
	}))
	if m := missing.Conditions[1].Message; !strings.Contains(m, "nvidia.com/gpu") || !strings.Contains(m, "node-1") {
		t.Errorf("message does not name resource and node: %s", m)
	}
	unasked := running(func(in *Input) {
		delete(in.Nodes[0].Labels, label.Initialized)
		in.Record.Requests = quantity.Resources{MilliCPU: 100}
		in.Nodes[0].Allocatable = quantity.Resources{MilliCPU: 1, Pods: 1}
	})
	if s := Next(unasked); s.Node.Labels[label.Initialized] != "true" {
		t.Errorf("a resource that nobody asked for is not waited for: %+v", s)
	}
}

func TestRepair(t *testing.T) {
	s := Next(running(func(in *Input) { in.Nodes[0].Held, in.Nodes[0].Owned, in.Empty = false, false, NoStamp }))
	if !s.Node.Hold || !s.Node.Own {
		t.Errorf("finalizer and owner are put back: %+v", s.Node)
	}
	if s := Next(running(func(in *Input) { in.Nodes[0].DeletedAt, in.Nodes[0].Held = &noon, false })); !s.Node.IsZero() {
		t.Errorf("a node that is being deleted is left alone: %+v", s.Node)
	}
}

func TestEmptiness(t *testing.T) {
	stamped := func(in *Input) { in.Nodes[0].Annotations = map[string]string{EmptySince: "2030-01-01T11:00:00Z"} }
	with := func(p world.Pod) func(*Input) {
		return func(in *Input) { in.Nodes[0].Pods = append(in.Nodes[0].Pods, p) }
	}
	daemon := world.Pod{ObjectName: pod("d"), Owner: world.Owner{Kind: "DaemonSet"}}
	static := world.Pod{ObjectName: pod("s"), Owner: world.Owner{Kind: "Node"}}
	const set, cleared, kept = "set", "cleared", ""
	for name, c := range map[string]struct {
		in   Input
		want string
	}{
		"empty":                        {running(), set},
		"empty, stamped already":       {running(stamped), kept},
		"daemons and static pods":      {running(with(daemon), with(static)), set},
		"finished pod":                 {running(with(world.Pod{Finished: true})), set},
		"bare pod":                     {running(with(world.Pod{})), kept},
		"pod on a stamped node":        {running(stamped, with(world.Pod{})), cleared},
		"terminating pod still counts": {running(stamped, with(world.Pod{DeletedAt: &noon})), cleared},
		"not ready":                    {running(func(in *Input) { in.Nodes[0].Ready = false }), kept},
		"pool keeps empty nodes":       {running(stamped, func(in *Input) { in.Empty = NoStamp }), cleared},
		"pool is gone":                 {running(stamped, func(in *Input) { in.Empty = LeaveStamp }), kept},
		"nominated":                    {running(func(in *Input) { in.NominatedUntil = at(7) }), kept},
		"nominated and stamped":        {running(stamped, func(in *Input) { in.NominatedUntil = at(7) }), kept},
		"nomination over":              {running(func(in *Input) { in.NominatedUntil = noon }), set},
		"pod nominated here":           {running(func(in *Input) { in.Nominations.Pods = []Expected{{pod("a"), "node-1", true}} }), kept},
		"planned pod waits": {running(func(in *Input) {
			in.Nominations.Pods = []Expected{{ObjectName: pod("a")}}
			in.Record.Initialized.Since = ago(time.Minute)
		}), kept},
		"planned pod never comes": {running(func(in *Input) { in.Nominations.Pods = []Expected{{ObjectName: pod("a")}} }), set},
	} {
		t.Run(name, func(t *testing.T) {
			s := Next(c.in)
			got := kept
			if v, ok := s.Node.Annotations[EmptySince]; ok {
				got = set
				if v != "2030-01-01T12:00:00Z" {
					t.Errorf("stamp is %s", v)
				}
			} else if slices.Contains(s.Node.DropAnnotations, EmptySince) {
				got = cleared
			}
			if got != c.want {
				t.Errorf("stamp %q, want %q: %+v", got, c.want, s)
			}
		})
	}
	if s := Next(running(func(in *Input) { in.NominatedUntil = at(7) })); !s.Again.Equal(at(7)) {
		t.Errorf("looks again at %s, want the end of the nomination", s.Again)
	}
}
