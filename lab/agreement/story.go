package agreement

import (
	"fmt"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"

	karpv1 "karpenter/api/v1"
	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/dialect"
)

// story is one way in which a plan may come true.
type story struct {
	*trial
	f *freely
	r *rand.Rand
	// planned pods, by the name of their node.
	planned map[string][]world.ObjectName
	// held are pods for which room was kept before, by the name of their node.
	held   map[string][]world.ObjectName
	closed map[string]*corev1.Node // nodes that keep pods off, as they will be
}

// shut keeps pods off an existing node until the plan is made: whatever kept
// them from it when the scheduler tried them is over then.
var shut = corev1.Taint{Key: "agreement/shut", Effect: corev1.TaintEffectNoSchedule}

// ending is how a story ended.
type ending struct {
	// homeless are planned pods without a node: something must be bought again.
	homeless []world.ObjectName
	// lucky counts pods that were left pending and have a node all the same: one
	// such pod may have come before a planned one.
	lucky int
	// rebuy is what must be bought again costs.
	rebuy quantity.Price
	// empty are planned machines without a pod, although theirs run elsewhere.
	empty []string
	// astray counts planned pods that went to another node than planned.
	astray int
}

// telling is how a story goes on after the plan.
type telling struct {
	// nominate: pods are pointed to their nodes, as the controller does.
	nominate bool
	// staggered: machines join minutes apart, so that the scheduler comes to
	// rest in between; otherwise they join together.
	staggered bool
}

// tell lets the freely running scheduler take the plan: all pods are tried and
// refused, the plan is made, existing nodes get room, and the machines of the
// plan register in random order, each in the way of the controller.
func (t *trial) tell(seed uint64, how telling) (ending, error) {
	if len(t.places)+len(t.machines) == 0 {
		return ending{}, nil
	}
	f, err := newFreely()
	if err != nil {
		return ending{}, err
	}
	defer f.close()
	s := &story{trial: t, f: f, r: rand.New(rand.NewPCG(seed, 0x5703)), planned: map[string][]world.ObjectName{}, held: map[string][]world.ObjectName{}, closed: map[string]*corev1.Node{}}
	if err := s.begin(); err != nil {
		return ending{}, err
	}
	var standing, coming []string
	for _, p := range t.places {
		if p.booting {
			coming = append(coming, p.node.Name)
		} else {
			standing = append(standing, p.node.Name)
		}
	}
	for _, m := range t.machines {
		coming = append(coming, m.node.Name)
	}
	s.r.Shuffle(len(coming), func(i, j int) { coming[i], coming[j] = coming[j], coming[i] })
	acts := [][]string{standing, coming}
	if how.staggered {
		acts = [][]string{standing}
		for _, name := range coming {
			acts = append(acts, []string{name})
		}
	}
	for _, names := range acts {
		if err := s.open(how.nominate, names); err != nil {
			return ending{}, err
		}
	}
	if err := f.sweep(); err != nil {
		return ending{}, err
	}
	return s.end()
}

// begin puts everything there, with all nodes shut, and lets the scheduler try
// all pods in vain.
func (s *story) begin() error {
	for _, n := range s.nodes() {
		s.f.put(s.csiNode(n))
	}
	for i := range s.Namespaces {
		s.f.put(s.Namespaces[i].DeepCopy())
	}
	for i := range s.Classes {
		s.f.put(s.Classes[i].DeepCopy())
	}
	for i := range s.Volumes {
		s.f.put(s.Volumes[i].DeepCopy())
	}
	for _, c := range s.allClaims() {
		s.f.put(c.DeepCopy())
	}
	for _, n := range s.nodes() {
		s.closed[n.Name] = n
		n = n.DeepCopy()
		n.Spec.Taints = append(n.Spec.Taints, shut, dialect.TaintUnregistered)
		s.f.put(n)
	}
	for _, p := range s.bound {
		s.f.put(p.DeepCopy())
	}
	for _, p := range s.places {
		if p.booting {
			continue
		}
		for _, pod := range s.daemonPods(p.node) {
			s.f.put(bindTo(pod, p.node.Name))
		}
	}
	for _, p := range s.plan.Placements {
		at, _ := s.placeOf(p)
		s.planned[at.node.Name] = append(s.planned[at.node.Name], p.Pod)
	}
	var pending []*corev1.Pod
	for node, pods := range s.reserved {
		for _, p := range pods {
			pending = append(pending, p)
			s.held[node] = append(s.held[node], nameOf(p))
		}
	}
	for _, m := range s.machines {
		s.planned[m.node.Name] = append(s.planned[m.node.Name], m.planned.Pods...)
	}
	for _, p := range s.view.Pending {
		pending = append(pending, s.pod(p.ObjectName))
	}
	slices.SortFunc(pending, func(a, b *corev1.Pod) int { return nameOf(a).Compare(nameOf(b)) })
	s.r.Shuffle(len(pending), func(i, j int) { pending[i], pending[j] = pending[j], pending[i] })
	for _, p := range pending {
		s.f.put(unbound(p))
	}
	return s.f.settle()
}

