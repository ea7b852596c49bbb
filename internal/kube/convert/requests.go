package convert

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"karpenter/internal/core/quantity"
)

// Requests returns what kube-scheduler counts for the pod, plus one unit of
// "pods":
//
//   - containers and sidecars (init containers that are restarted) run together;
//   - before them each other init container runs beside the sidecars that were
//     started before it, so the greatest of these moments counts, per resource;
//   - what is asked for the pod as a whole replaces that sum;
//   - while sizes are being changed in place, the greater of old and new counts;
//     a change that the node can never make does not;
//   - the overhead of the runtime comes on top.
//
// Where only a limit is given, the request is the limit.
func Requests(p *corev1.Pod) quantity.Resources {
	never := resizeNeverFits(p)
	var running, sidecars, peak quantity.Resources
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		asked := containerRequests(c, p.Status.InitContainerStatuses, never)
		if isSidecar(c) {
			sidecars = sidecars.Add(asked)
			peak = peak.Max(sidecars)
		} else {
			peak = peak.Max(sidecars.Add(asked))
		}
	}
	for i := range p.Spec.Containers {
		running = running.Add(containerRequests(&p.Spec.Containers[i], p.Status.ContainerStatuses, never))
	}
	total := podLevel(p, running.Add(sidecars).Max(peak), never)
	total = total.Add(Resources(p.Spec.Overhead, true))
	return total.With(quantity.Pods, 1)
}

// resizeNeverFits reports whether the kubelet has said that the node can never
// give the pod the size that it asks for now.
func resizeNeverFits(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodResizePending && c.Reason == corev1.PodReasonInfeasible
	})
}

// containerRequests of one container. Its status says what it has.
func containerRequests(c *corev1.Container, statuses []corev1.ContainerStatus, never bool) quantity.Resources {
	asked := limitsAsRequests(c.Resources)
	for i := range statuses {
		if s := &statuses[i]; s.Name == c.Name {
			asked = resized(asked, s.AllocatedResources, s.Resources, never)
		}
	}
	return asked.Max(quantity.Resources{}) // never negative
}

// resized is what counts of a size that is asked for, allocated and in effect.
func resized(asked quantity.Resources, allocated corev1.ResourceList, effective *corev1.ResourceRequirements, never bool) quantity.Resources {
	has := Resources(allocated, true)
	if effective != nil {
		has = has.Max(Resources(effective.Requests, true))
	}
	if never && !has.IsZero() {
		return has
	}
	return asked.Max(has)
}

func limitsAsRequests(r corev1.ResourceRequirements) quantity.Resources {
	out := Resources(r.Requests, true)
	for name, limit := range r.Limits {
		if _, asked := r.Requests[name]; !asked {
			out = out.With(string(name), amount(name, limit, true))
		}
	}
	return out
}

// podLevel replaces the sum over the containers where the pod as a whole asks
// for a resource. A limit of the pod alone counts where no container asks.
func podLevel(p *corev1.Pod, sum quantity.Resources, never bool) quantity.Resources {
	r := p.Spec.Resources
	if r == nil {
		return sum
	}
	own := resized(Resources(r.Requests, true), p.Status.AllocatedResources, p.Status.Resources, never)
	for name := range r.Requests {
		if atPodLevel(name) {
			sum = sum.With(string(name), max(0, own.Get(string(name))))
		}
	}
	for name, q := range r.Limits {
		if _, asked := r.Requests[name]; !asked && atPodLevel(name) && sum.Get(string(name)) == 0 {
			sum = sum.With(string(name), max(0, amount(name, q, true)))
		}
	}
	return sum
}

// atPodLevel reports whether Kubernetes lets pods ask for the resource as a
// whole.
func atPodLevel(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}
