package lifecycle

import (
	"fmt"
	"strings"
	"time"

	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
)

// nominationRounds bounds, in pauses, how long nominations are renewed that
// the scheduler took back. A nomination is a hint; a node is not kept shut for
// it.
const nominationRounds = 4

// register puts the Node right, nominates the pods planned for it, and opens
// it: the boot taint goes and the registered label comes in one write.
func register(in *Input, n *Node) Step {
	s := Step{NodeName: n.Name, Node: sync(in, n)}
	if n.has(Unregistered) {
		missing, until := nominate(in, n)
		if until.After(in.Now) {
			s.Nominate = missing
			s.Again = until
			s.Conditions = []Condition{{Registered, Unknown, "Nominating", "pods planned for this node are being pointed to it"}}
			return s
		}
		s.Node.DropTaints = append(s.Node.DropTaints, Unregistered)
	} else {
		s.Events = append(s.Events, Event{true, "UnregisteredTaintMissing", fmt.Sprintf(
			"the node joined without the taint %s, so pods may have come before its labels and taints were right; let its user data pass --register-with-taints=%s", Unregistered, "karpenter.sh/unregistered=:NoExecute")})
	}
	s.Node.label(label.Registered, "true")
	s.Joined = n.Name
	s.Conditions = []Condition{holds(Registered)}
	s.Again = in.Now.Add(Recheck)
	return s
}

// sync returns what the Node lacks of what its record promises. Taints are
// synced once, together with the finalizer: a startup taint that an agent took
// off in the meantime must not come back.
func sync(in *Input, n *Node) NodePatch {
	p := NodePatch{Hold: !n.Held, Own: !n.Owned}
	for key, value := range in.Record.Labels {
		if have, ok := n.Labels[key]; !ok || have != value {
			p.label(key, value)
		}
	}
	for key, value := range in.Record.Annotations {
		if have, ok := n.Annotations[key]; (!ok || have != value) && !ownAnnotation(key) {
			p.annotate(key, value)
		}
	}
	if n.Held || n.Labels[DoNotSyncTaints] == "true" {
		return p
	}
	for _, wanted := range [][]world.Taint{in.Record.Taints, in.Record.StartupTaints} {
		for _, t := range wanted {
			if !hasExactly(n.Taints, t) && !hasExactly(p.AddTaints, t) {
				p.AddTaints = append(p.AddTaints, t)
			}
		}
	}
	return p
}

func hasExactly(taints []world.Taint, t world.Taint) bool {
	for _, o := range taints {
		if o == t {
			return true
		}
	}
	return false
}

// ownAnnotation reports whether an annotation of a record is about the record
// itself and has no place on a Node.
func ownAnnotation(key string) bool {
	domain, name, _ := strings.Cut(key, "/")
	switch domain {
	case "kubectl.kubernetes.io", "compatibility.karpenter.sh":
		return true
	case "karpenter.sh":
		return name == "launch-request" || name == "planned-pods" || name == "nodeclaim-termination-timestamp" ||
			name == "nodeclaim-min-values-relaxed" || name == "adopted-from" || name == "disruption-intent" || name == "replaces"
	}
	return false
}

// nominate returns the pods that are to be nominated now, and when the node
// may be opened. The scheduler takes a nomination back after an attempt that
// failed, so pods that lost theirs get it again, for a bounded time.
func nominate(in *Input, n *Node) ([]world.ObjectName, time.Time) {
	lead, done := in.Limits.NominationLead, &in.Nominations
	if done.Off {
		return nil, in.Now
	}
	missing := unnominated(in, n)
	if len(missing) > 0 && (done.First.IsZero() || in.Now.Before(done.First.Add(nominationRounds*lead))) {
		return missing, in.Now.Add(lead)
	}
	if done.Last.IsZero() {
		return nil, in.Now
	}
	return nil, done.Last.Add(lead)
}

// unnominated returns the planned pods that are to be pointed to the node, or
// pointed to it again.
func unnominated(in *Input, n *Node) []world.ObjectName {
	done := &in.Nominations
	if done.Off {
		return nil
	}
	var out []world.ObjectName
	for _, p := range done.Pods {
		// A nomination from before a restart is made again: how long the
		// scheduler has known it cannot be told.
		if p.Nominated == "" || (p.Ours && (p.Nominated != n.Name || done.First.IsZero())) {
			out = append(out, p.ObjectName)
		}
	}
	return out
}
