package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"karpenter/internal/core/world"
)

// Times of a drain.
const (
	// leastDrain is how long after its deletion a node is watched at least, so
	// that pods which were bound while the taint went on are seen.
	leastDrain = 5 * time.Second
	// stuckAfter: a pod still there this long after its grace has a kubelet
	// that is gone.
	stuckAfter = time.Minute
	// unseen is how long a new instance may be missing from the cloud's answers.
	unseen = time.Minute
	// inFlight is how long after its deletion a record whose launch was sent,
	// but never answered, is held: the instance may still appear. What appears
	// later has no record, and Garbage finds it by its tags.
	inFlight = 10 * time.Second
)

// DrainInput is everything that [Drain] looks at.
type DrainInput struct {
	Now time.Time
	// Record is nil for a Node that has no NodeClaim any more.
	Record *world.Record
	// Node is nil when none has joined, or when it has gone.
	Node *Node
	// Instance is nil as long as nobody has looked; see DrainStep.LookUp.
	Instance *Instance
	// Attachments of volumes to the node.
	Attachments []Attachment
	// Nominated are the pods for which room is kept on the node.
	Nominated []Expected
	// Cordon: the pool's nodes are also made unschedulable, and pods that
	// tolerate that stay (v1alpha5). Otherwise pods that tolerate the
	// disruption taint stay.
	Cordon bool
	// EndAnnounced: the machine ends at the deadline whatever anybody wants,
	// so no pod may refuse to be evicted.
	EndAnnounced bool
}

// Instance is a machine as the cloud knows it.
type Instance struct {
	ID         string
	ProviderID string
	// Claim and Token are read from its tags.
	Claim, Token string
	Launched     time.Time
	State        InstanceState
	// Problem says, for [Unidentified], what is wrong with the provider ID.
	Problem string
}

// InstanceState is how far an instance has come.
type InstanceState string

// States of an instance.
const (
	Alive        InstanceState = "alive"        // exists, in whatever form
	Ending       InstanceState = "ending"       // terminating
	Ended        InstanceState = "ended"        // terminated
	Absent       InstanceState = "absent"       // the cloud does not know it
	Unidentified InstanceState = "unidentified" // nobody can tell which it is
)

// Attachment is a volume that is attached to the node, with the pods of the
// node that use it.
type Attachment struct {
	Name   string
	UsedBy []world.ObjectName
}

// DrainStep is what to do now. Its parts are carried out in the order of the
// fields; all of them may be repeated.
type DrainStep struct {
	Node   NodePatch
	Events []Event
	// DeleteRecord and DeleteNode ask the API server to delete the other half.
	DeleteRecord, DeleteNode bool
	Withdraw                 []world.ObjectName // take our nomination back
	Evict                    []world.ObjectName // through the Eviction API
	Remove                   []Removal          // deleted directly
	// Refused are pods of whose eviction it would be the turn, but people asked
	// that they not be moved.
	Refused []world.ObjectName
	// LookUp: look the instance up and ask again; nothing else is to be done.
	LookUp     bool
	Terminate  bool
	Conditions []Condition
	// ReleaseNode and ReleaseRecord take our finalizer off.
	ReleaseNode, ReleaseRecord bool
	// Again is when to look again although nothing happened; zero: never.
	Again time.Time
}

// Removal deletes a pod directly, with this grace.
type Removal struct {
	Pod          world.ObjectName
	GraceSeconds int64
}

// Drain returns what to do to bring a machine down whose record or Node is
// being deleted.
func Drain(in DrainInput) DrainStep {
	r, n := in.Record, in.Node
	if (r == nil || r.DeletedAt == nil) && (n == nil || n.DeletedAt == nil) {
		return DrainStep{}
	}
	s := DrainStep{DeleteRecord: r != nil && r.DeletedAt == nil}
	if r != nil && unanswered(r) && in.Instance == nil {
		return DrainStep{LookUp: true} // its instance may even have joined
	}
	if n == nil {
		endInstance(&in, &s)
		return s
	}
	s.DeleteNode = n.DeletedAt == nil
	if !n.Ready {
		if in.Instance == nil {
			return DrainStep{LookUp: true}
		}
		if in.gone() { // a dead node of a dead machine is not drained
			in.release(&s)
			return s
		}
	}
	mark(&in, &s)
	if emptied(&in, &s) && detached(&in, &s) {
		endInstance(&in, &s)
	}
	if !n.Ready && !s.Again.IsZero() {
		s.Again = in.Now.Add(InstancePoll) // each look costs a call to the cloud
	}
	return s
}

