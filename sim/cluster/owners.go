package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/sim/kube"
)

const hashLabel = appsv1.DefaultDeploymentUniqueLabelKey

// Owners are Deployments, ReplicaSets, StatefulSets and Jobs at work.
//
// A new revision of a Deployment comes up whole, and the old one goes pod by pod
// as the new pods become ready. Pods of a ReplicaSet are named after its
// Deployment and numbered from 0, and no number comes twice. A pod whose owner
// was never in the world is brought back under a new name when it goes, as a copy.
type Owners struct {
	client *kube.Client
	queue  queue
	// made counts the pods of a ReplicaSet or Job.
	made map[types.UID]int
	// owners that are in the world, or were: those have no name.
	owners map[types.UID]id
	// copies of pods that are to be brought back.
	copies map[id]*corev1.Pod
	// revisions are the hashes of the templates of Deployments.
	revisions map[types.UID]revision
}

type revision struct {
	generation int64
	hash       string
}

func newOwners(k *kube.Cluster) *Owners {
	o := &Owners{client: k.Client("controller-manager"), made: map[types.UID]int{}, owners: map[types.UID]id{}, copies: map[id]*corev1.Pod{}, revisions: map[types.UID]revision{}}
	k.Subscribe(o.see)
	return o
}

func (o *Owners) see(e kube.Event) {
	switch obj := e.Object().(type) {
	case *appsv1.Deployment, *appsv1.ReplicaSet, *appsv1.StatefulSet, *batchv1.Job:
		i := idOf(obj)
		i.Kind = e.Kind()
		if e.New == nil {
			o.owners[obj.GetUID()] = id{}
			o.queue.drop(i)
			return
		}
		o.owners[obj.GetUID()] = i
		o.queue.add(i, time.Time{})
		o.wake(obj)
	case *corev1.Pod:
		if e.Old == nil || e.New == nil || counts(e.Old.(*corev1.Pod)) != counts(obj) {
			o.wake(obj)
			o.lost(e, obj)
		}
	}
}

// standing is what its owner wants to know of a pod.
type standing struct {
	going, ready, bound bool
	phase               corev1.PodPhase
}

func counts(p *corev1.Pod) standing {
	return standing{p.DeletionTimestamp != nil, condition(p, corev1.PodReady) == corev1.ConditionTrue, p.Spec.NodeName != "", p.Status.Phase}
}

// wake looks at the owner of what has changed.
func (o *Owners) wake(obj client.Object) {
	if ref := metav1.GetControllerOfNoCopy(obj); ref != nil {
		if i := o.owners[ref.UID]; i != (id{}) {
			o.queue.add(i, time.Time{})
		}
	}
}

// lost notes a pod that goes and has an owner that never was there to bring it
// back.
func (o *Owners) lost(e kube.Event, p *corev1.Pod) {
	ref := metav1.GetControllerOfNoCopy(p)
	if e.Old == nil || ref == nil || ref.Kind == "DaemonSet" || ref.Kind == "Node" || finished(p) {
		return
	}
	old := e.Old.(*corev1.Pod)
	if _, known := o.owners[ref.UID]; known || old.DeletionTimestamp != nil || e.New != nil && p.DeletionTimestamp == nil {
		return
	}
	i := id{"Pod", p.Namespace, p.Name}
	o.copies[i] = old
	o.queue.add(i, time.Time{})
}

// Step implements [Part].
func (o *Owners) Step(now time.Time) time.Time {
	for _, i := range o.queue.take(now) {
		if err := o.work(i, now); err != nil && !apierrors.IsNotFound(err) {
			o.queue.add(i, now.Add(retry))
		}
	}
	return o.queue.next(now)
}

