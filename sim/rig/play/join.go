package play

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/internal/aws/launch"
	"karpenter/sim/ec2"
)

// joining is how a machine becomes a node.
type joining struct {
	ready bool
	zero  []string // resources that it publishes as 0
}

// join makes a machine a node, if it runs and is not one.
func (p *player) join(id string, how joining) {
	p.rig.Cloud.Tick()
	i, ok := p.rig.Cloud.Instance(id)
	if !ok || i.NeverJoins || i.State != ec2.Running && i.State != ec2.Pending {
		return
	}
	for _, n := range p.nodes() {
		if n.Spec.ProviderID == i.ProviderID() {
			return
		}
	}
	n := p.nodeOf(&i)
	for _, r := range how.zero {
		n.Status.Allocatable[corev1.ResourceName(r)] = resource.MustParse("0")
		n.Status.Capacity[corev1.ResourceName(r)] = resource.MustParse("0")
	}
	if !how.ready {
		n.Status.Conditions[0].Status = corev1.ConditionFalse
	}
	old := &corev1.Node{}
	if err := p.get(old, "", n.Name); err == nil { // the name is used again
		old.Finalizers = nil
		kube := p.rig.Kube.Client("kubelet")
		p.must(kube.Update(ctx, old))
		p.must(client.IgnoreNotFound(kube.Delete(ctx, old)))
	}
	p.must(p.rig.Kube.Import(n))
}

// nodeOf is the Node of a machine, as the case wants it.
func (p *player) nodeOf(i *ec2.Instance) *corev1.Node {
	n := p.rig.NodeOf(i)
	if i.Row.Stated == nil {
		p.promised(n, i.Tags[launch.ClaimTag])
	}
	if t := p.typ(i.Type); t != nil {
		for name, q := range t.Actual {
			n.Status.Allocatable[name] = q
		}
	}
	return n
}

// nodes are those that exist, by name.
func (p *player) nodes() []corev1.Node {
	var list corev1.NodeList
	p.must(p.rig.Kube.Client("world").List(ctx, &list))
	return list.Items
}

// named are the nodes that a step means: one by name, or all launched ones.
func (p *player) named(name string) []corev1.Node {
	return slices.DeleteFunc(p.nodes(), func(n corev1.Node) bool {
		if name == "launched" {
			return !slices.ContainsFunc(p.launched, func(i ec2.Instance) bool { return i.ProviderID() == n.Spec.ProviderID })
		}
		return n.Name != name
	})
}
