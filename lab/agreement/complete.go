package agreement

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"

	"karpenter/api/v1alpha5"
	"karpenter/internal/core/label"
	"karpenter/internal/core/reason"
	"karpenter/internal/core/world"
)

// vacancy is a place that a pod which was left pending would get.
type vacancy struct {
	pod   world.ObjectName
	rule  string // existing, planned or new
	place string
	// bought is the machine that would be bought.
	bought *candidate
}

// key tells vacancies apart, whatever the cloud picks.
func (v vacancy) key() string { return fmt.Sprint(v.pod, v.rule, v.place) }

func (v vacancy) disagreement() *Disagreement {
	return &Disagreement{"complete", v.rule, fmt.Sprintf("pod %s is left pending, but would fit on %s", v.pod, v.place)}
}

// vacancies looks for places for every pod that the plan left pending, and calls
// found for each, until that has seen enough. The judge must be in the cluster
// that the plan makes.
func (t *trial) vacancies(j *Judge, found func(vacancy) (enough bool)) error {
	var candidates []candidate
	asked := map[string]bool{}
	for _, u := range t.plan.Unplaced {
		if len(u.Reasons) > 0 && u.Reasons[0].Code() == (reason.NotUnderstood{}).Code() {
			continue
		}
		p := t.pod(u.Pod)
		if alike := likeness(p); !asked[alike] {
			if len(asked) == 0 {
				candidates = t.candidates()
			}
			asked[alike] = true
			if enough, err := t.couldGo(j, p, candidates, found); enough || err != nil {
				return err
			}
		}
	}
	return nil
}

// likeness is the same for pods that the scheduler cannot tell apart.
func likeness(p *corev1.Pod) string {
	text, err := json.Marshal([]any{p.Namespace, p.Labels, p.Spec})
	if err != nil || slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.Ephemeral != nil }) {
		return p.Namespace + "/" + p.Name
	}
	return string(text)
}

func (t *trial) couldGo(j *Judge, pod *corev1.Pod, candidates []candidate, found func(vacancy) bool) (bool, error) {
	at := func(rule, format string, args ...any) bool {
		return found(vacancy{pod: nameOf(pod), rule: rule, place: fmt.Sprintf(format, args...)})
	}
	pod = unbound(pod)
	q := j.ask(pod)
	for _, p := range t.places {
		info, err := j.node(p.node.Name)
		if err != nil {
			return false, err
		}
		if q.on(info) == "" && !p.open && at("existing", "node %s, which exists or is on its way", p.node.Name) {
			return true, nil
		}
	}
	alone := j.ask(withoutRules(pod))
	for i := range t.machines {
		m := &t.machines[i]
		some, err := t.roomLeft(j, alone, pod, m)
		if err != nil {
			return false, err
		}
		if some && at("planned", "planned machine %s of pool %s, whichever of %d options it becomes", m.claim.Name, m.planned.Pool, len(m.all)) {
			return true, nil
		}
	}
	tried := map[string]bool{}
	for _, c := range candidates {
		key := c.domain()
		if tried[key] || alone.on(c.node) != "" {
			continue
		}
		fits := false
		err := j.instead(t.Cluster, c.node.Node(), c.daemons, func(n fwk.NodeInfo) { fits = j.ask(pod).on(n) == "" })
		if err != nil {
			return false, err
		}
		place := fmt.Sprintf("a new %s in %s (%s) of pool %s", c.option.kind.Name, c.option.zone, c.option.market, c.pool)
		if fits && found(vacancy{nameOf(pod), "new", place, &c}) {
			return true, nil
		}
		tried[key] = len(pod.Spec.Volumes) == 0 // attach limits are per type
	}
	return false, nil
}

// withoutRules is the pod as far as only the node itself decides.
func withoutRules(p *corev1.Pod) *corev1.Pod {
	p = p.DeepCopy()
	p.Spec.TopologySpreadConstraints, p.Spec.Volumes = nil, nil
	if a := p.Spec.Affinity; a != nil {
		a.PodAffinity, a.PodAntiAffinity = nil, nil
	}
	return p
}

