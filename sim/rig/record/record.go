// Package record writes down what a world costs and whom it disturbs: machines,
// money, how long pods wait, and which of them are moved, and why.
//
// It imports the rig and the packages whose objects it reads; it changes
// nothing in the world, and empties the log as it reads it. What always holds: every moment of a machine's life and
// of a pod's wait is counted once, in the slot in which it lies.
package record

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "karpenter/api/v1"
	"karpenter/internal/core/quantity"
	"karpenter/internal/kube/dialect"
	"karpenter/internal/kube/intent"
	"karpenter/internal/scenario/cases"
	"karpenter/sim/ec2"
	"karpenter/sim/kube"
	"karpenter/sim/rig"
)

// Reasons for which pods are disturbed, besides the methods of the planner.
const (
	Interruption = "interruption" // the cloud wants the machine back
	Expiration   = "expiration"
	Deletion     = "deletion" // somebody deleted the machine
	Loss         = "loss"     // the machine was gone before its pods
)

// Recorder follows one world.
type Recorder struct {
	rig   *rig.Rig
	price func(ec2.Instance) quantity.Price
	book  book

	machines map[string]ec2.Instance // that are paid for
	pods     map[string]*life        // by namespace and name
	gone     []string                // of them, since the last look
	claims   map[string]*karpv1.NodeClaim
	nodes    map[string]bool
	heirs    map[types.UID][]heir // of owners whose pods were moved
}

// life is what is known of a pod that exists.
type life struct {
	pod     *corev1.Pod
	row     *Pod
	pending bool
	daemon  bool
	// moved is when the pod that it stands in for, or itself, was last moved.
	moved time.Time
	taken bool // it was disturbed: that counts once
}

// heir is a pod that an owner will make in place of one that was moved.
type heir struct{ moved time.Time }

// AnnotationOwner on a pod names whom it counts for, instead of its controller.
const AnnotationOwner = "cases/counts-for"

// prompt is within what time an owner makes the pod that takes the place of
// another.
const prompt = 10 * time.Second

// Attach begins to write down what happens, from now on. price is what a machine
// costs per hour.
func Attach(r *rig.Rig, price func(ec2.Instance) quantity.Price) *Recorder {
	rec := &Recorder{rig: r, price: price, book: newBook(r.Now()), machines: map[string]ec2.Instance{}, pods: map[string]*life{},
		claims: map[string]*karpv1.NodeClaim{}, nodes: map[string]bool{}, heirs: map[types.UID][]heir{}}
	for _, i := range r.Cloud.Instances() {
		if !i.Gone() {
			rec.machine(i, r.Now())
		}
	}
	r.Cloud.Subscribe(func(e ec2.Event) { rec.machine(e.Instance, e.Time) })
	r.Kube.Subscribe(rec.changed)
	r.Watch(rec.look)
	return rec
}

// machine follows what is paid for: from the start of a machine to the moment
// at which it is ended.
func (r *Recorder) machine(i ec2.Instance, at time.Time) {
	_, known := r.machines[i.ID]
	runs := i.State == ec2.Pending || i.State == ec2.Running
	switch {
	case runs && !known:
		i.Since = at // from when it is paid
		r.machines[i.ID] = i
		r.book.slot(at).Launched++
	case !runs && known:
		r.pay(r.machines[i.ID], at)
		r.book.slot(at).Ended++
		delete(r.machines, i.ID)
	}
}

func (r *Recorder) pay(i ec2.Instance, until time.Time) {
	price := r.price(i)
	r.book.spread(i.Since, until, func(s *Slot, d time.Duration) {
		s.spent += int64(price) * d.Milliseconds()
		if i.Market == ec2.Spot {
			s.Spot += d
		} else {
			s.OnDemand += d
		}
	})
}

func key(o metav1.Object) string { return o.GetNamespace() + "/" + o.GetName() }

// changed sees every change of the store.
func (r *Recorder) changed(e kube.Event) {
	switch o := e.Object().(type) {
	case *corev1.Node:
		if e.New == nil {
			delete(r.nodes, o.Name)
		} else {
			r.nodes[o.Name] = true
		}
	case *karpv1.NodeClaim:
		if o.Status.NodeName != "" {
			r.claims[o.Status.NodeName] = o // the last one of a node stays
		}
	case *corev1.Pod:
		r.pod(o, e.New == nil)
	}
}