// unanswered reports whether a launch was sent, or may have been, whose outcome
// was never written down.
func unanswered(r *world.Record) bool {
	return r.ProviderID == "" && r.LaunchRequest != "" && r.Launched.Status != False
}

// mark keeps new pods and traffic off the node, and frees the pods that were
// pointed to it. A finalizer is put on a node
// that never had one, so that it outlives its instance too.
func mark(in *DrainInput, s *DrainStep) {
	n := in.Node
	if !n.has(Disrupted) {
		s.Node.AddTaints = append(s.Node.AddTaints, Disrupted)
	}
	if n.Labels[ExcludeFromBalancers] == "" {
		s.Node.label(ExcludeFromBalancers, "karpenter")
	}
	s.Node.Cordon = in.Cordon && !n.Unschedulable
	s.Node.Hold = !n.Held && n.DeletedAt == nil
	for _, p := range in.Nominated {
		if p.Ours {
			s.Withdraw = append(s.Withdraw, p.ObjectName)
		}
	}
}

// emptied sees to it that the pods go, and reports whether all have gone that
// must.
func emptied(in *DrainInput, s *DrainStep) bool {
	deadline := in.deadline()
	if deadline != nil && !in.Now.Before(*deadline) {
		s.Conditions = append(s.Conditions, Condition{Drained, False, "TerminationGracePeriodElapsed", "the deadline of the node has passed; what was left on it goes with it"})
		return true
	}
	var left []*world.Pod
	for i := range in.Node.Pods {
		if in.mustGo(&in.Node.Pods[i]) {
			left = append(left, &in.Node.Pods[i])
		}
	}
	if len(left) == 0 {
		if at := in.Node.DeletedAt; at == nil || in.Now.Before(at.Add(leastDrain)) {
			s.Again = in.Now.Add(DrainPoll)
			return false
		}
		s.Conditions = append(s.Conditions, holds(Drained))
		return true
	}
	s.Again = in.Now.Add(DrainPoll)
	s.Conditions = append(s.Conditions, Condition{Drained, Unknown, "Draining", fmt.Sprintf("%d pods have to go", len(left))})
	evict(in, left, s)
	return false
}

// mustGo reports whether the machine waits for the pod.
func (in *DrainInput) mustGo(p *world.Pod) bool {
	taint := Disrupted
	if in.Cordon {
		taint = Cordoned
	}
	stuck := p.DeletedAt != nil && in.Now.After(p.DeletedAt.Add(stuckAfter))
	return !p.Finished && !p.IsStatic() && !stuck && !world.Tolerated(taint, p.Tolerations)
}

// wave is the order of eviction: workloads before daemons, what the cluster
// cannot do without last.
func wave(p *world.Pod) int {
	w := 0
	if p.IsDaemon() {
		w++
	}
	if p.Critical {
		w += 2
	}
	return w
}

// evict chooses the pods of the current wave that are told to go now. Before the
// deadline a pod is deleted as soon as what is left of the time is its own
// grace; that holds for all waves.
func evict(in *DrainInput, left []*world.Pod, s *DrainStep) {
	slices.SortStableFunc(left, func(a, b *world.Pod) int {
		return cmp.Or(cmp.Compare(wave(a), wave(b)), a.Compare(b.ObjectName))
	})
	current := wave(left[0])
	deadline := in.deadline()
	for _, p := range left {
		if deadline != nil {
			cut := deadline.Add(-time.Duration(p.GraceSeconds) * time.Second)
			switch {
			case p.DeletedAt != nil && p.DeletedAt.After(*deadline),
				p.DeletedAt == nil && !in.Now.Before(cut):
				s.Remove = append(s.Remove, Removal{p.ObjectName, graceLeft(deadline.Sub(in.Now))})
				continue
			case p.DeletedAt == nil:
				s.Again = earlier(s.Again, cut)
			}
		}
		switch {
		case p.DeletedAt != nil || wave(p) != current:
		case p.Protected(in.Now) && !in.EndAnnounced:
			s.Refused = append(s.Refused, p.ObjectName)
		default:
			s.Evict = append(s.Evict, p.ObjectName)
		}
	}
}

// graceLeft is the grace to send: whole seconds, rounded down so that the pod
// ends in time, but not 0, which would kill it without a word.
func graceLeft(d time.Duration) int64 { return max(1, int64(d/time.Second)) }

