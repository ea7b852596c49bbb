package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func budget(name string, allowed int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Generation: 1},
		Spec:   policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		Status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, DisruptionsAllowed: allowed, DesiredHealthy: 1, CurrentHealthy: 1 + allowed}}
}

// evicting is a world with two running pods and these budgets.
func evicting(t *testing.T, budgets ...client.Object) *world {
	w := newWorld(t, pod("a"), pod("b"))
	w.run(w.pod("a"), "n")
	w.run(w.pod("b"), "n")
	w.ok(w.Import(budgets...))
	return w
}

func (w *world) evict(name string, opts ...client.SubResourceCreateOption) error {
	return w.SubResource("eviction").Create(w.t.Context(), pod(name), &policyv1.Eviction{}, opts...)
}

func TestEvictionSpendsTheBudget(t *testing.T) {
	w := evicting(t, budget("pdb", 1))
	w.ok(w.evict("a", client.DryRunAll))
	w.ok(w.evict("a"))
	a := w.pod("a")
	if a.DeletionTimestamp == nil || a.Status.Conditions[len(a.Status.Conditions)-1].Type != corev1.DisruptionTarget {
		t.Errorf("evicted: %+v", a)
	}
	b := &policyv1.PodDisruptionBudget{}
	w.ok(w.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "pdb"}, b))
	if b.Status.DisruptionsAllowed != 0 || len(b.Status.DisruptedPods) != 1 {
		t.Errorf("budget: %+v", b.Status)
	}
	err := w.evict("b")
	w.is(err, apierrors.IsTooManyRequests, "disruption budget")
	if cause := err.(apierrors.APIStatus).Status().Details.Causes[0]; cause.Type != policyv1.DisruptionBudgetCause {
		t.Errorf("cause: %+v", cause)
	}
	w.is(w.evict("b", client.DryRunAll), apierrors.IsTooManyRequests)
	w.ok(w.evict("a")) // it is on its way anyway
	w.is(w.evict("none"), apierrors.IsNotFound)
	if w.pod("b").DeletionTimestamp != nil {
		t.Error("evicted in spite of its budget")
	}
}

func TestEvictionOfWhatIsAnotherByNow(t *testing.T) {
	w := evicting(t)
	uid := types.UID("another")
	w.is(w.SubResource("eviction").Create(t.Context(), pod("a"), &policyv1.Eviction{
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}}), apierrors.IsConflict)
	uid = w.pod("a").UID
	w.ok(w.SubResource("eviction").Create(t.Context(), pod("a"), &policyv1.Eviction{
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}}))
}

func TestTwoBudgetsOnAPod(t *testing.T) {
	w := evicting(t, budget("one", 1), budget("two", 1))
	w.is(w.evict("a"), isBroken, "more than one PodDisruptionBudget")
	elsewhere := budget("three", 0)
	elsewhere.Namespace = "other"
	w = evicting(t, budget("one", 1), elsewhere)
	w.ok(w.evict("a"))
}

func TestABudgetThatWasNotLookedAt(t *testing.T) {
	b := budget("pdb", 1)
	b.Generation = 2
	w := evicting(t, b)
	err := w.evict("a")
	w.is(err, apierrors.IsTooManyRequests)
	if s, ok := apierrors.SuggestsClientDelay(err); !ok || s != 10 {
		t.Errorf("asked to wait %d s, %v", s, ok)
	}
}

func TestPodsThatABudgetDoesNotProtect(t *testing.T) {
	always := policyv1.AlwaysAllow
	strict := budget("pdb", 0)
	strict.Status.CurrentHealthy = 0
	lenient := strict.DeepCopy()
	lenient.Spec.UnhealthyPodEvictionPolicy = &always
	for name, c := range map[string]struct {
		budget  *policyv1.PodDisruptionBudget
		change  func(*corev1.Pod)
		evicted bool
	}{
		"healthy":                    {budget("pdb", 0), func(*corev1.Pod) {}, false},
		"unhealthy, enough others":   {budget("pdb", 0), notReady, true},
		"unhealthy, too few others":  {strict, notReady, false},
		"unhealthy, always":          {lenient, notReady, true},
		"pending":                    {strict, func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }, true},
		"finished":                   {strict, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, true},
		"healthy and always allowed": {lenient, func(*corev1.Pod) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := evicting(t, c.budget.DeepCopy())
			p := w.pod("a")
			c.change(p)
			w.ok(w.Status().Update(t.Context(), p))
			if err := w.evict("a"); (err == nil) != c.evicted {
				t.Errorf("evicted: %v", err)
			}
		})
	}
}

func notReady(p *corev1.Pod) {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == corev1.PodReady {
			p.Status.Conditions[i].Status = corev1.ConditionFalse
		}
	}
}
