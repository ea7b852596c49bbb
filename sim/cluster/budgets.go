package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/sim/kube"
)

// disruptedFor is how long an accepted eviction counts against a budget without
// being seen.
const disruptedFor = 2 * time.Minute

// Budgets is the disruption controller: it counts, for every
// PodDisruptionBudget, how many of its pods may be evicted now.
type Budgets struct {
	client *kube.Client
	queue  queue
	pods   map[id]*corev1.Pod
	known  map[id]*selected
}

// selected are the pods that a budget selects, by name.
type selected struct {
	labels.Selector
	pods map[string]*corev1.Pod
}

// list is in the order of names.
func (s *selected) list() []*corev1.Pod {
	out := slices.Collect(maps.Values(s.pods))
	slices.SortFunc(out, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func newBudgets(k *kube.Cluster) *Budgets {
	b := &Budgets{client: k.Client("disruption-controller"), pods: map[id]*corev1.Pod{}, known: map[id]*selected{}}
	k.Subscribe(b.see)
	return b
}

func (b *Budgets) see(e kube.Event) {
	switch o := e.Object().(type) {
	case *policyv1.PodDisruptionBudget:
		b.seeBudget(e, o)
	case *corev1.Pod:
		b.seePod(e, o)
	case *appsv1.ReplicaSet, *appsv1.StatefulSet:
		for i := range b.known { // its size is what a percentage is of
			if i.Namespace == o.GetNamespace() {
				b.queue.add(i, time.Time{})
			}
		}
	}
}

func (b *Budgets) seeBudget(e kube.Event, o *policyv1.PodDisruptionBudget) {
	i := idOf(o)
	if e.New == nil {
		delete(b.known, i)
		b.queue.drop(i)
		return
	}
	b.queue.add(i, time.Time{})
	if e.Old != nil && e.Old.GetGeneration() == o.Generation {
		return
	}
	selector, err := metav1.LabelSelectorAsSelector(o.Spec.Selector)
	if err != nil {
		selector = labels.Nothing()
	}
	b.known[i] = &selected{selector, map[string]*corev1.Pod{}}
	for k, p := range b.pods {
		if k.Namespace == i.Namespace && selector.Matches(labels.Set(p.Labels)) {
			b.known[i].pods[p.Name] = p
		}
	}
}

func (b *Budgets) seePod(e kube.Event, p *corev1.Pod) {
	b.pods[idOf(p)] = p
	if e.New == nil {
		delete(b.pods, idOf(p))
	}
	for i, s := range b.known {
		if i.Namespace != p.Namespace {
			continue
		}
		_, was := s.pods[p.Name]
		is := e.New != nil && s.Matches(labels.Set(p.Labels))
		if is {
			s.pods[p.Name] = p
		} else {
			delete(s.pods, p.Name)
		}
		if was || is {
			b.queue.add(i, time.Time{})
		}
	}
}

// Step implements [Part].
func (b *Budgets) Step(now time.Time) time.Time {
	for _, i := range b.queue.take(now) {
		again, err := b.count(i, now)
		if client.IgnoreNotFound(err) != nil {
			again = now.Add(retry)
		}
		if !again.IsZero() {
			b.queue.add(i, again)
		}
	}
	return b.queue.next(now)
}

// count writes the status of one budget, and returns when an eviction that was
// not seen stops to count.
func (b *Budgets) count(i id, now time.Time) (again time.Time, err error) {
	ctx := context.Background()
	budget := &policyv1.PodDisruptionBudget{}
	if err := b.client.Get(ctx, i.key(), budget); err != nil {
		return again, err
	}
	pods := b.known[i].list()
	before := budget.Status.DeepCopy()
	s := &budget.Status
	disrupted := map[string]metav1.Time{}
	for _, p := range pods {
		at, ok := s.DisruptedPods[p.Name]
		if end := at.Add(disruptedFor); ok && p.DeletionTimestamp == nil && end.After(now) {
			disrupted[p.Name] = at
			again = earlier(again, end)
		}
	}
	expected, desired, err := b.expected(budget, pods)
	s.ObservedGeneration = budget.Generation
	s.CurrentHealthy = healthy(pods, disrupted)
	s.DisruptedPods = nil
	if len(disrupted) > 0 {
		s.DisruptedPods = disrupted
	}
	if err != nil { // it cannot be said what is enough, so nothing may go
		s.DisruptionsAllowed = 0
		say(s, budget.Generation, now, metav1.ConditionFalse, policyv1.SyncFailedReason, err.Error())
	} else {
		s.ExpectedPods, s.DesiredHealthy = expected, desired
		s.DisruptionsAllowed = max(s.CurrentHealthy-desired, 0)
		if expected <= 0 {
			s.DisruptionsAllowed = 0
		}
		if s.DisruptionsAllowed > 0 {
			say(s, budget.Generation, now, metav1.ConditionTrue, policyv1.SufficientPodsReason, "")
		} else {
			say(s, budget.Generation, now, metav1.ConditionFalse, policyv1.InsufficientPodsReason, "")
		}
	}
	if equality.Semantic.DeepEqual(before, s) {
		return again, nil
	}
	return again, b.client.Status().Update(ctx, budget)
}

func say(s *policyv1.PodDisruptionBudgetStatus, generation int64, now time.Time, status metav1.ConditionStatus, reason, message string) {
	apimeta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: policyv1.DisruptionAllowedCondition, Status: status, Reason: reason, Message: message,
		ObservedGeneration: generation, LastTransitionTime: metav1.Time{Time: now.Truncate(time.Second)}})
}