func (in *DrainInput) deadline() *time.Time {
	if in.Record == nil {
		return nil
	}
	return in.Record.Deadline
}

// detached reports whether the volumes of the pods that went are off the node.
// Those of pods that stay would never go.
func detached(in *DrainInput, s *DrainStep) bool {
	if d := in.deadline(); d != nil && !in.Now.Before(*d) {
		if len(in.Attachments) > 0 {
			s.Conditions = append(s.Conditions, Condition{VolumesDetached, False, "TerminationGracePeriodElapsed", "the deadline of the node has passed before its volumes were detached"})
		}
		return true
	}
	stays := map[world.ObjectName]bool{}
	for i := range in.Node.Pods {
		if p := &in.Node.Pods[i]; !p.Finished && !in.mustGo(p) && p.DeletedAt == nil {
			stays[p.ObjectName] = true
		}
	}
	var waiting []string
	for _, a := range in.Attachments {
		if !slices.ContainsFunc(a.UsedBy, func(p world.ObjectName) bool { return stays[p] }) {
			waiting = append(waiting, a.Name)
		}
	}
	if len(waiting) == 0 {
		s.Conditions = append(s.Conditions, holds(VolumesDetached))
		return true
	}
	s.Conditions = append(s.Conditions, Condition{VolumesDetached, Unknown, "AwaitingVolumeDetachment", "still attached: " + list(waiting)})
	s.Again = in.Now.Add(DrainPoll)
	return false
}

// endInstance terminates the instance, waits until the cloud says that it is
// gone, and then lets go of the objects: first the Node, then the record.
func endInstance(in *DrainInput, s *DrainStep) {
	r := in.Record
	switch {
	case r != nil && r.ProviderID == "" && !unanswered(r) && in.Node == nil:
		s.ReleaseRecord = true // nothing was ever launched
	case in.Instance == nil:
		*s = DrainStep{LookUp: true}
	case in.Instance.State == Unidentified:
		s.Events = append(s.Events, Event{true, "InstanceUnidentified",
			"the object is let go without terminating an instance: " + in.Instance.Problem + "; if a machine is still running, terminate it by hand"})
		in.release(s)
	case in.gone():
		in.release(s)
	default:
		s.Again = in.Now.Add(InstancePoll)
		s.Terminate = in.Instance.ID != "" && in.Instance.State != Ending
		if s.Terminate && in.Instance.State == Alive {
			s.Conditions = append(s.Conditions, holds(InstanceTerminating))
		}
		if in.Instance.State == Absent && in.vanished() {
			s.Events = append(s.Events, Event{true, "InstanceNotFound",
				"the cloud does not know the instance, yet its kubelet reports: check the region and the credentials of the controller; the node is held until one of the two is over"})
		}
	}
}

// alive reports whether a kubelet still speaks for the machine.
func (in *DrainInput) alive() bool { return in.Node != nil && in.Node.Ready }

// gone reports whether the instance will never be seen again. One that the
// cloud does not know may be looked for in the wrong place: a kubelet that
// reports is better proof, unless we ended the instance ourselves.
func (in *DrainInput) gone() bool {
	switch in.Instance.State {
	case Ended:
		return true
	case Absent:
		ended := in.Record != nil && in.Record.InstanceTerminating
		return ended || in.vanished() && !in.alive()
	}
	return false
}

// vanished reports whether an instance that the cloud does not know is too old
// to be merely too new to be known.
func (in *DrainInput) vanished() bool {
	r := in.Record
	if r == nil {
		return true
	}
	since, patience := r.Launched.Since, unseen
	if r.ProviderID == "" {
		patience = inFlight
	}
	if !r.Launched.True() && r.DeletedAt != nil { // when it was launched was never written down
		since = *r.DeletedAt
	}
	return !in.Now.Before(since.Add(patience))
}

// release lets go of the Node first, so that the record outlives it. A Node
// that somebody else holds is not waited for.
func (in *DrainInput) release(s *DrainStep) {
	if in.Node != nil && (in.Node.Held || s.DeleteNode) {
		s.ReleaseNode = !s.DeleteNode
		s.Again = in.Now.Add(DrainPoll)
		return
	}
	s.ReleaseRecord = in.Record != nil && !s.DeleteRecord
}

// list writes the first few names and how many more there are.
func list(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
