package lifecycle

import "time"

// podEventPause is how often at most it is noted that pods come and go.
const podEventPause = 10 * time.Second

// quiet notes when a pod last came or went, and whether that is long enough ago
// for the pool to remove the machine for the money. A process that has just
// started takes the pods that it finds for those that were there.
func quiet(in *Input, n *Node, s *Step) {
	if in.Quiet == nil {
		s.Conditions = append(s.Conditions, Condition{Type: Consolidatable})
		return
	}
	last := in.Record.Initialized.Since
	if e := in.Record.PodEvent; e != nil && e.After(last) {
		last = *e
	}
	now := counting(n)
	switch {
	case in.Seen == nil:
		s.Seen = now
	case sameSet(in.Seen, now):
	case in.Record.PodEvent != nil && in.Now.Before(in.Record.PodEvent.Add(podEventPause)):
		s.Again = earlier(s.Again, in.Record.PodEvent.Add(podEventPause))
	default:
		last = in.Now
		s.PodEvent, s.Seen = &last, now
	}
	if !in.Record.Initialized.True() {
		last = in.Now
	}
	if at := last.Add(*in.Quiet); in.Now.Before(at) {
		s.Conditions = append(s.Conditions, Condition{Type: Consolidatable})
		s.Again = earlier(s.Again, at)
		return
	}
	s.Conditions = append(s.Conditions, holds(Consolidatable))
}

// counting are the pods whose coming and going matters: one that has finished,
// or is terminating, has gone.
func counting(n *Node) map[string]bool {
	out := map[string]bool{}
	for i := range n.Pods {
		if p := &n.Pods[i]; !p.Finished && p.DeletedAt == nil && !p.IsDaemon() && !p.IsStatic() {
			out[p.UID] = true
		}
	}
	return out
}

func sameSet(a, b map[string]bool) bool {
	for k := range a {
		if !b[k] {
			return false
		}
	}
	return len(a) == len(b)
}
