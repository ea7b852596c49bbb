package cluster

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/internal/core/schedule"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/convert"
	"karpenter/sim/kube"
)

// Daemons is the DaemonSet controller: one pod of each set on each node that it
// suits. The pods ask for their node by name and are bound by the scheduler. A
// changed template holds for the pods that come after it.
type Daemons struct {
	client *kube.Client
	opt    Options
	queue  queue // of DaemonSets and of Nodes
	nodes  map[string]*corev1.Node
	sets   map[id]*daemons
}

// daemons are a set, nil if there is none of the name, and its pods by node.
type daemons struct {
	set  *appsv1.DaemonSet
	as   world.Daemon
	pods map[string]map[id]*corev1.Pod
}

func newDaemons(k *kube.Cluster, opt Options) *Daemons {
	d := &Daemons{client: k.Client("daemon-set-controller"), opt: opt, nodes: map[string]*corev1.Node{}, sets: map[id]*daemons{}}
	k.Subscribe(d.see)
	return d
}

func (d *Daemons) see(e kube.Event) {
	switch o := e.Object().(type) {
	case *appsv1.DaemonSet:
		i := idOf(o)
		s := d.of(i)
		if e.New == nil {
			s.set = nil
			return
		}
		s.set, s.as = o, convert.Daemon(o)
		i.Kind = "DaemonSet"
		d.queue.add(i, time.Time{})
	case *corev1.Node:
		d.nodes[o.Name] = o
		if e.New == nil {
			delete(d.nodes, o.Name)
		} else if e.Old == nil || concerns(e.Old.(*corev1.Node), o) {
			d.queue.add(nodeID(o.Name), time.Time{})
		}
	case *corev1.Pod:
		if ref := metav1.GetControllerOfNoCopy(o); ref != nil && ref.Kind == "DaemonSet" {
			d.seePod(e, o, d.of(id{Namespace: o.Namespace, Name: ref.Name}))
		}
	}
}

func (d *Daemons) of(i id) *daemons {
	if d.sets[i] == nil {
		d.sets[i] = &daemons{pods: map[string]map[id]*corev1.Pod{}}
	}
	return d.sets[i]
}

func (d *Daemons) seePod(e kube.Event, p *corev1.Pod, s *daemons) {
	node := nodeOf(p)
	if node == "" {
		return
	}
	if s.pods[node] == nil {
		s.pods[node] = map[id]*corev1.Pod{}
	}
	s.pods[node][idOf(p)] = p
	if e.New == nil {
		delete(s.pods[node], idOf(p))
	}
	if e.New == nil || finished(p) {
		d.queue.add(nodeID(node), time.Time{})
	}
}

// concerns reports whether a node has changed in what decides about its daemons.
func concerns(a, b *corev1.Node) bool {
	return !sameMap(a.Labels, b.Labels) || len(a.Spec.Taints) != len(b.Spec.Taints) || taintsDiffer(a.Spec.Taints, b.Spec.Taints)
}

// Step implements [Part].
func (d *Daemons) Step(now time.Time) time.Time {
	for _, i := range d.queue.take(now) {
		if err := d.work(i); client.IgnoreNotFound(err) != nil {
			d.queue.add(i, now.Add(retry))
		}
	}
	return d.queue.next(now)
}

func (d *Daemons) work(i id) error {
	if i.Kind == "Node" {
		node := d.nodes[i.Name]
		if node == nil {
			return nil
		}
		for _, s := range sortedKeys(d.sets, id.compare) {
			if err := d.place(d.sets[s], node); err != nil {
				return err
			}
		}
		return nil
	}
	i.Kind = ""
	s := d.of(i)
	for _, name := range sortedKeys(d.nodes, compareStrings) {
		if err := d.place(s, d.nodes[name]); err != nil {
			return err
		}
	}
	return nil
}

// place sees to it that the node has the pod of the set that it should have.
func (d *Daemons) place(s *daemons, node *corev1.Node) error {
	if s.set == nil {
		return nil
	}
	ctx := context.Background()
	suits := schedule.Suits(&s.as.Template, node.Labels)
	comes, stays := suits, suits
	for _, t := range node.Spec.Taints {
		if taint := (world.Taint{Key: t.Key, Value: t.Value, Effect: world.Effect(t.Effect)}); !world.Tolerated(taint, s.as.Template.Tolerations) {
			comes = comes && taint.Effect == world.PreferNoSchedule
			stays = stays && taint.Effect != world.NoExecute
		}
	}
	there := false
	for _, i := range sortedKeys(s.pods[node.Name], id.compare) {
		p := s.pods[node.Name][i]
		switch {
		case p.DeletionTimestamp != nil:
			there = true // its place is taken until it has gone
		case finished(p), !stays:
			if err := d.client.Delete(ctx, p); client.IgnoreNotFound(err) != nil {
				return err
			}
			there = there || p.Spec.NodeName != "" && !finished(p)
		default:
			there = true
		}
	}
	if there || !comes || node.DeletionTimestamp != nil || s.set.DeletionTimestamp != nil || !d.opt.Daemons(node) {
		return nil
	}
	err := d.client.Create(ctx, daemonPod(s, node.Name))
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// daemonPod is a pod of the set for a node: with the tolerations that daemons
// have, and bound to the node by its affinity.
func daemonPod(s *daemons, node string) *corev1.Pod {
	p := fromTemplate(s.set, "DaemonSet", appsv1.SchemeGroupVersion.String(), &s.set.Spec.Template)
	p.Name = s.set.Name + "-" + node
	for _, t := range s.as.Template.Tolerations[len(p.Spec.Tolerations):] {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOperator(t.Op), Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
	}
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	if p.Spec.Affinity.NodeAffinity == nil {
		p.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}}
	return p
}

// nodeOf is the node that a pod is on, or the only one that it may go to.
func nodeOf(p *corev1.Pod) string {
	if p.Spec.NodeName != "" {
		return p.Spec.NodeName
	}
	if a := p.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for _, t := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			if len(t.MatchFields) == 1 && t.MatchFields[0].Key == metav1.ObjectNameField && len(t.MatchFields[0].Values) == 1 {
				return t.MatchFields[0].Values[0]
			}
		}
	}
	return ""
}
