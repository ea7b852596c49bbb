package drain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"karpenter/internal/core/lifecycle"
	"karpenter/internal/core/world"
)

// Pauses between evictions of the same pod.
const (
	retryMin = 100 * time.Millisecond
	retryMax = 10 * time.Second
	// hopeless is the pause where only a person can change the answer.
	hopeless = 30 * time.Second
	// settled is how long an accepted eviction may take to be seen.
	settled = 5 * time.Second
)

// try is what is remembered of the evictions of one pod.
type try struct {
	fails     int
	notBefore time.Time
	refusal   string // what was answered last, for people
}

// evict asks for the pods of the step to go, each not more often than its pause
// allows, and returns when the first pause ends. A refusal stops nobody else.
// What the node waits for is said in one event, which names pods and budgets.
func (c *Controller) evict(ctx context.Context, p *pass, step lifecycle.DrainStep) time.Time {
	var again time.Time
	var waits []string
	for _, pod := range step.Refused {
		waits = append(waits, fmt.Sprintf("pod %s must not be evicted (annotation karpenter.sh/do-not-evict or do-not-disrupt): delete it, or take the annotation off", pod))
	}
	for _, pod := range named(p.pods, step.Evict) {
		t := c.try(p.node.Name, pod.UID)
		if p.in.Now.Before(t.notBefore) {
			again = earlier(again, t.notBefore)
			if t.refusal != "" {
				waits = append(waits, t.refusal)
			}
			continue
		}
		err := c.Ledger.Client.SubResource("eviction").Create(ctx, pod.DeepCopy(), &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
			DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}},
		})
		c.Metrics.evicted(err)
		switch {
		case err == nil:
			c.Events.Event(pod, corev1.EventTypeNormal, "Evicted", fmt.Sprintf("node %s is being removed", p.node.Name))
			c.tried(p.node.Name, pod.UID, try{notBefore: p.in.Now.Add(settled)})
		case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
			// Gone, or another pod has its name by now.
		default:
			t.fails++
			budgets := c.budgets(ctx, pod)
			t.refusal, t.notBefore = refusal(pod, budgets, err), p.in.Now.Add(pause(t.fails))
			if len(budgets) > 1 {
				t.notBefore = p.in.Now.Add(hopeless)
			}
			c.tried(p.node.Name, pod.UID, t)
			again = earlier(again, t.notBefore)
			waits = append(waits, t.refusal)
			log.FromContext(ctx).V(1).Info("eviction was refused", "pod", name(pod).String(), "times", t.fails, "error", err.Error())
		}
	}
	if len(waits) > 0 {
		c.Events.Event(p.node, corev1.EventTypeWarning, "FailedDraining", strings.Join(waits[:min(len(waits), 5)], "; "))
	}
	return again
}

func pause(fails int) time.Duration {
	return min(retryMin<<min(fails-1, 20), retryMax)
}

// refusal says, for people, what keeps a pod from being evicted. It is the same
// text each time, so that it is published once.
func refusal(pod *corev1.Pod, budgets []string, err error) string {
	switch {
	case len(budgets) > 1:
		return fmt.Sprintf("pod %s cannot be evicted: PodDisruptionBudgets %s all select it, which the Eviction API refuses; let only one of them select it",
			name(pod), strings.Join(budgets, ", "))
	case len(budgets) == 1 && apierrors.IsTooManyRequests(err):
		return fmt.Sprintf("pod %s cannot be evicted now: PodDisruptionBudget %s allows no disruption; it is tried again", name(pod), budgets[0])
	}
	return fmt.Sprintf("pod %s cannot be evicted now: %v; it is tried again", name(pod), err)
}

// budgets returns the names of the PodDisruptionBudgets that select the pod.
func (c *Controller) budgets(ctx context.Context, pod *corev1.Pod) []string {
	var list policyv1.PodDisruptionBudgetList
	if err := c.Ledger.Client.List(ctx, &list, client.InNamespace(pod.Namespace)); err != nil {
		return nil // only the text is poorer
	}
	var out []string
	for i := range list.Items {
		s, err := metav1.LabelSelectorAsSelector(list.Items[i].Spec.Selector)
		if err == nil && s.Matches(labels.Set(pod.Labels)) {
			out = append(out, list.Items[i].Name)
		}
	}
	slices.Sort(out)
	return out
}

// remove deletes pods whose time is up, with the grace that is left.
func (c *Controller) remove(ctx context.Context, p *pass, removals []lifecycle.Removal) error {
	for _, r := range removals {
		for _, pod := range named(p.pods, []world.ObjectName{r.Pod}) {
			err := c.Ledger.Client.Delete(ctx, pod, client.GracePeriodSeconds(r.GraceSeconds), client.Preconditions{UID: &pod.UID})
			if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
				continue
			}
			if err != nil {
				return fmt.Errorf("deleting pod %s before its node ends: %w", name(pod), err)
			}
			c.Events.Event(pod, corev1.EventTypeWarning, "Disrupted",
				fmt.Sprintf("node %s ends at its deadline; the pod is deleted with a grace of %d seconds", p.node.Name, r.GraceSeconds))
		}
	}
	return nil
}

// named picks the pods of these names, in this order.
func named(pods []corev1.Pod, names []world.ObjectName) []*corev1.Pod {
	var out []*corev1.Pod
	for _, n := range names {
		for i := range pods {
			if name(&pods[i]) == n {
				out = append(out, &pods[i])
			}
		}
	}
	return out
}

func (c *Controller) try(node string, pod types.UID) try {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tries[node][pod]
}

func (c *Controller) tried(node string, pod types.UID, t try) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tries == nil {
		c.tries = map[string]map[types.UID]try{}
	}
	if c.tries[node] == nil {
		c.tries[node] = map[types.UID]try{}
	}
	c.tries[node][pod] = t
}

func (c *Controller) forget(node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.tries, node)
	delete(c.daemonVolumes, node)
}
