package agreement

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	karpv1 "karpenter/api/v1"
	"karpenter/api/v1alpha5"
	"karpenter/internal/admission"
	"karpenter/internal/core/label"
)

// demands are a Provisioner's requirements, defaults included, for the matcher
// of Kubernetes.
func demands(p *v1alpha5.Provisioner) []corev1.NodeSelectorRequirement {
	var out []corev1.NodeSelectorRequirement
	for _, r := range admission.DefaultProvisioner(p).Spec.Requirements {
		e := corev1.NodeSelectorRequirement{Key: r.Key, Operator: r.Operator, Values: r.Values}
		if r.Operator == corev1.NodeSelectorOpExists || r.Operator == corev1.NodeSelectorOpDoesNotExist {
			e.Values = nil
		}
		out = append(out, e)
	}
	return out
}

// meets asks the matcher of Kubernetes whether labels meet expressions.
func meets(labels map[string]string, all []corev1.NodeSelectorRequirement) bool {
	for _, e := range all { // one by one: an impossible pair is no error then
		s, err := nodeaffinity.NewNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{e}}}})
		if err != nil {
			return false
		}
		n := &corev1.Node{}
		n.Labels = labels
		if !s.Match(n) {
			return false
		}
	}
	return true
}

// openKeys are the custom keys that a Provisioner requires and does not set.
func openKeys(p *v1alpha5.Provisioner) []string {
	var out []string
	for _, r := range p.Spec.Requirements {
		_, set := p.Spec.Labels[r.Key]
		if !label.WellKnown(r.Key) && !set && !slices.Contains(out, r.Key) {
			out = append(out, r.Key)
		}
	}
	return out
}

// absent stands for a label that a node does not have.
const absent = "\x00"

// valuesOf lists what a label may be as far as anybody in the cluster can tell
// the difference: the values named, numbers around bounds, any other, absent.
func (c *Cluster) valuesOf(key string) []string {
	out := []string{absent, "any"} // the word for any other
	see := func(e corev1.NodeSelectorRequirement) {
		if e.Key != key {
			return
		}
		out = append(out, e.Values...)
		for _, v := range e.Values {
			if n, err := strconv.Atoi(v); err == nil {
				out = append(out, fmt.Sprint(n+1), fmt.Sprint(max(0, n-1)))
			}
		}
	}
	spec := func(s *corev1.PodSpec) {
		for k, v := range s.NodeSelector {
			see(corev1.NodeSelectorRequirement{Key: k, Values: []string{v}})
		}
		for _, t := range requiredTerms(s) {
			for _, e := range t.MatchExpressions {
				see(e)
			}
		}
	}
	for i := range c.Provisioners {
		for _, e := range demands(&c.Provisioners[i]) {
			see(e)
		}
	}
	for i := range c.DaemonSets {
		spec(&c.DaemonSets[i].Spec.Template.Spec)
	}
	for i := range c.Pods {
		spec(&c.Pods[i].Spec)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func requiredTerms(s *corev1.PodSpec) []corev1.NodeSelectorTerm {
	if s.Affinity == nil || s.Affinity.NodeAffinity == nil || s.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	return s.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
}

// labelings are all ways to label a node of the Provisioner: what it sets, with
// every combination of values for the keys that it leaves open.
func (c *Cluster) labelings(p *v1alpha5.Provisioner) []map[string]string {
	base := map[string]string{label.Provisioner: p.Name}
	for k, v := range p.Spec.Labels {
		base[k] = string(v)
	}
	out := []map[string]string{base}
	for _, key := range openKeys(p) {
		var own []corev1.NodeSelectorRequirement
		for _, e := range demands(p) {
			if e.Key == key {
				own = append(own, e)
			}
		}
		var next []map[string]string
		for _, labels := range out {
			for _, v := range c.valuesOf(key) {
				with := map[string]string{}
				for k, v := range labels {
					with[k] = v
				}
				if v != absent {
					with[key] = v
				}
				if meets(with, own) {
					next = append(next, with)
				}
			}
		}
		out = next
	}
	return out
}

// openLabels decides the open labels of a machine that was bought before.
func openLabels(d *draft, p *v1alpha5.Provisioner) (map[string]string, bool) {
	all := d.labelings(p)
	if len(all) == 0 {
		return nil, false
	}
	return pick(d, all), true
}

// wouldHold reports whether the record's machine takes the pod, whatever it
// becomes.
func (d *draft) wouldHold(claim *karpv1.NodeClaim, p *corev1.Pod) bool {
	all := survivors(d.Cluster, claim)
	for _, o := range all {
		n := machineNode(claim, o, d.Region, claim.Name)
		if daemonPod(asDaemon(p), n) == nil || withDaemons(n, append(d.daemonPods(n), p)) == nil {
			return false
		}
	}
	return len(all) > 0
}
