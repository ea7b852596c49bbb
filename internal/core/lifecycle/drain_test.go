package lifecycle

import (
	"slices"
	"strings"
	"testing"
	"time"

	"karpenter/internal/core/world"
)

// leaving is a machine whose record and Node are being deleted for a minute.
func leaving(change ...func(*DrainInput)) DrainInput {
	deleted := ago(time.Minute)
	in := DrainInput{
		Now: noon,
		Record: &world.Record{
			Name: "test-abcde", Token: "uid-1", ProviderID: "aws:///z/i-1", LaunchRequest: "body",
			Launched: yes(ago(time.Hour)), DeletedAt: &deleted,
		},
		Node: &Node{
			Name: "node-1", ProviderID: "aws:///z/i-1", Ready: true, Held: true, DeletedAt: &deleted, Unschedulable: true,
			Labels: map[string]string{ExcludeFromBalancers: "karpenter"}, Taints: []world.Taint{Disrupted},
		},
		Cordon: true,
	}
	for _, c := range change {
		c(&in)
	}
	return in
}

func found(state InstanceState) func(*DrainInput) {
	return func(in *DrainInput) { in.Instance = &Instance{ID: "i-1", State: state} }
}

func pods(list ...world.Pod) func(*DrainInput) {
	return func(in *DrainInput) {
		for _, p := range list {
			p.Namespace = "default"
			in.Node.Pods = append(in.Node.Pods, p)
		}
	}
}

func named(name string, change ...func(*world.Pod)) world.Pod {
	p := world.Pod{ObjectName: world.ObjectName{Name: name}, GraceSeconds: 30}
	for _, c := range change {
		c(&p)
	}
	return p
}

func ofDaemonSet(p *world.Pod) { p.Owner.Kind = "DaemonSet" }
func critical(p *world.Pod)    { p.Critical = true }
func protected(p *world.Pod)   { p.DoNotEvict = true }
func tolerating(t world.Taint) func(*world.Pod) {
	return func(p *world.Pod) { p.Tolerations = []world.Toleration{{Key: t.Key, Op: "Exists"}} }
}
func goneAt(t time.Time) func(*world.Pod) { return func(p *world.Pod) { p.DeletedAt = &t } }

func deadline(t time.Time) func(*DrainInput) {
	return func(in *DrainInput) { in.Record.Deadline = &t }
}

// told writes who is asked to go, and how.
func told(s DrainStep) string {
	var out []string
	for _, p := range s.Evict {
		out = append(out, "evict "+p.Name)
	}
	for _, r := range s.Remove {
		out = append(out, "delete "+r.Pod.Name+" in "+(time.Duration(r.GraceSeconds)*time.Second).String())
	}
	return strings.Join(out, ", ")
}