func healthy(pods []*corev1.Pod, disrupted map[string]metav1.Time) (n int32) {
	for _, p := range pods {
		if _, going := disrupted[p.Name]; !going && p.DeletionTimestamp == nil && condition(p, corev1.PodReady) == corev1.ConditionTrue {
			n++
		}
	}
	return n
}

// expected is how many pods there should be, and how many of them must be
// healthy. Where the budget is a share, or says how many may be missing, the
// first is what the owners of the pods ask for.
func (b *Budgets) expected(budget *policyv1.PodDisruptionBudget, pods []*corev1.Pod) (expected, desired int32, err error) {
	least, most := budget.Spec.MinAvailable, budget.Spec.MaxUnavailable
	switch {
	case most != nil:
		if expected, err = b.scale(pods); err != nil {
			return 0, 0, err
		}
		n, err := intstr.GetScaledValueFromIntOrPercent(most, int(expected), true)
		return expected, max(expected-int32(n), 0), err
	case least != nil && least.Type == intstr.Int:
		return int32(len(pods)), least.IntVal, nil
	case least != nil:
		if expected, err = b.scale(pods); err != nil {
			return 0, 0, err
		}
		n, err := intstr.GetScaledValueFromIntOrPercent(least, int(expected), true)
		return expected, int32(n), err
	}
	return int32(len(pods)), 0, nil
}

// scale adds up what the owners of the pods ask for. An owner that is not in the
// world counts with the pods that it has.
func (b *Budgets) scale(pods []*corev1.Pod) (total int32, err error) {
	seen := map[types.UID]bool{}
	for _, p := range pods {
		ref := metav1.GetControllerOfNoCopy(p)
		if ref == nil {
			return 0, fmt.Errorf("found no controllers for pod %q", p.Name)
		}
		if seen[ref.UID] {
			continue
		}
		seen[ref.UID] = true
		n, err := b.replicas(p.Namespace, ref)
		if err != nil {
			return 0, err
		}
		if n == nil {
			for _, other := range pods {
				if r := metav1.GetControllerOfNoCopy(other); r != nil && r.UID == ref.UID {
					total++
				}
			}
			continue
		}
		total += *n
	}
	return total, nil
}

// replicas is how many pods an owner asks for; nil if it is not in the world, or
// has no such number.
func (b *Budgets) replicas(namespace string, ref *metav1.OwnerReference) (*int32, error) {
	var n *int32
	var err error
	key, ctx, one := client.ObjectKey{Namespace: namespace, Name: ref.Name}, context.Background(), int32(1)
	switch ref.Kind {
	case "ReplicaSet":
		o := &appsv1.ReplicaSet{}
		if err = b.client.Get(ctx, key, o); err == nil {
			n = or(o.Spec.Replicas, &one)
		}
	case "StatefulSet":
		o := &appsv1.StatefulSet{}
		if err = b.client.Get(ctx, key, o); err == nil {
			n = or(o.Spec.Replicas, &one)
		}
	}
	return n, client.IgnoreNotFound(err)
}

func or[T any](value, otherwise *T) *T {
	if value != nil {
		return value
	}
	return otherwise
}

// condition is the status of a condition of a pod.
func condition(p *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == kind {
			return p.Status.Conditions[i].Status
		}
	}
	return ""
}
