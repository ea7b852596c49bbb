package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/internal/core/schedule"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/convert"
	"karpenter/sim/kube"
)

// Pauses of the scheduler, as kube-scheduler has them.
const (
	backoffMin = time.Second
	backoffMax = 10 * time.Second
	// parkedMax is when a pod is tried again although nothing has changed.
	parkedMax = 5 * time.Minute
)

// Scheduler binds pods as kube-scheduler does: those of greater priority first,
// each to its nominated node if that suits, else to the best of those that suit;
// room is kept for nominated pods of the same or greater priority. What it means
// that a node suits is what internal/core/schedule's checker means by it.
//
// It sees the cluster through a cache of its own, which a driver may let lag. It
// preempts nobody, and scores by preferences, soft spread and free room only.
type Scheduler struct {
	// Cache is what the scheduler sees. With Lag set, Step takes what was
	// delivered; else everything.
	Cache *kube.Cache
	Lag   bool

	client  *kube.Client
	volumes *Volumes
	opt     Options

	stage   schedule.Stage
	places  map[string]*place
	sorted  []string // names of places; nil if they have changed
	pods    map[id]*tracked
	waiting map[id]*waiting
	// nominated are unbound pods by the node for which they are nominated.
	nominated map[string]map[id]*tracked

	look  *convert.Lookups
	stale bool // look is
	seen  int  // pods that have come so far
}

// tracked is a pod that has not ended.
type tracked struct {
	pod *corev1.Pod
	as  world.Pod
}

// waiting is a pod without a node.
type waiting struct {
	id
	order     int
	tries     int
	notBefore time.Time
	last      time.Time
	// parked: nothing has changed since it was refused.
	parked bool
}

func newScheduler(k *kube.Cluster, volumes *Volumes, opt Options) *Scheduler {
	s := &Scheduler{Cache: k.Cache("scheduler"), client: k.Client("kube-scheduler"), volumes: volumes, opt: opt, places: map[string]*place{},
		pods: map[id]*tracked{}, waiting: map[id]*waiting{}, nominated: map[string]map[id]*tracked{}, stale: true}
	s.handle(&corev1.Node{}, s.seeNode)
	s.handle(&corev1.Pod{}, s.seePod)
	for _, kind := range []client.Object{&corev1.Namespace{}, &corev1.PersistentVolume{}, &corev1.PersistentVolumeClaim{}, &storagev1.StorageClass{}, &storagev1.CSINode{}} {
		s.handle(kind, func(client.Object, client.Object) { s.stale = true })
	}
	return s
}

// handle listens to a kind, if the cluster has it.
func (s *Scheduler) handle(kind client.Object, f func(old, new client.Object)) {
	if err := s.Cache.Handle(kind, f); err != nil {
		panic(fmt.Sprintf("sim/cluster: the scheduler needs a scheme with Kubernetes' own kinds: %v", err))
	}
}

func (s *Scheduler) seeNode(old, new client.Object) {
	if new == nil {
		name := old.GetName()
		delete(s.places, name)
		s.sorted = nil
		s.stage.Remove(name)
		return
	}
	n := new.(*corev1.Node)
	p := s.places[n.Name]
	if p == nil {
		p = newPlace()
		s.places[n.Name] = p
		s.sorted = nil
		for i, t := range s.pods {
			if t.pod.Spec.NodeName == n.Name {
				p.add(i, t)
			}
		}
	}
	if old == nil || p.node == nil || better(p.node, n) {
		s.wake(anyPod)
	}
	p.become(n)
}

// better reports whether a pod may suit a node that it did not suit before.
func better(old, new *corev1.Node) bool {
	return old.Spec.Unschedulable != new.Spec.Unschedulable || taintsDiffer(old.Spec.Taints, new.Spec.Taints) || !sameMap(old.Labels, new.Labels) ||
		!convert.Resources(old.Status.Allocatable, false).Equal(convert.Resources(new.Status.Allocatable, false))
}

func (s *Scheduler) seePod(old, new client.Object) {
	if new == nil {
		s.forget(old.(*corev1.Pod))
		return
	}
	p := new.(*corev1.Pod)
	i := idOf(p)
	before := s.pods[i]
	if before != nil && before.pod.UID != p.UID {
		s.forget(before.pod)
		before = nil
	}
	if finished(p) {
		if before != nil {
			s.forget(before.pod)
		}
		return
	}
	if before != nil && sameForScheduling(before.pod, p) {
		before.pod = p
		return
	}
	t := &tracked{pod: p, as: s.translate(p)}
	s.pods[i] = t
	if before != nil {
		delete(s.nominated[before.pod.Status.NominatedNodeName], i)
	}
	if p.Spec.NodeName != "" {
		delete(s.waiting, i)
		s.enter(i, t)
		if before == nil || before.pod.Spec.NodeName == "" {
			s.wake(func(w *tracked) bool { return len(w.as.Affinity)+len(w.as.Spread) > 0 }) // they may want to be with it
		}
		return
	}
	s.queue(i, t, before)
}

