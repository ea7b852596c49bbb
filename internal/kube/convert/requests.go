package convert

import (
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
//   - the overhead of the runtime comes on top.
//
// Where only a limit is given, the request is the limit.
func Requests(p *corev1.Pod) quantity.Resources {
	var running, sidecars, peak quantity.Resources
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		asked := containerRequests(c, p.Status.InitContainerStatuses)
		if isSidecar(c) {
			sidecars = sidecars.Add(asked)
			peak = peak.Max(sidecars)
		} else {
			peak = peak.Max(sidecars.Add(asked))
		}
	}
	for i := range p.Spec.Containers {
		running = running.Add(containerRequests(&p.Spec.Containers[i], p.Status.ContainerStatuses))
	}
	total := podLevel(p.Spec.Resources, running.Add(sidecars).Max(peak))
	total = total.Add(Resources(p.Spec.Overhead, true))
	return total.With(quantity.Pods, 1)
}

// containerRequests of one container. While its size is being changed in
// place, the greater of the old and the new size counts.
func containerRequests(c *corev1.Container, statuses []corev1.ContainerStatus) quantity.Resources {
	asked := limitsAsRequests(c.Resources)
	for i := range statuses {
		if s := &statuses[i]; s.Name == c.Name {
			asked = asked.Max(Resources(s.AllocatedResources, true))
			if s.Resources != nil {
				asked = asked.Max(Resources(s.Resources.Requests, true))
			}
		}
	}
	return asked.Max(quantity.Resources{}) // never negative
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
func podLevel(r *corev1.ResourceRequirements, sum quantity.Resources) quantity.Resources {
	if r == nil {
		return sum
	}
	for name, q := range r.Requests {
		if atPodLevel(name) {
			sum = sum.With(string(name), max(0, amount(name, q, true)))
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