// open lets pods onto nodes. Before that the pods planned for them are
// nominated.
func (s *story) open(nominate bool, names []string) error {
	for _, name := range names {
		for _, pod := range s.held[name] {
			s.nominate(pod, name)
		}
		for _, pod := range s.planned[name] {
			if nominate {
				s.nominate(pod, name)
			}
		}
	}
	if err := s.f.settle(); err != nil {
		return err
	}
	for _, name := range names {
		s.f.put(s.closed[name].DeepCopy())
	}
	for _, name := range names { // the DaemonSet controller is not the first to see it
		for _, p := range s.daemonPods(s.closed[name]) {
			if s.f.pod(p.Namespace, p.Name) == nil {
				s.f.put(bindTo(p, name))
			}
		}
	}
	return s.f.settle()
}

func (s *story) nominate(pod world.ObjectName, node string) {
	if p := s.f.pod(pod.Namespace, pod.Name); p != nil && p.Spec.NodeName == "" && p.Status.NominatedNodeName != node {
		p = p.DeepCopy()
		p.Status.NominatedNodeName = node
		s.f.put(p)
	}
}

func (s *story) end() (ending, error) {
	var e ending
	inhabited := map[string]bool{}
	for node, pods := range s.planned {
		for _, name := range pods {
			p := s.f.pod(name.Namespace, name.Name)
			if p == nil { // preempted
				e.homeless = append(e.homeless, name)
				continue
			}
			switch inhabited[p.Spec.NodeName] = true; p.Spec.NodeName {
			case "":
				e.homeless = append(e.homeless, name)
			case node:
			default:
				e.astray++
			}
		}
	}
	for _, u := range s.plan.Unplaced {
		if p := s.f.pod(u.Pod.Namespace, u.Pod.Name); p != nil && p.Spec.NodeName != "" {
			inhabited[p.Spec.NodeName] = true
			e.lucky++
		}
	}
	for _, m := range s.machines {
		runs := func(p world.ObjectName) bool { return !slices.Contains(e.homeless, p) }
		if !inhabited[m.node.Name] && slices.ContainsFunc(m.planned.Pods, runs) {
			e.empty = append(e.empty, m.node.Name)
		}
	}
	slices.SortFunc(e.homeless, world.ObjectName.Compare)
	if len(e.homeless) == 0 {
		return e, nil
	}
	view, err := s.afterwards().View()
	if err != nil {
		return e, err
	}
	plan := Solve(view.Snapshot)
	if e.rebuy = plan.Price(); e.rebuy == quantity.PriceUnknown {
		e.rebuy = 0
	}
	return e, nil
}

// afterwards is the cluster as the story leaves it.
func (s *story) afterwards() *Cluster {
	c := s.Cluster.clone()
	c.Nodes, c.Claims, c.Pods, c.Volumes, c.VolumeClaims = nil, nil, nil, nil, nil
	add := func(n *corev1.Node, claim *karpv1.NodeClaim) {
		n = s.closed[n.Name].DeepCopy()
		if claim != nil {
			claim = claim.DeepCopy()
			if claim.Status.ProviderID == "" {
				buy(claim, option{s.kind(n.Labels[label.InstanceType]), n.Labels[label.Zone], n.Labels[label.CapacityType]}, s.Region)
				claim.Status.ProviderID = "aws:///" + n.Name
				n.Spec.ProviderID = claim.Status.ProviderID
			}
			delete(claim.Annotations, dialect.AnnotationPlannedPods)
			c.Claims = append(c.Claims, *claim)
		}
		c.Nodes = append(c.Nodes, *n)
	}
	for _, p := range s.places {
		i := slices.IndexFunc(s.Claims, func(c karpv1.NodeClaim) bool { return c.Name == p.claim })
		if i < 0 {
			add(p.node, nil)
		} else {
			add(p.node, &s.Claims[i])
		}
	}
	for _, m := range s.machines {
		add(m.node, m.claim)
	}
	for _, p := range all[*corev1.Pod](s.f) {
		if p = p.DeepCopy(); p.Spec.NodeName == "" {
			p.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{unschedulable()}}
		}
		c.Pods = append(c.Pods, *p)
	}
	for _, pv := range all[*corev1.PersistentVolume](s.f) {
		c.Volumes = append(c.Volumes, *pv)
	}
	for _, pvc := range all[*corev1.PersistentVolumeClaim](s.f) {
		c.VolumeClaims = append(c.VolumeClaims, *pvc)
	}
	return c
}

// unstoppable reports whether a pod tolerates whatever keeps others off a node
// that boots: it goes where it likes, and no plan can hold it.
func (t *trial) unstoppable() bool {
	for _, p := range t.view.Pending {
		if world.Tolerated(world.Taint{Key: dialect.TaintUnregistered.Key, Effect: world.NoExecute}, p.Tolerations) {
			return true
		}
	}
	return false
}

// breach is what is wrong with the ending, if it had to be a happy one.
func (e ending) breach() *Disagreement {
	switch {
	case len(e.homeless) > e.lucky:
		return &Disagreement{"comes-true", "homeless", fmt.Sprintf("pods %v are planned, but find no node", e.homeless)}
	case len(e.empty) > 0:
		return &Disagreement{"comes-true", "empty", fmt.Sprintf("machines %v were bought, but stay empty", e.empty)}
	}
	return nil
}
