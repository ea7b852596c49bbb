package kube

import (
	"fmt"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// podKind is the kind that has these subresources.
var podKind = corev1.SchemeGroupVersion.WithKind("Pod")

// retryAfterSeconds is how long an eviction is asked to wait whose budget has
// not been looked at since it was changed.
const retryAfterSeconds = 10

// evict is pods/eviction.
func (c *Cluster) evict(k *kind, key client.Object, e *policyv1.Eviction, dry bool) error {
	found, err := k.current(key)
	if err != nil {
		return err
	}
	pod := found.(*corev1.Pod)
	d := deletion{dry: dry}
	if o := e.DeleteOptions; o != nil {
		d.grace, d.preconditions, d.dry = o.GracePeriodSeconds, o.Preconditions, dry || len(o.DryRun) > 0
	}
	if err := k.preconditions(pod, d.preconditions); err != nil {
		return err
	}
	d.preconditions = nil // the budget's and the pod's own writes follow
	if free(pod) {
		return c.delete(k, pod, d)
	}
	budgets := c.budgets(pod)
	if len(budgets) > 1 {
		return broken("This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.")
	}
	if len(budgets) == 1 && !spared(budgets[0], pod) {
		if err := c.spend(budgets[0], pod, d.dry); err != nil {
			return err
		}
	}
	if d.dry {
		return nil
	}
	next := pod.DeepCopy()
	setPodCondition(next, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, LastTransitionTime: c.now(),
		Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting"})
	return c.delete(k, c.succeed(k, pod, next, false), d)
}

// free reports whether a pod may be evicted whatever its budgets say.
func free(p *corev1.Pod) bool {
	return finished(p) || p.Status.Phase == corev1.PodPending || p.DeletionTimestamp != nil
}

// budgets returns those that select the pod, by name.
func (c *Cluster) budgets(p *corev1.Pod) []*policyv1.PodDisruptionBudget {
	k := c.byKind[policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget")]
	if k == nil {
		return nil
	}
	var out []*policyv1.PodDisruptionBudget
	for _, e := range k.within(p.Namespace) {
		b := e.obj.(*policyv1.PodDisruptionBudget)
		if s, err := metav1.LabelSelectorAsSelector(b.Spec.Selector); err == nil && s.Matches(labels.Set(p.Labels)) {
			out = append(out, b)
		}
	}
	return out
}

// spared reports whether the budget does not protect the pod, because it is not
// healthy.
func spared(b *policyv1.PodDisruptionBudget, p *corev1.Pod) bool {
	if ready(p) {
		return false
	}
	always := b.Spec.UnhealthyPodEvictionPolicy != nil && *b.Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow
	return always || b.Status.DesiredHealthy > 0 && b.Status.CurrentHealthy >= b.Status.DesiredHealthy
}

// spend takes one disruption from a budget, or says that there is none.
func (c *Cluster) spend(b *policyv1.PodDisruptionBudget, p *corev1.Pod, dry bool) error {
	if b.Status.ObservedGeneration < b.Generation {
		return tooMany(b, fmt.Sprintf("The disruption budget %s is still being processed by the server.", b.Name), retryAfterSeconds)
	}
	if b.Status.DisruptionsAllowed <= 0 {
		return tooMany(b, fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", b.Name, b.Status.DesiredHealthy, b.Status.CurrentHealthy), 0)
	}
	if dry {
		return nil
	}
	next := b.DeepCopy()
	next.Status.DisruptionsAllowed--
	if next.Status.DisruptedPods == nil {
		next.Status.DisruptedPods = map[string]metav1.Time{}
	}
	next.Status.DisruptedPods[p.Name] = c.now()
	c.succeed(c.byKind[policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget")], b, next, false)
	return nil
}

func tooMany(b *policyv1.PodDisruptionBudget, why string, retrySeconds int32) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests,
		Message: "Cannot evict pod as it would violate the pod's disruption budget.",
		Details: &metav1.StatusDetails{RetryAfterSeconds: retrySeconds, Causes: []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Field: b.Name, Message: why}}},
	}}
}

// bind is pods/binding.
func (c *Cluster) bind(k *kind, key client.Object, b *corev1.Binding, dry bool) error {
	found, err := k.current(key)
	if err != nil {
		return err
	}
	pod := found.(*corev1.Pod)
	switch {
	case b.UID != "" && b.UID != pod.UID:
		return k.conflict(pod.Name, "Precondition failed: UID in precondition: %s, UID in object meta: %s", b.UID, pod.UID)
	case pod.DeletionTimestamp != nil:
		return k.conflict(pod.Name, "pod %s is being deleted, cannot be assigned to a host", pod.Name)
	case pod.Spec.NodeName != "":
		return k.conflict(pod.Name, "pod %s is already assigned to node %q", pod.Name, pod.Spec.NodeName)
	case len(pod.Spec.SchedulingGates) > 0:
		return k.conflict(pod.Name, "pod %s has non-empty .spec.schedulingGates", pod.Name)
	case b.Target.Name == "" || b.Target.Kind != "" && b.Target.Kind != "Node":
		return apierrors.NewBadRequest(fmt.Sprintf("binding of pod %s: target must be a Node with a name", pod.Name))
	}
	next := pod.DeepCopy()
	next.Spec.NodeName = b.Target.Name
	next.Status.NominatedNodeName, next.ManagedFields = "", nil
	for key, value := range b.Annotations {
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, key, value)
	}
	setPodCondition(next, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: c.now()})
	c.succeed(k, pod, next, dry)
	return nil
}

// setPodCondition sets a condition; the time of its last transition stays if it
// was so before.
func setPodCondition(p *corev1.Pod, to corev1.PodCondition) {
	i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == to.Type })
	if i < 0 {
		p.Status.Conditions = append(p.Status.Conditions, to)
		return
	}
	if p.Status.Conditions[i].Status == to.Status {
		to.LastTransitionTime = p.Status.Conditions[i].LastTransitionTime
	}
	p.Status.Conditions[i] = to
}