// roomLeft reports whether a planned machine has room for one more pod beside
// those planned for it, whatever it becomes.
func (t *trial) roomLeft(j *Judge, alone *question, pod *corev1.Pod, m *machine) (bool, error) {
	for _, o := range m.all {
		n := machineNode(m.claim, o, t.Region, m.claim.Name)
		on := t.daemonPods(n)
		for _, p := range m.planned.Pods {
			on = append(on, unbound(t.pod(p)))
		}
		if info := withDaemons(n, on); info == nil || alone.on(info) != "" {
			return false, nil
		}
		fits := false
		if err := j.instead(t.Cluster, n, on, func(n fwk.NodeInfo) { fits = j.ask(pod).on(n) == "" }); !fits || err != nil {
			return false, err
		}
	}
	return true, nil
}

// candidate is a machine that could still be bought.
type candidate struct {
	pool   string
	option option
	node   fwk.NodeInfo // with its daemon pods
	// daemons are the same pods.
	daemons []*corev1.Pod
}

// domain is the same for candidates that rules between pods cannot tell apart.
func (c *candidate) domain() string {
	n := c.node.Node()
	var out []string
	for _, key := range topologyKeys {
		v, ok := n.Labels[key]
		out = append(out, fmt.Sprint(v, ok))
	}
	for _, p := range c.daemons {
		out = append(out, p.Name)
	}
	return strings.Join(append(out, c.pool), " ")
}

// candidates are all machines that ready Provisioners could still buy within
// their limits: every type, zone and market that is available, with every way
// to decide the labels that are open.
func (t *trial) candidates() []candidate {
	var out []candidate
	left := t.remaining()
	for i := range t.Provisioners {
		p := &t.Provisioners[i]
		if !ready(p) {
			continue
		}
		reqs, labelings := demands(p), t.labelings(p)
		for k := range t.Types {
			kind := &t.Types[k]
			if exceeds(kind, left[p.Name]) {
				continue
			}
			for _, o := range kind.Offerings {
				if !o.Available {
					continue
				}
				at := option{kind, o.Zone, o.CapacityType}
				var nodes []*corev1.Node
				var on []*corev1.Pod // also those that come to some of them only
				for _, labels := range labelings {
					if n := t.newNode(p, at, labels); n != nil && meets(n.Labels, reqs) {
						nodes = append(nodes, n)
						for _, d := range t.daemonPods(n) {
							if !slices.ContainsFunc(on, func(o *corev1.Pod) bool { return nameOf(o) == nameOf(d) }) {
								on = append(on, d)
							}
						}
					}
				}
				for _, n := range nodes {
					if info := withDaemons(n, on); info != nil {
						out = append(out, candidate{p.Name, at, info, on})
					}
				}
			}
		}
	}
	return out
}

// withDaemons is an empty node with its daemon pods, or nil if they do not all
// fit: such a node is not to be bought.
func withDaemons(n *corev1.Node, daemons []*corev1.Pod) fwk.NodeInfo {
	info := framework.NewNodeInfo()
	info.SetNode(n)
	for _, p := range daemons {
		if len(noderesources.Fits(p, info, nil, noderesources.ResourceRequestsOptions{EnablePodLevelResources: true})) > 0 {
			return nil
		}
		info.AddPod(p)
	}
	return info
}

func exceeds(kind *world.InstanceType, left map[string]int64) bool {
	for name, n := range left {
		if size := kind.Capacity.Get(name); size > 0 && size > n {
			return true
		}
	}
	return false
}

// newNode is a node that the Provisioner could have, written down from the
// Provisioner itself; nil if one of its labels contradicts the option. A label
// that is well known is the machine's to have, not the Provisioner's to give.
func (t *trial) newNode(p *v1alpha5.Provisioner, o option, labels map[string]string) *corev1.Node {
	n := &corev1.Node{}
	n.Name = "candidate"
	n.Labels = cloudLabels(o, t.Region)
	for k, v := range labels {
		if have, ok := n.Labels[k]; ok && have != v || !ok && k != label.Provisioner && label.WellKnown(k) {
			return nil
		}
		n.Labels[k] = v
	}
	n.Labels["kubernetes.io/hostname"] = n.Name
	n.Labels["karpenter.sh/registered"], n.Labels["karpenter.sh/initialized"] = "true", "true"
	for _, taint := range p.Spec.Taints {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: taint.Key, Value: taint.Value, Effect: taint.Effect})
	}
	n.Status.Capacity, n.Status.Allocatable = list(o.kind.Capacity), list(o.kind.Allocatable)
	return n
}

func ready(p *v1alpha5.Provisioner) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == v1alpha5.ConditionReady {
			return c.Status == "True"
		}
	}
	return false
}
