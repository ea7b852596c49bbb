package agreement

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "karpenter/api/v1"
	"karpenter/internal/aws/launch"
	"karpenter/internal/cloud"
	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/convert"
	"karpenter/internal/kube/dialect"
)

// option is a machine that can be bought.
type option struct {
	kind *world.InstanceType
	zone string
	// market is the capacity type.
	market string
}

// survivors are the options of which the cloud may pick one for the record.
func survivors(c *Cluster, claim *karpv1.NodeClaim) []option {
	r := convert.Record(claim)
	var out []option
	for _, found := range launch.Fitting(c.Types, &cloud.LaunchRequest{Requirements: r.Requirements, Requests: r.Requests, Labels: r.Labels}) {
		for _, o := range found.Offerings {
			out = append(out, option{found.Type, o.Zone, o.CapacityType})
		}
	}
	return out
}

// chooser decides what the cloud makes of a record.
type chooser func(claim string, all []option) option

// lottery draws a number for every option and takes the greatest, so that the
// choice stays the same when others fall away.
func lottery(seed uint64) chooser {
	return func(claim string, all []option) option {
		best, most := 0, uint64(0)
		for i, o := range all {
			h := fnv.New64a()
			fmt.Fprint(h, seed, claim, o.kind.Name, o.zone, o.market)
			if n := h.Sum64(); n > most {
				best, most = i, n
			}
		}
		return all[best]
	}
}

// aliases are labels that nodes on AWS carry beside the ones they stand for.
var aliases = map[string]string{
	"failure-domain.beta.kubernetes.io/zone":   label.Zone,
	"topology.ebs.csi.aws.com/zone":            label.Zone,
	"failure-domain.beta.kubernetes.io/region": label.Region,
	"beta.kubernetes.io/arch":                  label.Arch,
	"beta.kubernetes.io/os":                    label.OS,
	"beta.kubernetes.io/instance-type":         label.InstanceType,
}

// launchLabels are the keys that a Node gets from its kubelet and from the
// cloud's controllers, whoever bought it.
var launchLabels = map[string]bool{label.Hostname: true, label.Zone: true, label.Region: true, label.Arch: true, label.OS: true, label.InstanceType: true}

// cloudLabels are the labels that follow from what was bought.
func cloudLabels(o option, region string) map[string]string {
	out := maps.Clone(o.kind.Labels)
	out[label.Zone], out[label.CapacityType], out[label.Region] = o.zone, o.market, region
	for alias, key := range aliases {
		out[alias] = out[key]
	}
	return out
}

// buy writes down that the record got the option, as the ledger does.
func buy(claim *karpv1.NodeClaim, o option, region string) {
	labels := maps.Clone(o.kind.Labels)
	labels[label.Zone], labels[label.CapacityType], labels[label.Region] = o.zone, o.market, region
	maps.Copy(labels, claim.Labels)
	claim.Labels = labels
	claim.Status.Capacity, claim.Status.Allocatable = list(o.kind.Capacity), list(o.kind.Allocatable)
	claim.Status.Conditions = []metav1.Condition{{Type: karpv1.ConditionLaunched, Status: metav1.ConditionTrue, Reason: "Launched", LastTransitionTime: ago(0)}}
}

// machineNode is the Node of a record's machine when nothing is left to wait
// for.
func machineNode(claim *karpv1.NodeClaim, o option, region, name string) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: cloudLabels(o, region), CreationTimestamp: ago(0)},
		Spec:       corev1.NodeSpec{ProviderID: claim.Status.ProviderID, Taints: coreTaints(claim.Spec.Taints)},
		Status: corev1.NodeStatus{
			Capacity: list(o.kind.Capacity), Allocatable: list(o.kind.Allocatable),
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	maps.Copy(n.Labels, claim.Labels)
	n.Labels[label.Hostname], n.Labels[label.Registered], n.Labels[label.Initialized] = name, "true", "true"
	return n
}