// queue puts a pod among those that wait.
func (s *Scheduler) queue(i id, t, before *tracked) {
	if node := t.pod.Status.NominatedNodeName; node != "" {
		if s.nominated[node] == nil {
			s.nominated[node] = map[id]*tracked{}
		}
		s.nominated[node][i] = t
	}
	w := s.waiting[i]
	if w == nil {
		s.seen++
		w = &waiting{id: i, order: s.seen}
		s.waiting[i] = w
	}
	if before != nil && (before.pod.Generation != t.pod.Generation || !sameMap(before.pod.Labels, t.pod.Labels)) {
		w.parked = false // it asks for something else now; a nomination alone wakes nobody
	}
}

// forget takes a pod out that has ended or gone.
func (s *Scheduler) forget(p *corev1.Pod) {
	i := idOf(p)
	if t := s.pods[i]; t != nil {
		delete(s.nominated[t.pod.Status.NominatedNodeName], i)
		if pl := s.places[t.pod.Spec.NodeName]; pl != nil {
			pl.remove(i)
			s.wake(anyPod)
		}
	}
	delete(s.pods, i)
	delete(s.waiting, i)
}

func (s *Scheduler) enter(i id, t *tracked) {
	if pl := s.places[t.pod.Spec.NodeName]; pl != nil {
		pl.add(i, t)
	}
}

// sameForScheduling reports whether nothing has changed that decides where a pod
// goes, or what it takes there.
func sameForScheduling(a, b *corev1.Pod) bool {
	return a.Generation == b.Generation && a.Spec.NodeName == b.Spec.NodeName && a.Status.NominatedNodeName == b.Status.NominatedNodeName &&
		(a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil) && len(a.Spec.SchedulingGates) == len(b.Spec.SchedulingGates) && sameMap(a.Labels, b.Labels)
}

// translate is the pod as the rules see it. One that may go to a single node
// only, which daemons are, says nothing else about nodes.
func (s *Scheduler) translate(p *corev1.Pod) world.Pod {
	if p.Spec.NodeName == "" && nodeOf(p) != "" {
		p = p.DeepCopy()
		p.Spec.Affinity.NodeAffinity = nil
	}
	if s.look == nil || !convert.Refers(p) {
		return convert.Pod(p)
	}
	return s.look.Pod(p)
}

// wake lets pods be tried again that were refused.
func (s *Scheduler) wake(which func(*tracked) bool) {
	for i, w := range s.waiting {
		w.parked = w.parked && !which(s.pods[i])
	}
}

func anyPod(*tracked) bool { return true }

// refresh looks anew at what pods refer to.
func (s *Scheduler) refresh() {
	if !s.stale {
		return
	}
	s.stale = false
	s.look = &convert.Lookups{}
	ctx := context.Background()
	for _, list := range []client.ObjectList{&corev1.NamespaceList{}, &corev1.PersistentVolumeList{}, &corev1.PersistentVolumeClaimList{}, &storagev1.StorageClassList{}, &storagev1.CSINodeList{}} {
		_ = s.Cache.List(ctx, list, client.UnsafeDisableDeepCopy) // the kinds were asked for before
		switch l := list.(type) {
		case *corev1.NamespaceList:
			addAll(s.look, l.Items)
		case *corev1.PersistentVolumeList:
			addAll(s.look, l.Items)
		case *corev1.PersistentVolumeClaimList:
			addAll(s.look, l.Items)
		case *storagev1.StorageClassList:
			addAll(s.look, l.Items)
		case *storagev1.CSINodeList:
			addAll(s.look, l.Items)
		}
	}
	for i, t := range s.pods {
		if convert.Refers(t.pod) {
			t.as = s.translate(t.pod)
			s.enter(i, t)
		}
	}
	s.wake(anyPod)
}

func addAll[T any](look *convert.Lookups, items []T) {
	for i := range items {
		look.Add(&items[i])
	}
}

