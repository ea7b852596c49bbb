package schedule

import (
	"slices"
	"strings"

	"karpenter/internal/core/world"
)

// Stage is a cluster in which pods are placed one by one, held against the
// rules of kube-scheduler slowly and without anything that Solve uses, as
// [Check] does it. It is for simulators: nodes are what they are, with no guess
// about what they will become. The zero value is a cluster without nodes.
type Stage struct {
	stage stage
	at    map[string]*stageNode
}

// Put adds a node or replaces it, with the pods on it. Neither may be changed
// afterwards.
func (s *Stage) Put(n *world.Node, pods []*world.Pod) {
	node := &stageNode{name: n.Name, labels: n.Labels, taints: n.Taints, pods: pods, limits: map[string]int64{}}
	for _, l := range n.AttachLimits {
		node.limits[l.Name] = l.Value
	}
	i, there := s.find(n.Name)
	if there {
		s.stage.nodes[i] = node
	} else {
		s.stage.nodes = slices.Insert(s.stage.nodes, i, node)
	}
	if s.at == nil {
		s.at = map[string]*stageNode{}
	}
	s.at[n.Name] = node
}

// Remove takes a node away with its pods.
func (s *Stage) Remove(name string) {
	if i, there := s.find(name); there {
		s.stage.nodes = slices.Delete(s.stage.nodes, i, i+1)
	}
	delete(s.at, name)
}

func (s *Stage) find(name string) (int, bool) {
	return slices.BinarySearchFunc(s.stage.nodes, name, func(n *stageNode, name string) int { return strings.Compare(n.name, name) })
}

// Crowded says which hard spread constraint of the pod keeps it off the node of
// this name; empty if none does. The answer is the same for all nodes that have
// the same values of the constraints' keys.
func (s *Stage) Crowded(pod *world.Pod, node string) string {
	return s.first(pod, node, s.stage.spread)
}

// Repelled says which other rule between pods keeps the pod off the node of this
// name; empty if none does.
func (s *Stage) Repelled(pod *world.Pod, node string) string {
	return s.first(pod, node, s.stage.affinity, s.stage.anti, s.stage.antiOfOthers, ports, volumes)
}

func (s *Stage) first(pod *world.Pod, node string, rules ...func(*world.Pod, *stageNode) string) string {
	n := s.at[node]
	if n == nil {
		return "no such node"
	}
	for _, rule := range rules {
		if why := rule(pod, n); why != "" {
			return why
		}
	}
	return ""
}

// Suits reports whether labels of a node suit what the pod says about nodes: its
// selector, its required affinity and where its volumes can be reached. Taints
// are not looked at.
func Suits(pod *world.Pod, labels map[string]string) bool {
	at := place{labels: labels}
	return at.admits(&world.Pod{Selector: pod.Selector, Terms: pod.Terms, Volumes: pod.Volumes})
}

// Selects reports whether a selector takes the pod, wherever it is.
func Selects(s world.LabelSelector, pod *world.Pod) bool { return selects(s, pod) }

// TermSelects reports whether a term of pod affinity takes the pod: its selector
// and its namespaces.
func TermSelects(t *world.PodTerm, pod *world.Pod) bool { return termMatches(t, pod) }
