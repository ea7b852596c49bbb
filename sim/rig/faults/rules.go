package faults

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "karpenter/api/v1"
	"karpenter/internal/aws/launch"
	"karpenter/internal/core/label"
	"karpenter/internal/kube/dialect"
	"karpenter/internal/scenario/cases"
	"karpenter/sim/ec2"
	"karpenter/sim/kube"
	"karpenter/sim/rig"
)

// Bounds of what may last for a while.
const (
	// orphanGrace is how long a machine may be without a record: the collector's
	// own grace, and as many of its passes as faults may spoil.
	orphanGrace = 15 * time.Minute
	// runsWithin is how long a pod that has a place may take to run once the
	// faults are over: longer than a machine that never joins is waited for.
	runsWithin = 40 * time.Minute
	// soon is the same where nothing has gone wrong.
	soon = 10 * time.Minute
	// mostSkew is how wrong the clock of a process may be.
	mostSkew = 2 * time.Minute
)

// rules are what must be true, with what has been seen.
type rules struct {
	w       *world
	Broken  []string
	tokens  map[string]string    // token of a launch → instance
	due     map[string]bool      // pods that may be deleted: their node's end has come
	alone   map[string]time.Time // instance without a record → since when
	looked  time.Time
	version uint64 // of the API server when it was last looked at
	moved   bool   // a machine has changed since
	// waiting are the pods of the workload that do not run, since when.
	waiting map[types.UID]waits
	deleted int // direct deletions of pods, as last counted
	started int // launches
	limit   int64
}

func newRules(w *world) *rules {
	return &rules{w: w, tokens: map[string]string{}, due: map[string]bool{}, alone: map[string]time.Time{}, waiting: map[types.UID]waits{}, limit: limitCPU}
}

func (r *rules) broken(format string, args ...any) {
	text := fmt.Sprintf("%s: ", r.w.Now().Sub(start)) + fmt.Sprintf(format, args...)
	if !slices.Contains(r.Broken, text) {
		r.Broken = append(r.Broken, text)
	}
}

// waits is a pod that does not run.
type waits struct {
	name  string
	since time.Time
}

// changed sees every change of the API server.
func (r *rules) changed(e kube.Event) {
	p, ok := e.Object().(*corev1.Pod)
	if !ok || p.Namespace != "default" {
		return
	}
	if e.New == nil || p.Status.Phase == corev1.PodRunning || p.DeletionTimestamp != nil {
		delete(r.waiting, p.UID)
	} else if _, known := r.waiting[p.UID]; !known {
		r.waiting[p.UID] = waits{p.Name, r.w.Now()}
	}
}

// late finds pods that should run by now: all of the workload have a place. While
// things go wrong nothing is promised.
func (r *rules) late() {
	if r.w.chaos.on {
		return
	}
	for uid, p := range r.waiting {
		since, within := p.since, soon
		if end := r.w.chaos.ended; !end.IsZero() {
			within = runsWithin
			if end.After(since) {
				since = end
			}
		}
		if r.w.Now().Sub(since) > within {
			r.broken("pod %s has been waiting for more than %s: %s", p.name, within, r.w.said("Pod/default/"+p.name))
			delete(r.waiting, uid)
		}
	}
}

// launched sees every machine that is started.
func (r *rules) launched(i *ec2.Instance) {
	r.started++
	if token := i.Tags[launch.TokenTag]; token != "" {
		if other := r.tokens[token]; other != "" && other != i.ID {
			r.broken("two machines for one launch: %s and %s, NodeClaim %s", other, i.ID, i.Tags[launch.ClaimTag])
		}
		r.tokens[token] = i.ID
	}
}

// call sees every call of a process before it has an effect.
func (r *rules) call(c rig.Call) {
	if c.After || !c.Write {
		return
	}
	switch {
	case c.Cloud && c.Name == "TerminateInstances":
		if i, ok := r.w.Cloud.Instance(c.About); ok && i.Tags[launch.OwnedTag(clusterName)] != "owned" {
			r.broken("instance %s is terminated, which is not ours", i.ID)
		}
	case c.Name == "delete Node":
		n := &corev1.Node{}
		if r.w.kube.Get(ctx, client.ObjectKey{Name: strings.TrimPrefix(c.About, "Node/")}, n) == nil && n.Labels[label.Provisioner]+n.Labels[label.NodePool] == "" && !ours(n) {
			r.broken("node %s is deleted, which is not ours", n.Name)
		}
	case c.Name == "create Pod/eviction":
		r.evicted(c.About)
	case c.Name == "delete Pod":
		r.ends(c.About)
	}
}

// ours reports whether a node has not been registered yet, and is ours.
func ours(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == "karpenter.sh/unregistered" })
}

// evicted checks an eviction: the pod must not refuse it. Budgets are the API
// server's to keep.
func (r *rules) evicted(about string) {
	parts := strings.Split(about, "/")
	p := &corev1.Pod{}
	if len(parts) != 3 || r.w.kube.Get(ctx, client.ObjectKey{Namespace: parts[1], Name: parts[2]}, p) != nil {
		return
	}
	if _, announced := r.end(p.Spec.NodeName); p.Annotations["karpenter.sh/do-not-evict"] == "true" && !announced {
		r.broken("pod %s/%s is evicted, which has do-not-evict", p.Namespace, p.Name)
	}
}

