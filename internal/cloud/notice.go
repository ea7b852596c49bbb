package cloud

import "time"

// Notice is news from the cloud about machines: that it will take them away,
// has done so, or thinks that they are not well.
type Notice struct {
	Kind NoticeKind
	// ID tells a repeated notice from a new one; empty if the cloud gave none.
	ID string
	// Instances are the ids of the machines; never empty unless Kind is
	// NoNotice. They may belong to others.
	Instances []string
	// At is when the cloud said it; zero if it did not say when.
	At time.Time
	// Deadline is when the cloud will end the machines; zero if it has ended
	// them already or did not say.
	Deadline time.Time
	// Detail is more, in the words of the cloud: the state, the code of the
	// event. Where Kind is NoNotice it says why nothing was read.
	Detail string
}

// NoticeKind says what a notice is about.
type NoticeKind string

// The kinds of notice.
const (
	// NoNotice: nothing that concerns machines; it is not looked at again.
	NoNotice NoticeKind = "none"
	// SpotInterrupted: a spot machine is wanted back.
	SpotInterrupted NoticeKind = "spot_interrupted"
	// RebalanceRecommended: a spot machine is likelier than others to be wanted
	// back. It says nothing about when.
	RebalanceRecommended NoticeKind = "rebalance_recommended"
	// ScheduledChange: a machine will be stopped, restarted or retired.
	ScheduledChange NoticeKind = "scheduled_change"
	// InstanceStopped: a machine stops, or has.
	InstanceStopped NoticeKind = "instance_stopped"
	// InstanceTerminated: a machine ends, or has.
	InstanceTerminated NoticeKind = "instance_terminated"
	// ReservationInterrupted: the capacity under a machine is wanted back.
	ReservationInterrupted NoticeKind = "capacity_reservation_interrupted"
	// InstanceImpaired and SystemImpaired: the cloud finds that a machine, or
	// what it runs on, is out of order.
	InstanceImpaired NoticeKind = "instance_status"
	SystemImpaired   NoticeKind = "system_status"
)

// EndsMachine reports whether the machines of such a notice are lost, so that
// they are emptied at once.
func (k NoticeKind) EndsMachine() bool { return k != NoNotice && k != RebalanceRecommended }

// Delivery is a notice as it came in. It comes again, some time later, unless
// it is acknowledged.
type Delivery struct {
	Notice
	// Receipt names the delivery to the cloud.
	Receipt string
	// Sent is when the notice was put on its way, and Received how often it
	// came, this time included; zero if the cloud does not say.
	Sent     time.Time
	Received int
}