func TestWhoIsToldToGo(t *testing.T) {
	for name, c := range map[string]struct {
		in   DrainInput
		want string
	}{
		"workloads before daemons before critical ones": {leaving(pods(named("d", ofDaemonSet), named("b"), named("c", critical), named("a"))), "evict a, evict b"},
		"second wave": {leaving(pods(named("cd", critical, ofDaemonSet), named("d", ofDaemonSet), named("c", critical))), "evict d"},
		"third wave":  {leaving(pods(named("cd", critical, ofDaemonSet), named("c", critical))), "evict c"},
		"last wave":   {leaving(pods(named("cd", critical, ofDaemonSet))), "evict cd"},
		"a wave is over when its pods are gone, not when they were told": {leaving(pods(named("a", goneAt(at(20))), named("c", critical))), ""},
		"a pod that must not go does not keep the others":                {leaving(pods(named("a"), named("keep", protected))), "evict a"},
		"finished and static pods are nobody's business": {leaving(pods(named("f", func(p *world.Pod) { p.Finished = true }),
			named("s", func(p *world.Pod) { p.Owner.Kind = "Node" }))), ""},
		"cordoned: who tolerates that stays":     {leaving(pods(named("a", tolerating(Cordoned)), named("b", tolerating(Disrupted)))), "evict b"},
		"tainted: who tolerates the taint stays": {leaving(func(in *DrainInput) { in.Cordon = false }, pods(named("a", tolerating(Cordoned)), named("b", tolerating(Disrupted)))), "evict a"},
		"stuck after its grace":                  {leaving(pods(named("old", goneAt(ago(61*time.Second))), named("c", critical))), "evict c"},
		"end announced: nobody may refuse":       {leaving(func(in *DrainInput) { in.EndAnnounced = true }, deadline(at(120)), pods(named("keep", protected))), "evict keep"},

		"protected for another second":                                 {leaving(pods(named("a", func(p *world.Pod) { u := at(1); p.DoNotEvictUntil = &u }))), ""},
		"protected until now":                                          {leaving(pods(named("a", func(p *world.Pod) { u := at(0); p.DoNotEvictUntil = &u }))), "evict a"},
		"deadline: budgets hold until the grace is all that is left":   {leaving(deadline(at(31)), pods(named("a"))), "evict a"},
		"deadline: then the pod is deleted":                            {leaving(deadline(at(30)), pods(named("a"))), "delete a in 30s"},
		"deadline: late":                                               {leaving(deadline(at(7)), pods(named("a"))), "delete a in 7s"},
		"deadline: in every wave, protected or not":                    {leaving(deadline(at(10)), pods(named("a", protected), named("c", critical))), "delete a in 10s, delete c in 10s"},
		"deadline: a pod that would end later gets less":               {leaving(deadline(at(10)), pods(named("a", goneAt(at(60))))), "delete a in 10s"},
		"deadline: a pod that ends in time is left alone":              {leaving(deadline(at(10)), pods(named("a", goneAt(at(9))))), ""},
		"deadline: never without a word":                               {leaving(deadline(noon.Add(300*time.Millisecond)), pods(named("a"))), "delete a in 1s"},
		"deadline: not a moment before, do-not-evict holds until then": {leaving(deadline(at(31)), pods(named("a", protected))), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := told(Drain(c.in)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestDrainWaits(t *testing.T) {
	s := Drain(leaving(pods(named("keep", protected))))
	if s.LookUp || s.Terminate || !s.Again.Equal(at(1)) {
		t.Errorf("the node waits for a protected pod: %+v", s)
	}
	if len(s.Refused) != 1 || s.Refused[0].Name != "keep" {
		t.Errorf("and says for which: %+v", s.Refused)
	}
	early := leaving(func(in *DrainInput) { *in.Node.DeletedAt = ago(4 * time.Second) })
	if s := Drain(early); s.LookUp || s.Again.IsZero() {
		t.Errorf("pods may have been bound while the taint went on: %+v", s)
	}
	if s := Drain(leaving(deadline(noon), pods(named("a")))); !s.LookUp {
		t.Errorf("after the deadline nothing is waited for: %+v", s)
	}
	soon := Drain(leaving(deadline(at(30).Add(500*time.Millisecond)), pods(named("a", protected))))
	if want := noon.Add(500 * time.Millisecond); !soon.Again.Equal(want) {
		t.Errorf("looks again at %s, want %s", soon.Again, want)
	}
}

func TestVolumesOfDrainedPodsAreDetachedFirst(t *testing.T) {
	in := leaving(found(Alive), pods(named("cachefs", ofDaemonSet, tolerating(Cordoned))), func(in *DrainInput) {
		in.Attachments = []Attachment{{Name: "va-data"}, {Name: "va-cache", UsedBy: []world.ObjectName{pod("cachefs")}}}
	})
	s := Drain(in)
	if c := s.Conditions[len(s.Conditions)-1]; s.Terminate || c.Type != VolumesDetached || c.Status != Unknown || !strings.HasSuffix(c.Message, ": va-data") {
		t.Errorf("waits for va-data only: %+v", s)
	}
	in.Attachments = in.Attachments[1:]
	if s := Drain(in); !s.Terminate {
		t.Errorf("the volume of a pod that stays is not waited for: %+v", s)
	}
	in.Attachments = []Attachment{{Name: "va-data"}}
	in.Record.Deadline = &noon
	if s := Drain(in); !s.Terminate {
		t.Errorf("after the deadline no volume is waited for: %+v", s)
	}
}

func TestMark(t *testing.T) {
	fresh := leaving(func(in *DrainInput) {
		in.Node = &Node{Name: "node-1", Ready: true, Held: true}
	}, pods(named("a")))
	s := Drain(fresh)
	if !slices.Equal(s.Node.AddTaints, []world.Taint{Disrupted}) || !s.Node.Cordon || s.Node.Labels[ExcludeFromBalancers] != "karpenter" {
		t.Errorf("marks: %+v", s.Node)
	}
	if !s.DeleteNode || s.DeleteRecord || told(s) != "evict a" {
		t.Errorf("deleting the record deletes the node: %+v", s)
	}
	fresh.Nominated = []Expected{{pod("mine"), "node-1", true}, {pod("theirs"), "node-1", false}}
	if s := Drain(fresh); !slices.Equal(s.Withdraw, []world.ObjectName{pod("mine")}) {
		t.Errorf("nominations that are no longer true: %v", s.Withdraw)
	}
	fresh.Cordon = false
	if s := Drain(fresh); s.Node.Cordon {
		t.Errorf("only Provisioners cordon: %+v", s.Node)
	}
	fresh.Node.Held = false
	if s := Drain(fresh); !s.Node.Hold || !s.DeleteNode {
		t.Errorf("a node that never registered is held too: %+v", s)
	}
	byHand := leaving(func(in *DrainInput) { in.Record.DeletedAt = nil })
	if s := Drain(byHand); !s.DeleteRecord && !s.LookUp {
		t.Errorf("deleting the node deletes the record: %+v", s)
	}
	if s := Drain(leaving(func(in *DrainInput) { in.Record.DeletedAt, in.Node.DeletedAt = nil, nil })); s.DeleteNode || s.DeleteRecord || !s.Node.IsZero() {
		t.Errorf("nothing is being deleted: %+v", s)
	}
}

func TestEndOfTheInstance(t *testing.T) {
	noNode := func(in *DrainInput) { in.Node = nil }
	noRecord := func(in *DrainInput) { in.Record = nil }
	young := func(in *DrainInput) { in.Record.Launched.Since = ago(10 * time.Second) }
	asked := func(in *DrainInput) { in.Record.InstanceTerminating = true }
	notReady := func(in *DrainInput) { in.Node.Ready = false }
	unanswered := func(in *DrainInput) { in.Record.ProviderID, in.Record.Launched = "", world.Condition{Status: Unknown} }
	deletedNow := func(in *DrainInput) { in.Record.DeletedAt = &noon }
	const lookUp, terminate, wait, node, record = "look up", "terminate", "wait", "release node", "release record"
	for name, c := range map[string]struct {
		in   DrainInput
		want string
	}{
		"drained":                               {leaving(), lookUp},
		"drained, alive":                        {leaving(found(Alive)), terminate},
		"drained, terminating":                  {leaving(found(Ending)), wait},
		"drained, terminated":                   {leaving(found(Ended)), node},
		"drained, long unknown":                 {leaving(found(Absent), notReady), node},
		"drained, unknown, yet it reports":      {leaving(found(Absent)), terminate},
		"drained, too new to be known":          {leaving(found(Absent), young), terminate},
		"drained, new, was being terminated":    {leaving(found(Absent), young, asked), node},
		"drained, nobody can tell which":        {leaving(found(Unidentified)), node},
		"drained, known before written":         {leaving(found(Absent), deletedNow, func(in *DrainInput) { in.Record.Launched = world.Condition{} }), terminate},
		"drained, somebody else holds the node": {leaving(found(Ended), func(in *DrainInput) { in.Node.Held = false }), record},
		"pods on a dead node":                   {leaving(notReady, pods(named("a"))), lookUp},
		"pods on a dead node of a dead machine": {leaving(notReady, pods(named("a")), found(Ended)), node},
		"pods on a dead node, machine alive":    {leaving(notReady, pods(named("a")), found(Alive)), wait},
		"pods, machine gone, node still ready":  {leaving(pods(named("a")), found(Ended)), wait},

		"no node":                    {leaving(noNode), lookUp},
		"no node, alive":             {leaving(noNode, found(Alive)), terminate},
		"no node, terminated":        {leaving(noNode, found(Ended)), record},
		"no node, unidentified":      {leaving(noNode, found(Unidentified)), record},
		"never prepared":             {leaving(noNode, unanswered, func(in *DrainInput) { in.Record.LaunchRequest = "" }), record},
		"refused":                    {leaving(noNode, unanswered, func(in *DrainInput) { in.Record.Launched.Status = False }), record},
		"sent, never answered":       {leaving(noNode, unanswered), lookUp},
		"sent, found":                {leaving(noNode, unanswered, found(Alive)), terminate},
		"sent, not found, in flight": {leaving(noNode, unanswered, deletedNow, func(in *DrainInput) { in.Instance = &Instance{State: Absent} }), wait},
		"sent, not found":            {leaving(noNode, unanswered, found(Absent)), record},

		"node without a record":             {leaving(noRecord), lookUp},
		"node without a record, alive":      {leaving(noRecord, found(Alive)), terminate},
		"node without a record, terminated": {leaving(noRecord, found(Absent), notReady), node},
		"node without a record, it reports": {leaving(noRecord, found(Absent)), terminate},
	} {
		t.Run(name, func(t *testing.T) {
			s := Drain(c.in)
			got := wait
			switch {
			case s.LookUp:
				got = lookUp
			case s.Terminate:
				got = terminate
			case s.ReleaseNode:
				got = node
			case s.ReleaseRecord:
				got = record
			case s.Again.IsZero():
				got = "forgotten"
			}
			if got != c.want {
				t.Errorf("got %s, want %s: %+v", got, c.want, s)
			}
			if s.LookUp && (s.Terminate || s.ReleaseNode || s.ReleaseRecord || s.DeleteNode || len(s.Evict) > 0) {
				t.Errorf("looking up is all that is done: %+v", s)
			}
		})
	}
	if s := Drain(leaving(found(Unidentified))); len(s.Events) != 1 || !s.Events[0].Warning {
		t.Errorf("letting go of an instance is said aloud: %+v", s.Events)
	}
}