func (r *Recorder) pod(p *corev1.Pod, gone bool) {
	l := r.pods[key(p)]
	if l == nil || l.pod.UID != p.UID {
		if gone {
			return
		}
		l = r.born(p)
		r.pods[key(p)] = l
	}
	l.pod = p
	if l.daemon {
		if gone {
			delete(r.pods, key(p))
		}
		return
	}
	now := r.rig.Now()
	over := gone || p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	if l.pending && (over || p.Spec.NodeName != "") {
		r.waited(l, now)
		l.pending = false
	}
	if over && l.row.Ended == nil {
		l.row.Ended = &now
		if p.Spec.NodeName != "" && !r.nodes[p.Spec.NodeName] && p.Status.Phase != corev1.PodSucceeded {
			r.disturbed(l, now)
		}
	}
	if gone {
		r.gone = append(r.gone, key(p))
	}
}

// born takes a pod into the books, and finds out for which one it stands in.
func (r *Recorder) born(p *corev1.Pod) *life {
	l := &life{pod: p, pending: p.Spec.NodeName == ""}
	ref := metav1.GetControllerOfNoCopy(p)
	owner := key(p)
	if ref != nil {
		owner = p.Namespace + "/" + cmp.Or(p.Annotations[AnnotationOwner], ref.Name)
		l.daemon = ref.Kind == "DaemonSet" || ref.Kind == "Node"
	}
	if l.daemon {
		return l
	}
	now := r.rig.Now()
	if ref != nil {
		for waiting := r.heirs[ref.UID]; len(waiting) > 0; waiting = r.heirs[ref.UID] {
			first := waiting[0]
			r.heirs[ref.UID] = waiting[1:]
			if now.Sub(first.moved) <= prompt {
				l.moved = first.moved
				break
			}
		}
	}
	l.row = r.book.newPod(p.Namespace+"/"+p.Name, owner, now)
	return l
}

func (r *Recorder) waited(l *life, until time.Time) {
	l.row.Pending += until.Sub(l.row.Created)
	r.book.spread(l.row.Created, until, func(s *Slot, d time.Duration) { s.Pending += d })
}

// look reads what the processes have done to pods, after everything that
// happens, and takes it out of the log: that of a week would be too long to keep.
func (r *Recorder) look() {
	log := r.rig.Log
	for _, e := range log.Events {
		if l := r.pods[e.Subject]; l != nil && !l.daemon && (e.Kind == cases.Evicted || e.Kind == cases.PodDeleted) {
			r.disturbed(l, r.rig.Now())
		}
	}
	log.Events, log.Texts, log.Calls = log.Events[:0], log.Texts[:0], log.Calls[:0]
	for _, k := range r.gone {
		if l := r.pods[k]; l != nil && l.row.Ended != nil {
			delete(r.pods, k)
		}
	}
	r.gone = r.gone[:0]
}

// disturbed writes down that a pod has to leave its machine.
func (r *Recorder) disturbed(l *life, now time.Time) {
	if l.taken {
		return
	}
	l.taken = true
	why := r.why(l.pod.Spec.NodeName, now)
	d := Disruption{At: now, Pod: l.row.Name, Owner: l.row.Owner, Node: l.pod.Spec.NodeName, Reason: why}
	if !l.moved.IsZero() {
		d.Before = new(now.Sub(l.moved))
	}
	l.row.Disrupted = why
	r.book.disruption(d)
	if ref := metav1.GetControllerOfNoCopy(l.pod); ref != nil {
		r.heirs[ref.UID] = append(r.heirs[ref.UID], heir{now})
	}
}

// why the pods of a node have to leave.
func (r *Recorder) why(node string, now time.Time) string {
	c := r.claims[node]
	switch {
	case c == nil || c.DeletionTimestamp == nil:
		return Loss
	case c.Annotations[dialect.AnnotationInterrupted] != "":
		return Interruption
	}
	if in, marked, err := intent.Read(c.Annotations); marked && err == nil {
		return in.Method
	}
	if d, err := time.ParseDuration(c.Spec.ExpireAfter); err == nil && !now.Before(c.CreationTimestamp.Add(d)) {
		return Expiration
	}
	return Deletion
}

// Running is how many machines are paid for.
func (r *Recorder) Running() int { return len(r.machines) }

// Sample notes what the pods that exist now would cost per hour on an empty
// cluster.
func (r *Recorder) Sample(ideal quantity.Price) {
	s := r.book.slot(r.rig.Now())
	s.ideal, s.samples = s.ideal+ideal, s.samples+1
}

// Report closes the books and sums up what has happened until now. It may be
// called once.
func (r *Recorder) Report() *Report {
	now := r.rig.Now()
	for _, id := range slices.Sorted(maps.Keys(r.machines)) {
		r.pay(r.machines[id], now)
	}
	for _, k := range slices.Sorted(maps.Keys(r.pods)) {
		if l := r.pods[k]; !l.daemon && l.pending {
			r.waited(l, now)
			l.row.Waits = true
		}
	}
	return r.book.report(now)
}