// place is a node of the cluster as it will be when it takes pods.
type place struct {
	node  *corev1.Node
	claim string // empty on foreign nodes
	// booting: pods cannot run there yet.
	booting bool
	// open: the machine is not launched, and what it becomes is not decided. A
	// plan may use it, but need not: it will be seen when it is launched.
	open bool
}

// places are the nodes that exist and those that are on their way, without
// those that are going. choose picks what the cloud makes of a record that has
// not been launched.
func (c *Cluster) places(choose chooser) []place {
	var out []place
	seen := map[string]bool{}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		claim := c.claimOf(n)
		if claim != nil {
			seen[claim.Name] = true
		}
		if n.DeletionTimestamp == nil && (claim == nil || claim.DeletionTimestamp == nil) {
			out = append(out, settled(n, claim))
		}
	}
	for i := range c.Claims {
		claim := &c.Claims[i]
		if seen[claim.Name] || claim.DeletionTimestamp != nil {
			continue
		}
		all := survivors(c.later(), claim)
		if claim.Status.ProviderID != "" {
			all = []option{{c.kind(claim.Labels[label.InstanceType]), claim.Labels[label.Zone], claim.Labels[label.CapacityType]}}
		}
		if len(all) > 0 {
			out = append(out, place{machineNode(claim, choose(claim.Name, all), c.Region, claim.Name), claim.Name, true, claim.Status.ProviderID == ""})
		}
	}
	return out
}

// later is the cluster at a time when the cloud has everything again. A machine
// that is not launched yet may find it so.
func (c *Cluster) later() *Cluster {
	out := *c
	out.Types = slices.Clone(c.Types)
	for i := range out.Types {
		t := &out.Types[i]
		t.Offerings = slices.Clone(t.Offerings)
		for j := range t.Offerings {
			t.Offerings[j].Available = true
		}
	}
	return &out
}

func (c *Cluster) claimOf(n *corev1.Node) *karpv1.NodeClaim {
	for i := range c.Claims {
		if c.Claims[i].Status.ProviderID == n.Spec.ProviderID {
			return &c.Claims[i]
		}
	}
	return nil
}

// settled takes a Node that is still booting to where it will be.
func settled(n *corev1.Node, claim *karpv1.NodeClaim) place {
	if claim == nil {
		return place{node: n}
	}
	if n.Labels[label.Initialized] == "true" {
		return place{node: n, claim: claim.Name}
	}
	n = n.DeepCopy()
	boot := append(dialect.EphemeralTaints(), coreTaints(claim.Spec.StartupTaints)...)
	n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return slices.ContainsFunc(boot, func(b corev1.Taint) bool { return b.Key == t.Key && b.Effect == t.Effect && b.Value == t.Value })
	})
	if n.Labels[label.Registered] != "true" {
		n.Spec.Taints = append(n.Spec.Taints, coreTaints(claim.Spec.Taints)...)
	}
	maps.Copy(n.Labels, claim.Labels)
	n.Labels[label.Registered], n.Labels[label.Initialized] = "true", "true"
	for name, q := range claim.Status.Allocatable {
		if have := n.Status.Allocatable[name]; have.IsZero() {
			n.Status.Allocatable[name] = q
		}
	}
	return place{node: n, claim: claim.Name, booting: true}
}

// list writes amounts as Kubernetes does.
func list(r quantity.Resources) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, a := range r.Amounts() {
		switch a.Name {
		case quantity.CPU:
			out[corev1.ResourceCPU] = *milli(int(a.Value))
		default:
			out[corev1.ResourceName(a.Name)] = *count(a.Value)
		}
	}
	return out
}

func milli(n int) *resource.Quantity   { return resource.NewMilliQuantity(int64(n), resource.DecimalSI) }
func count(n int64) *resource.Quantity { return resource.NewQuantity(n, resource.DecimalSI) }
func mebi(n int) *resource.Quantity    { return resource.NewQuantity(int64(n)<<20, resource.BinarySI) }

// coreTaints are the taints of a claim as those of a node.
func coreTaints(list []karpv1.Taint) []corev1.Taint {
	var out []corev1.Taint
	for _, t := range list {
		out = append(out, corev1.Taint(t))
	}
	return out
}
