package cases

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "karpenter/api/v1"
)

// State is what a run has come to at one time, and how.
type State struct {
	// At is the time since the start.
	At time.Duration
	// Nodes, Claims, Pods and Instances are what exists; Known are the names of
	// all nodes that ever did.
	Nodes  []*corev1.Node
	Known  []string
	Claims []*karpv1.NodeClaim
	Pods   []*corev1.Pod
	// Machines are all that were launched in the run, in that order.
	Machines []Machine
	// Homes tells where pods are or are meant to be, by namespace/name: the name
	// of a node, or the id of a machine that is not a node yet.
	Homes map[string]string
	// Orphans are running instances with our tags and no claim; MostAlive is how
	// many machines were alive at once.
	Orphans   []string
	MostAlive int
	// Refused are the offerings that count as having no capacity.
	Refused []Offering
	// Queued is how many messages wait.
	Queued int
	// Events are in the order in which they happened, Texts are what people could
	// read.
	Events []Event
	Calls  []Call
	Texts  []Text
	// Verdicts say why an object was refused, by name; empty: it was not.
	Verdicts map[string]string
	// Stored returns an object as it is stored; nil if there is none.
	Stored func(kind, name string) map[string]any
	// Requests of one pod, and of one pod of a DaemonSet.
	Requests func(pod *corev1.Pod) corev1.ResourceList
	Daemon   func(name string) corev1.ResourceList
}

// Machine is one that was launched.
type Machine struct {
	ID, Claim, Node, Pool             string
	Type, Zone, Market, Image, Subnet string
	Labels                            map[string]string
	Taints                            []corev1.Taint
	// Daemons are the DaemonSets that run there.
	Daemons []string
	USD     float64
}

// EventKind is what happened.
type EventKind string

// What can happen.
const (
	Launched    EventKind = "launch"      // subject: instance
	Initialised EventKind = "initialised" // node
	Tainted     EventKind = "tainted"     // node
	Drained     EventKind = "drain"       // node
	Evicted     EventKind = "evicted"     // namespace/name
	AskedEvict  EventKind = "evict"       // namespace/name, whatever the answer
	PodDeleted  EventKind = "pod-delete"  // namespace/name
	Removed     EventKind = "removed"     // node: gone or being deleted
	Terminated  EventKind = "terminate"   // instance
)

// Event is something that happened.
type Event struct {
	At      time.Duration
	Kind    EventKind
	Subject string
	// Grace of a direct deletion, in seconds.
	Grace int
}

// Call is one to the cloud.
type Call struct {
	At   time.Duration
	Name string
	// Zones, Subnets and Types that a create call names; Instance that another
	// is about.
	Zones, Subnets, Types []string
	Instance              string
}

// Text is an event, a condition or a log line about an object.
type Text struct {
	At time.Duration
	// About are the objects as Kind/name or Kind/namespace/name.
	About []string
	Words string
}

// Node returns the node of this name, or nil.
func (s *State) Node(name string) *corev1.Node {
	for _, n := range s.Nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

func (s *State) claimOf(node string) *karpv1.NodeClaim {
	n := s.Node(node)
	for _, c := range s.Claims {
		if c.Status.NodeName == node || n != nil && n.Spec.ProviderID != "" && c.Status.ProviderID == n.Spec.ProviderID {
			return c
		}
	}
	return nil
}

// pod finds a pod by name or namespace/name.
func (s *State) pod(name string) *corev1.Pod {
	for _, p := range s.Pods {
		if p.Namespace+"/"+p.Name == name || p.Name == name {
			return p
		}
	}
	return nil
}

// home is where a pod is or is meant to be.
func (s *State) home(pod string) string {
	if strings.Contains(pod, "/") {
		return s.Homes[pod]
	}
	for _, key := range sortedKeys(s.Homes) {
		if _, name, _ := strings.Cut(key, "/"); name == pod {
			return s.Homes[key]
		}
	}
	return ""
}

// machine returns the launched one that is, or became, this home.
func (s *State) machine(home string) *Machine {
	for i := range s.Machines {
		if m := &s.Machines[i]; home != "" && (m.ID == home || m.Node == home) {
			return m
		}
	}
	return nil
}

// domain is the value of a topology key at a home.
func (s *State) domain(home, key string) string {
	switch key {
	case "zone":
		key = corev1.LabelTopologyZone
	case "node", corev1.LabelHostname:
		return home
	}
	if n := s.Node(home); n != nil {
		return n.Labels[key]
	}
	m := s.machine(home)
	switch {
	case m == nil:
		return ""
	case key == corev1.LabelTopologyZone:
		return m.Zone
	}
	return m.Labels[key]
}

// gone reports whether a node is gone or on its way.
func (s *State) gone(node string) bool {
	n := s.Node(node)
	if n == nil || n.DeletionTimestamp != nil {
		return true
	}
	c := s.claimOf(node)
	return c != nil && c.DeletionTimestamp != nil
}

// disruptionTaints close a node that is to go.
func disruptionTaint(t corev1.Taint) bool {
	return t.Key == "karpenter.sh/disrupted" || t.Key == "karpenter.sh/disruption" || t.Key == corev1.TaintNodeUnschedulable
}

func (s *State) tainted(node string) bool {
	n := s.Node(node)
	return n != nil && (n.Spec.Unschedulable || slices.ContainsFunc(n.Spec.Taints, disruptionTaint))
}

func (s *State) happened(k EventKind, subject string) (n int) {
	for _, e := range s.Events {
		if e.Kind == k && (e.Subject == subject || bare(e.Subject) == subject) {
			n++
		}
	}
	return n
}

// bare is a name without its namespace.
func bare(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// says returns whether a text about an object has all words, and the texts that
// there were.
func (s *State) says(about []string, wanted []string) (bool, []string) {
	var seen []string
	for _, t := range s.Texts {
		if about != nil && !slices.ContainsFunc(about, func(a string) bool { return slices.Contains(t.About, a) }) {
			continue
		}
		if mentions(t.Words, wanted) {
			return true, nil
		}
		if !slices.Contains(seen, t.Words) {
			seen = append(seen, t.Words)
		}
	}
	return false, seen
}

// mentions reports whether a text has all words, in any case and order.
func mentions(text string, wanted []string) bool {
	text = strings.ToLower(text)
	for _, w := range wanted {
		if !strings.Contains(text, strings.ToLower(w)) {
			return false
		}
	}
	return true
}
