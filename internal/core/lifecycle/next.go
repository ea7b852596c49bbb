package lifecycle

import (
	"fmt"
	"time"

	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
)

// Limits are the times after which a machine that does not come up is given
// up, and the pause between nominating pods and opening their node.
type Limits struct {
	// Launch counts from the creation of the record, without the time during which
	// the cloud or our own side of it held the launch back.
	Launch time.Duration
	// Registration counts from when the Registered condition was first set.
	Registration time.Duration
	// NominationLead is the pause; see [Nominations].
	NominationLead time.Duration
}

// DefaultLimits returns the limits of the specification.
func DefaultLimits() Limits {
	return Limits{Launch: 5 * time.Minute, Registration: 15 * time.Minute, NominationLead: 500 * time.Millisecond}
}

// Input is everything that [Next] looks at.
type Input struct {
	Now    time.Time
	Record world.Record
	// Nodes with the provider ID of the record; more than one is a fault.
	Nodes  []Node
	Limits Limits

	// StartupTaints have to go before the node counts as initialised.
	StartupTaints []world.Taint
	// Empty says whether the pool removes empty nodes after a time.
	Empty Emptiness

	// Quiet: it is noted when pods come and go, and the machine counts as
	// consolidatable when none has for this long; nil: the pool does not ask.
	Quiet *time.Duration
	// Seen are the pods that counted when it was last noted, by UID; nil: nobody
	// remembers.
	Seen map[string]bool

	// Stuck says, of a machine that has expired, why some of its pods can never
	// leave it; empty: all can.
	Stuck string

	// RetryAt is when a failed launch may be tried again; zero: now.
	RetryAt time.Time
	// HeldBack is until when a launch was last told to wait its turn; zero: nobody
	// remembers that it was.
	HeldBack time.Time

	Nominations Nominations
	// NominatedUntil is until when pods are expected that were planned for the
	// node after it was bought; zero: none are.
	NominatedUntil time.Time
}

// Emptiness says what becomes of the stamp on empty nodes.
type Emptiness string

// What becomes of the stamp.
const (
	LeaveStamp Emptiness = ""      // the pool is gone or not understood
	Stamp      Emptiness = "stamp" // empty nodes are removed after a time
	NoStamp    Emptiness = "none"  // they are not
)

// Nominations is what is known about the pods for which the machine was bought.
type Nominations struct {
	// Off: pods are not nominated, nodes are opened at once.
	Off bool
	// First and Last are when pods were nominated for this node, by this
	// process; zero: not yet. A restart loses them, which costs one more pause.
	First, Last time.Time
	// Pods are those that still wait for a place, sorted by name.
	Pods []Expected
}

// Expected is a pod without a place.
type Expected struct {
	world.ObjectName
	// Nominated is status.nominatedNodeName; Ours tells whether we wrote it.
	Nominated string
	Ours      bool
}

// Step is what to do now. Its parts are carried out in the order of the
// fields; all of them may be repeated.
type Step struct {
	// Delete gives the record up, for this reason. Nothing else is to be done.
	Delete string
	// Prepare writes the launch down, then Next is asked again; Launch sends it.
	Prepare bool
	Launch  bool
	// Node is what to change on the Node, named in NodeName.
	NodeName string
	Node     NodePatch
	Events   []Event
	// Nominate these pods to the node.
	Nominate []world.ObjectName
	// Joined is the name of the Node to write in the status; empty: no change.
	Joined string
	// PodEvent is when a pod last came or went; nil: no change. Seen is to be
	// remembered for the next time; nil: what was remembered still holds.
	PodEvent   *time.Time
	Seen       map[string]bool
	Conditions []Condition
	// Again is when to look again although nothing happened; zero: never.
	Again time.Time
}

// Next returns what to do to bring the machine of a record up. Records that
// are being deleted are a matter of [Drain].
func Next(in Input) Step {
	r := &in.Record
	switch {
	case r.DeletedAt != nil:
		return Step{}
	case r.Interrupted != "":
		return Step{Delete: Interrupted}
	case in.expired() && (in.Stuck == "" || r.TerminationGrace != nil):
		return Step{Delete: Expired}
	}
	s := next(in)
	switch {
	case in.expired(): // draining it would never end
		s.Events = append(s.Events, Event{true, "DisruptionBlocked", "expiration: " + in.Stuck + "; the node is kept, as its pool sets no terminationGracePeriod"})
		s.Again = earlier(s.Again, in.Now.Add(Recheck))
	case r.Expires != nil && (s.Again.IsZero() || r.Expires.Before(s.Again)):
		s.Again = *r.Expires
	}
	return s
}