func (o *Owners) work(i id, now time.Time) error {
	ctx := context.Background()
	switch i.Kind {
	case "Pod":
		if err := o.client.Create(ctx, again(o.copies[i])); err != nil {
			return err
		}
		delete(o.copies, i)
		return nil
	case "Deployment":
		d := &appsv1.Deployment{}
		if err := o.client.Get(ctx, i.key(), d); err != nil || d.DeletionTimestamp != nil {
			return err
		}
		return o.deployment(ctx, d)
	case "ReplicaSet":
		s := &appsv1.ReplicaSet{}
		if err := o.client.Get(ctx, i.key(), s); err != nil || s.DeletionTimestamp != nil {
			return err
		}
		return o.replicaSet(ctx, s)
	case "StatefulSet":
		s := &appsv1.StatefulSet{}
		if err := o.client.Get(ctx, i.key(), s); err != nil || s.DeletionTimestamp != nil {
			return err
		}
		return o.statefulSet(ctx, s)
	}
	j := &batchv1.Job{}
	if err := o.client.Get(ctx, i.key(), j); err != nil || j.DeletionTimestamp != nil {
		return err
	}
	return o.job(ctx, j, now)
}

// again is a pod like the one that went, not bound yet.
func again(p *corev1.Pod) *corev1.Pod {
	out := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, GenerateName: metav1.GetControllerOfNoCopy(p).Name + "-",
		Labels: p.Labels, Annotations: p.Annotations, OwnerReferences: p.OwnerReferences}, Spec: *p.Spec.DeepCopy()}
	out.Spec.NodeName, out.Spec.Hostname = "", ""
	return out
}

// of are the pods of an owner, by name. They are shared.
func (o *Owners) of(ctx context.Context, owner client.Object) ([]corev1.Pod, error) {
	var pods corev1.PodList
	err := o.client.List(ctx, &pods, client.InNamespace(owner.GetNamespace()), client.MatchingFields{byOwner: string(owner.GetUID())}, client.UnsafeDisableDeepCopy)
	return pods.Items, err
}

func active(p *corev1.Pod) bool { return p.DeletionTimestamp == nil && !finished(p) }

func value(n *int32, otherwise int32) int {
	if n == nil {
		return int(otherwise)
	}
	return int(*n)
}

// deployment keeps one ReplicaSet per revision.
func (o *Owners) deployment(ctx context.Context, d *appsv1.Deployment) error {
	hash := o.revision(d)
	var sets appsv1.ReplicaSetList
	if err := o.client.List(ctx, &sets, client.InNamespace(d.Namespace), client.MatchingFields{byOwner: string(d.UID)}, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	replicas := int32(value(d.Spec.Replicas, 1))
	i := slices.IndexFunc(sets.Items, func(s appsv1.ReplicaSet) bool {
		return s.Labels[hashLabel] == hash || s.Labels[hashLabel] == "" && hashOf(&s.Spec.Template) == hash
	})
	if i < 0 {
		return o.client.Create(ctx, newReplicaSet(d, hash, replicas))
	}
	if err := o.scale(ctx, &sets.Items[i], replicas); err != nil {
		return err
	}
	left, err := o.notReady(ctx, &sets.Items[i], replicas)
	if err != nil {
		return err
	}
	for k := range sets.Items {
		if k == i {
			continue
		}
		size := min(int32(value(sets.Items[k].Spec.Replicas, 1)), left)
		left -= size
		if err := o.scale(ctx, &sets.Items[k], size); err != nil {
			return err
		}
	}
	return nil
}

func (o *Owners) revision(d *appsv1.Deployment) string {
	r := o.revisions[d.UID]
	if r.generation != d.Generation {
		r = revision{d.Generation, hashOf(&d.Spec.Template)}
		o.revisions[d.UID] = r
	}
	return r.hash
}

func (o *Owners) scale(ctx context.Context, s *appsv1.ReplicaSet, replicas int32) error {
	if s.Spec.Replicas != nil && *s.Spec.Replicas == replicas {
		return nil
	}
	s = s.DeepCopy()
	s.Spec.Replicas = &replicas
	return o.client.Update(ctx, s)
}

// notReady is how many pods of a ReplicaSet are still missing.
func (o *Owners) notReady(ctx context.Context, s *appsv1.ReplicaSet, replicas int32) (int32, error) {
	pods, err := o.of(ctx, s)
	for i := range pods {
		if p := &pods[i]; active(p) && condition(p, corev1.PodReady) == corev1.ConditionTrue {
			replicas--
		}
	}
	return max(replicas, 0), err
}

func newReplicaSet(d *appsv1.Deployment, hash string, replicas int32) *appsv1.ReplicaSet {
	s := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name + "-" + hash, Labels: map[string]string{}},
		Spec: appsv1.ReplicaSetSpec{Replicas: &replicas, Template: *d.Spec.Template.DeepCopy()}}
	for k, v := range d.Spec.Template.Labels {
		s.Labels[k] = v
	}
	s.Labels[hashLabel] = hash
	s.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))}
	if s.Spec.Template.Labels == nil {
		s.Spec.Template.Labels = map[string]string{}
	}
	s.Spec.Template.Labels[hashLabel] = hash
	s.Spec.Selector = &metav1.LabelSelector{MatchLabels: s.Labels}
	return s
}