// ends notes that a pod is deleted because the end of its node has been announced,
// and has come but for the pod's own grace and a wrong clock.
func (r *rules) ends(about string) {
	name := strings.TrimPrefix(about, "Pod/")
	namespace, pod, _ := strings.Cut(name, "/")
	p := &corev1.Pod{}
	if r.w.kube.Get(ctx, client.ObjectKey{Namespace: namespace, Name: pod}, p) != nil || p.Spec.TerminationGracePeriodSeconds == nil {
		return
	}
	if end, ok := r.end(p.Spec.NodeName); ok && !r.w.Now().Before(end.Add(-time.Duration(*p.Spec.TerminationGracePeriodSeconds)*time.Second-mostSkew)) {
		r.due[name] = true
	}
}

// end is when a node ends, if that has been announced.
func (r *rules) end(node string) (time.Time, bool) {
	for _, c := range r.claimsNow() {
		if text := c.Annotations[dialect.AnnotationTerminationTimestamp]; c.Status.NodeName == node && text != "" {
			at, err := time.Parse(time.RFC3339, text)
			return at, err == nil
		}
	}
	return time.Time{}, false
}

func (r *rules) claimsNow() []karpv1.NodeClaim {
	var list karpv1.NodeClaimList
	r.w.must(r.w.kube.List(ctx, &list, client.UnsafeDisableDeepCopy)) // nothing here changes them
	return list.Items
}

// look checks what can be seen at any time; every five seconds is enough.
func (r *rules) look() {
	events := r.w.Log.Events
	for ; r.deleted < len(events); r.deleted++ {
		if e := events[r.deleted]; e.Kind == cases.PodDeleted && !r.due[e.Subject] {
			r.broken("pod %s is deleted, not evicted", e.Subject)
		}
	}
	if r.w.Now().Sub(r.looked) < 5*time.Second {
		return
	}
	r.looked = r.w.Now()
	r.late()
	if v := r.w.Kube.Version(); v != r.version || r.moved || len(r.alone) > 0 {
		r.version, r.moved = v, false
		r.whole()
	}
}

// whole looks at everything that there is.
func (r *rules) whole() {
	claims := r.claimsNow()
	r.orphans(claims)
	r.limits(claims)
}

// orphans finds machines of ours that nobody knows.
func (r *rules) orphans(claims []karpv1.NodeClaim) {
	known := map[string]bool{}
	for i := range claims {
		c := &claims[i]
		known[c.Name], known[c.Status.ProviderID] = true, true
	}
	for _, i := range r.w.Cloud.Instances() {
		mine := i.Tags[launch.OwnedTag(clusterName)] == "owned" && i.Tags[launch.ClaimTag] != ""
		if !mine || i.Gone() || known[i.ProviderID()] || known[i.Tags[launch.ClaimTag]] {
			delete(r.alone, i.ID)
			continue
		}
		since, before := r.alone[i.ID]
		if !before {
			r.alone[i.ID] = r.w.Now()
		} else if r.w.Now().Sub(since) > orphanGrace {
			r.broken("instance %s of NodeClaim %s has no record, for %s", i.ID, i.Tags[launch.ClaimTag], orphanGrace)
		}
	}
}

// limits adds up what the pool has.
func (r *rules) limits(claims []karpv1.NodeClaim) {
	var sum resource.Quantity
	for i := range claims {
		if claims[i].DeletionTimestamp == nil {
			sum.Add(claims[i].Status.Capacity[corev1.ResourceCPU])
		}
	}
	if sum.Value() > r.limit {
		r.broken("the pool has %s CPU, and its limit is %d", sum.String(), r.limit)
	}
}

// rest says what is not as it must be when nothing has gone wrong for long.
func (r *rules) rest() (moving []string) {
	broken := func(format string, args ...any) {
		moving = append(moving, fmt.Sprintf("%s: ", r.w.Now().Sub(start))+fmt.Sprintf(format, args...))
	}
	var pods corev1.PodList
	r.w.must(r.w.kube.List(ctx, &pods, client.UnsafeDisableDeepCopy))
	busy := map[string]bool{}
	for i := range pods.Items {
		p := &pods.Items[i]
		daemon := p.Labels["app"] == "agent"
		if p.Spec.NodeName != "" && !daemon {
			busy[p.Spec.NodeName] = true
		}
		// One that is being deleted on a machine that is gone has its successor.
		if p.Status.Phase != corev1.PodRunning && !daemon && p.DeletionTimestamp == nil {
			broken("at rest pod %s/%s is %s on node %q: %s", p.Namespace, p.Name, p.Status.Phase, p.Spec.NodeName, r.w.said("Pod/"+p.Namespace+"/"+p.Name))
		}
	}
	alive := map[string]bool{}
	for _, i := range r.w.Cloud.Instances() {
		if !i.Gone() && i.Tags[launch.OwnedTag(clusterName)] == "owned" {
			alive[i.ProviderID()] = true
		}
	}
	for _, c := range r.claimsNow() {
		switch {
		case c.DeletionTimestamp != nil:
			broken("at rest NodeClaim %s is still being deleted", c.Name)
		case c.Status.NodeName == "" || !alive[c.Status.ProviderID]:
			broken("at rest NodeClaim %s has node %q and instance %q, alive %v", c.Name, c.Status.NodeName, c.Status.ProviderID, alive[c.Status.ProviderID])
		case !busy[c.Status.NodeName]:
			broken("at rest node %s is empty", c.Status.NodeName)
		}
		delete(alive, c.Status.ProviderID)
	}
	for id := range alive {
		broken("at rest machine %s has no record", id)
	}
	return moving
}

// said is what was said last about an object.
func (w *world) said(about string) string {
	for _, t := range slices.Backward(w.Log.Texts) {
		if slices.Contains(t.About, about) {
			return t.Words
		}
	}
	return "nothing was said"
}