// expired reports whether the machine is as old as its record allows.
func (in *Input) expired() bool {
	return in.Record.Expires != nil && !in.Now.Before(*in.Record.Expires)
}

func next(in Input) Step {
	r := &in.Record
	switch {
	case r.Launched.Status == False:
		return Step{Delete: LaunchRefused}
	case !r.Launched.True() || r.ProviderID == "":
		return launch(&in)
	case len(in.Nodes) == 1 && in.Nodes[0].DeletedAt != nil:
		return Step{}
	case len(in.Nodes) == 1 && in.Nodes[0].registered():
		return settle(&in, &in.Nodes[0])
	case r.Registered.True() && len(in.Nodes) == 0:
		// The Node went without passing us, or is not seen yet: Garbage looks
		// at it with more patience.
		return Step{Again: in.Now.Add(Recheck)}
	}
	return join(&in)
}

func launch(in *Input) Step {
	since := in.Record.Created
	if in.HeldBack.After(since) {
		since = in.HeldBack
	}
	giveUp := since.Add(in.Limits.Launch)
	// The last process left it waiting for its turn: it is asked once before its
	// age counts.
	waited := in.Record.Launched.Reason == HeldBack && in.HeldBack.IsZero()
	switch {
	case !in.Now.Before(giveUp) && !waited:
		return Step{Delete: LaunchTimeout}
	case in.Now.Before(in.RetryAt):
		return Step{Again: earlier(in.RetryAt, giveUp)}
	case in.Record.LaunchRequest == "":
		return Step{Prepare: true, Again: giveUp}
	}
	return Step{Launch: true, Again: giveUp}
}

// join waits for exactly one Node and registers it.
func join(in *Input) Step {
	giveUp := registrationStart(&in.Record, in.Now).Add(in.Limits.Registration)
	if !in.Now.Before(giveUp) {
		return Step{Delete: RegistrationTimeout}
	}
	var s Step
	switch len(in.Nodes) {
	case 0:
		s.Conditions = []Condition{{Registered, Unknown, "NodeNotFound", noNode(&in.Record)}}
	case 1:
		s = register(in, &in.Nodes[0])
	default:
		s.Conditions = []Condition{{Registered, Unknown, "MultipleNodesFound",
			fmt.Sprintf("Nodes %q and %q have the same spec.providerID %s; delete the wrong one", in.Nodes[0].Name, in.Nodes[1].Name, in.Record.ProviderID)}}
	}
	s.Again = earlier(s.Again, giveUp)
	return s
}

func noNode(r *world.Record) string {
	image := ""
	if r.ImageID != "" {
		image = ", started from image " + r.ImageID + ","
	}
	return "the machine" + image + " did not register yet: no Node has its provider ID"
}

// registrationStart is when waiting for the Node began. A record that was
// registered once, and whose Node came back bare, begins anew.
func registrationStart(r *world.Record, now time.Time) time.Time {
	if r.Registered.True() {
		return now
	}
	for _, t := range []time.Time{r.Registered.Since, r.Launched.Since, r.Created} {
		if !t.IsZero() {
			return t
		}
	}
	return now
}

// settle does what remains for a registered node: repair, initialise, and
// note whether it is empty.
func settle(in *Input, n *Node) Step {
	s := Step{
		NodeName:   n.Name,
		Joined:     n.Name,
		Conditions: []Condition{holds(Registered)},
		Again:      in.Now.Add(Recheck),
	}
	s.Node.Hold, s.Node.Own = !n.Held, !n.Owned
	if n.has(Unregistered) { // put back by hand, or by a kubelet that was started anew
		s.Node.DropTaints = append(s.Node.DropTaints, Unregistered)
	}
	if !n.initialized() {
		if why := uninitialized(in, n); why != nil {
			s.Conditions = append(s.Conditions, *why)
			s.Events = append(s.Events, findings(in, n, why)...)
			renominate(in, n, &s)
			return s
		}
		s.Node.label(label.Initialized, "true")
	}
	s.Events = append(s.Events, findings(in, n, nil)...)
	s.Again = in.Now.Add(Settled)
	s.Conditions = append(s.Conditions, holds(Initialized))
	stamp(in, n, &s)
	quiet(in, n, &s)
	return s
}

// renominate keeps planned pods pointed to a node that is open but not usable
// yet. Every attempt that fails on a taint of booting costs them their
// nomination, and the attempt that will succeed must find it.
func renominate(in *Input, n *Node, s *Step) {
	s.Nominate = unnominated(in, n)
	if !in.Nominations.Off && len(in.Nominations.Pods) > 0 {
		s.Again = earlier(s.Again, in.Now.Add(NominationPoll))
	}
}

// earlier returns the earlier of two times; the zero time is "never".
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
