package planner

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"

	"karpenter/internal/core/disrupt"
	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
	"karpenter/internal/journal"
	"karpenter/internal/kube/dialect"
	"karpenter/internal/kube/mirror"
)

// How often it is said at most why a machine stays, and that a budget can never
// allow anything.
const (
	staysEvery = 15 * time.Minute
	neverEvery = time.Hour
)

// told is what was said last, by what it is about, so that it is not said with
// every look.
type told map[string]saying

type saying struct {
	code, text  string
	at, checked time.Time
}

// stays publishes, notes and logs why machines are kept. A look is made every
// few seconds for thousands of machines: an event comes once in a while, a line
// in the log when something has changed, and the whole answer is in the journal.
func (p *Planner) stays(v *mirror.View, d disrupt.Decision, now time.Time) {
	if p.told == nil {
		p.told = told{}
	}
	for _, k := range d.Kept {
		key := k.Node + " " + k.Method
		last := p.told[key]
		text, code := k.Reason.String(), k.Reason.Code()
		if text != last.text {
			p.Log.V(1).Info("kept", "node", k.Node, "method", k.Method, "reason", text)
		}
		kind := "DisruptionBlocked"
		if k.Method == disrupt.Consolidation {
			kind = "Unconsolidatable"
		}
		if _, booting := k.Reason.(disrupt.NotInitialized); booting {
			continue
		}
		if now.Sub(last.at) >= staysEvery || code != last.code && kind == "DisruptionBlocked" {
			p.Events.Event(nodeNamed(k.Node), corev1.EventTypeNormal, kind, k.Method+": "+text)
			last.at, last.code = now, code
		}
		last.text, last.checked = text, now
		p.told[key] = last
	}
	p.neverAllowing(v, now)
	p.misread(v, now)
	for key, s := range p.told {
		if now.Sub(s.checked) >= neverEvery {
			delete(p.told, key)
		}
	}
	if len(d.Commands) == 0 {
		d.Kept = append(d.Kept, disrupt.Idle(v.Snapshot, now, d)...)
		p.Journal.Stand(journal.Entry{Time: now, Kind: journal.Kept, Summary: strconv.Itoa(len(d.Kept)) + " machines stay", Decision: d})
	}
}

// neverAllowing tells of PodDisruptionBudgets that keep machines for ever.
func (p *Planner) neverAllowing(v *mirror.View, now time.Time) {
	for _, b := range v.Budgets {
		key := "budget " + b.ObjectName.String()
		if !b.Never || now.Sub(p.told[key].at) < neverEvery {
			continue
		}
		if node, pod, found := keeps(v.Snapshot, b); found {
			o := &policyv1.PodDisruptionBudget{}
			o.Namespace, o.Name = b.Namespace, b.Name
			p.Events.Event(o, corev1.EventTypeWarning, "NeverAllowsDisruption",
				"it never allows a pod to be evicted, such as "+pod.String()+", so node "+node+" cannot be emptied: let maxUnavailable be 1 or more, or ask for less than all pods")
			p.told[key] = saying{at: now, checked: now}
		}
	}
}

// misread tells of pods whose annotation protects them from nothing, as its value
// means nothing.
func (p *Planner) misread(v *mirror.View, now time.Time) {
	for i := range v.Nodes {
		for k := range v.Nodes[i].Pods {
			pod := &v.Nodes[i].Pods[k]
			key := "pod " + pod.UID
			if pod.Misread == "" || v.Nodes[i].Claim == "" || now.Sub(p.told[key].at) < neverEvery {
				continue
			}
			o := &corev1.Pod{}
			o.Namespace, o.Name, o.UID = pod.Namespace, pod.Name, types.UID(pod.UID)
			p.Events.Event(o, corev1.EventTypeWarning, "InvalidDoNotDisrupt",
				"annotation "+dialect.AnnotationDoNotDisrupt+" must be true or a duration such as 30m, not "+strconv.Quote(pod.Misread)+"; the pod is not protected")
			p.told[key] = saying{at: now, checked: now}
		}
	}
}

// keeps returns a pod of the budget on a machine of ours.
func keeps(s *world.Snapshot, b world.PodBudget) (node string, pod world.ObjectName, found bool) {
	for i := range s.Nodes {
		n := &s.Nodes[i]
		for j := range n.Pods {
			q := &n.Pods[j]
			if n.Claim != "" && q.Namespace == b.Namespace && !b.Selector.Nothing && q.Leaves(n) && label.Matches(b.Selector.Requirements, q.Labels) {
				return n.Name, q.ObjectName, true
			}
		}
	}
	return "", world.ObjectName{}, false
}