// hashOf tells revisions apart.
func hashOf(t *corev1.PodTemplateSpec) string {
	t = t.DeepCopy()
	delete(t.Labels, hashLabel)
	text, _ := json.Marshal(t) // a template can be written
	h := fnv.New32a()
	h.Write(text)
	return rand.SafeEncodeString(fmt.Sprint(h.Sum32()))
}

// replicaSet makes as many pods as it should have.
func (o *Owners) replicaSet(ctx context.Context, s *appsv1.ReplicaSet) error {
	pods, err := o.of(ctx, s)
	if err != nil {
		return err
	}
	pods = slices.DeleteFunc(pods, func(p corev1.Pod) bool { return !active(&p) })
	base := s.Name
	if d := metav1.GetControllerOfNoCopy(s); d != nil && d.Kind == "Deployment" {
		base = d.Name
		o.wake(s) // it may be waiting for pods to be ready
	}
	want := value(s.Spec.Replicas, 1)
	for range want - len(pods) {
		if err := o.next(ctx, s, "ReplicaSet", appsv1.SchemeGroupVersion.String(), base, &s.Spec.Template); err != nil {
			return err
		}
	}
	if len(pods) <= want {
		return nil
	}
	slices.SortStableFunc(pods, surplusFirst)
	for i := range len(pods) - want {
		if err := o.client.Delete(ctx, &pods[i]); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// surplusFirst is the order in which pods go that are too many: not bound, not
// ready, cheap to delete, young.
func surplusFirst(a, b corev1.Pod) int {
	rank := func(p *corev1.Pod) int {
		switch {
		case p.Spec.NodeName == "":
			return 0
		case condition(p, corev1.PodReady) != corev1.ConditionTrue:
			return 1
		}
		return 2
	}
	return cmp.Or(cmp.Compare(rank(&a), rank(&b)), cmp.Compare(cost(&a), cost(&b)),
		b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(b.Name, a.Name))
}

func cost(p *corev1.Pod) int {
	n, err := strconv.Atoi(p.Annotations[corev1.PodDeletionCost])
	if err != nil {
		return 0 // as in Kubernetes
	}
	return n
}

// next makes the next pod of an owner that numbers them.
func (o *Owners) next(ctx context.Context, owner client.Object, kind, version, base string, t *corev1.PodTemplateSpec) error {
	for {
		p := fromTemplate(owner, kind, version, t)
		p.Name = fmt.Sprintf("%s-%d", base, o.made[owner.GetUID()])
		err := o.client.Create(ctx, p)
		if err == nil || apierrors.IsAlreadyExists(err) {
			o.made[owner.GetUID()]++
		}
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
}

func fromTemplate(owner client.Object, kind, version string, t *corev1.PodTemplateSpec) *corev1.Pod {
	t = t.DeepCopy()
	yes := true
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: owner.GetNamespace(), Labels: t.Labels, Annotations: t.Annotations, Finalizers: t.Finalizers,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: &yes, BlockOwnerDeletion: &yes}}}, Spec: t.Spec}
}