// Step implements [Part].
func (s *Scheduler) Step(now time.Time) time.Time {
	if !s.Lag {
		s.Cache.Deliver(-1)
	}
	s.refresh()
	refused := map[string]string{} // by owner: pods that are alike are refused alike
	for _, w := range s.ready(now) {
		if t := s.pods[w.id]; t != nil {
			s.try(w, t, refused, now)
		}
	}
	var next time.Time
	for _, w := range s.waiting {
		t := s.pods[w.id]
		if t == nil || !s.mayGo(t.pod) {
			continue
		}
		at := w.notBefore
		if w.parked {
			at = w.last.Add(parkedMax)
		}
		if !at.After(now) {
			at = now
		}
		next = earlier(next, at)
	}
	return next
}

func (s *Scheduler) mayGo(p *corev1.Pod) bool {
	return len(p.Spec.SchedulingGates) == 0 && p.DeletionTimestamp == nil && p.Spec.SchedulerName == corev1.DefaultSchedulerName && !s.opt.Hold(p)
}

// ready are the pods to be tried now, in order.
func (s *Scheduler) ready(now time.Time) []*waiting {
	var out []*waiting
	for _, w := range s.waiting {
		due := !w.notBefore.After(now) && (!w.parked || !w.last.Add(parkedMax).After(now))
		if t := s.pods[w.id]; due && t != nil && s.mayGo(t.pod) {
			out = append(out, w)
		}
	}
	slices.SortFunc(out, func(a, b *waiting) int {
		return cmp.Or(cmp.Compare(s.pods[b.id].as.Priority, s.pods[a.id].as.Priority), a.last.Compare(b.last), cmp.Compare(a.order, b.order))
	})
	return out
}

// try makes one attempt at a pod.
func (s *Scheduler) try(w *waiting, t *tracked, refused map[string]string, now time.Time) {
	alike := ""
	if ref := metav1.GetControllerOfNoCopy(t.pod); ref != nil && ref.Kind == "ReplicaSet" && t.pod.Status.NominatedNodeName == "" {
		alike = string(ref.UID)
	}
	why, known := refused[alike]
	node := ""
	if alike == "" || !known {
		node, why = s.choose(t)
	}
	if node != "" {
		if err := s.bind(t, node); err == nil {
			clear(refused)
			return
		}
		w.last, w.notBefore = now, now.Add(backoffMin)
		return
	}
	if alike != "" {
		refused[alike] = why
	}
	w.tries++
	w.last, w.notBefore, w.parked = now, now.Add(min(backoffMin<<min(w.tries-1, 10), backoffMax)), true
	if err := s.refuse(t.pod, why, now); client.IgnoreNotFound(err) != nil {
		w.parked, w.notBefore = false, now.Add(backoffMin)
	}
}

// bind binds a pod and its volumes, and counts it at once.
func (s *Scheduler) bind(t *tracked, node string) error {
	if err := s.volumes.Claim(t.pod, s.places[node].node); err != nil {
		return err
	}
	ctx := context.Background()
	err := s.client.SubResource("binding").Create(ctx, t.pod, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.pod.Namespace, Name: t.pod.Name, UID: t.pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	})
	if err != nil {
		return err
	}
	i := idOf(t.pod)
	delete(s.waiting, i)
	delete(s.nominated[t.pod.Status.NominatedNodeName], i)
	s.places[node].add(i, t)
	return nil
}

// refuse says on a pod that no node suits it. A nomination that did not come
// true is taken away, unless the pod may not preempt.
func (s *Scheduler) refuse(p *corev1.Pod, why string, now time.Time) error {
	ctx := context.Background()
	live := &corev1.Pod{}
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(p), live); err != nil {
		return err
	}
	before := live.Status.DeepCopy()
	set(live, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: why,
		LastTransitionTime: metav1.Time{Time: now.Truncate(time.Second)}})
	if never := live.Spec.PreemptionPolicy; never == nil || *never != corev1.PreemptNever {
		live.Status.NominatedNodeName = ""
	}
	if before.NominatedNodeName == live.Status.NominatedNodeName && slices.EqualFunc(before.Conditions, live.Status.Conditions, sameCondition) {
		return nil
	}
	return s.client.Status().Update(ctx, live)
}

func sameCondition(a, b corev1.PodCondition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

// summary is what the nodes have said, as kube-scheduler puts it.
func summary(nodes int, reasons map[string]int) string {
	var parts []string
	for why, n := range reasons {
		parts = append(parts, fmt.Sprintf("%d %s", n, why))
	}
	slices.Sort(parts)
	if len(parts) == 0 {
		return fmt.Sprintf("0/%d nodes are available.", nodes)
	}
	return fmt.Sprintf("0/%d nodes are available: %s.", nodes, strings.Join(parts, ", "))
}
