package convert

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/dialect"
)

// Node translates a Node. A node that no pool owns counts as initialised:
// nothing is known of how it boots. While one that is owned is not, the taints
// of booting are left out; what its record adds is a matter of [Joined]. On an
// initialised node they count: pods must not be sent to a node that has died.
func Node(n *corev1.Node) world.Node {
	kind, pool := dialect.Owner(n.Labels)
	out := world.Node{
		Name:          n.Name,
		Pool:          pool,
		PoolKind:      kind,
		ProviderID:    n.Spec.ProviderID,
		Labels:        n.Labels,
		Annotations:   ours(n.Annotations),
		Taints:        taints(n.Spec.Taints),
		Allocatable:   Resources(n.Status.Allocatable, false),
		Capacity:      Resources(n.Status.Capacity, false),
		Created:       n.CreationTimestamp.Time,
		Joined:        true,
		Registered:    pool == "" || n.Labels[label.Registered] == "true",
		Initialized:   pool == "" || n.Labels[label.Initialized] == "true",
		Deleting:      n.DeletionTimestamp != nil,
		Unschedulable: n.Spec.Unschedulable,
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			out.Ready = c.Status == corev1.ConditionTrue
		}
	}
	if since, err := time.Parse(time.RFC3339, n.Annotations[dialect.AnnotationEmptinessTimestamp]); err == nil {
		out.EmptySince = &since
	}
	if !out.Initialized {
		out.Taints = slices.DeleteFunc(out.Taints, BootTaint)
	}
	return out
}

// ours leaves out the annotations of others, which may be large.
func ours(annotations map[string]string) map[string]string {
	var out map[string]string
	for k, v := range annotations {
		if domain, _, _ := strings.Cut(k, "/"); domain == "karpenter.sh" || strings.HasSuffix(domain, ".karpenter.sh") {
			if out == nil {
				out = map[string]string{}
			}
			out[k] = v
		}
	}
	return out
}

// BootTaint reports whether the taint is on every node while it boots and goes
// by itself.
func BootTaint(t world.Taint) bool {
	return strings.HasPrefix(t.Key, dialect.EphemeralTaintPrefix) ||
		slices.ContainsFunc(dialect.EphemeralTaints(), func(e corev1.Taint) bool { return e.Key == t.Key && string(e.Effect) == string(t.Effect) })
}

// Joined adds to a node what its record says. Until the node is initialised,
// every resource that it does not report counts as what the instance type
// promises, and taints of booting and startup taints are not what pods must
// tolerate. Until it is registered, it counts as having the labels and taints
// that it will get.
func Joined(n world.Node, r world.Record) world.Node {
	n.Claim, n.Pool, n.PoolKind = r.Name, r.Pool, r.PoolKind
	n.Initialized = n.Labels[label.Initialized] == "true"
	n.Registered = n.Labels[label.Registered] == "true"
	if r.Annotations[dialect.AnnotationDoNotDisrupt] == "true" && n.Annotations[dialect.AnnotationDoNotDisrupt] != "true" {
		n.Annotations = maps.Clone(n.Annotations)
		if n.Annotations == nil {
			n.Annotations = map[string]string{}
		}
		n.Annotations[dialect.AnnotationDoNotDisrupt] = "true"
	}
	n.Bounded, n.Failures = r.TerminationGrace != nil, r.Failures
	if r.Drifted.True() {
		n.Drifted, n.DriftedSince = r.Drifted.Reason, &r.Drifted.Since
	}
	n.PodEvent = r.PodEvent
	if usable := r.Initialized.Since; r.Initialized.True() && (n.PodEvent == nil || n.PodEvent.Before(usable)) {
		n.PodEvent, n.Unused = &usable, r.PodEvent == nil
	}
	if n.Initialized {
		return n
	}
	n.Allocatable = promised(n.Allocatable, r.Allocatable)
	n.Capacity = promised(n.Capacity, r.Capacity)
	if !n.Registered {
		own := n.Labels
		n.Labels = maps.Clone(r.Labels)
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		maps.Copy(n.Labels, own)
		n.Taints = slices.Clone(n.Taints)
		for _, t := range r.Taints {
			if !slices.Contains(n.Taints, t) {
				n.Taints = append(n.Taints, t)
			}
		}
	}
	n.Taints = slices.DeleteFunc(slices.Clone(n.Taints), func(t world.Taint) bool {
		return BootTaint(t) || slices.Contains(r.StartupTaints, t)
	})
	return n
}

// promised fills what is reported as zero, or not at all.
func promised(reported, promise quantity.Resources) quantity.Resources {
	for _, a := range promise.Amounts() {
		if reported.Get(a.Name) == 0 {
			reported = reported.With(a.Name, a.Value)
		}
	}
	return reported
}
