// Package faults makes random histories of the whole product with faults of
// every kind, and holds them against what must always be true.
//
// It may import the rig and what it drives. What always holds: a history
// follows from its seed alone, so one that breaks a rule can be played again.
package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/v1alpha5"
	"karpenter/internal/aws"
	"karpenter/internal/aws/catalog"
	"karpenter/internal/aws/launch"
	"karpenter/internal/core/quantity"
	"karpenter/internal/settings"
	"karpenter/sim/cluster"
	"karpenter/sim/ec2"
	"karpenter/sim/rig"
)

var ctx = context.Background()

// start is when histories begin.
var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

const clusterName = "faults"

// world is one history in the making.
type world struct {
	*rig.Rig
	rng    *rand.Rand
	kube   client.Client
	around *rig.Around

	rules *rules
	shape shape
	down  map[string]bool // nodes whose kubelet is gone
	chaos *chaos
}

// newWorld makes a cluster with a pool, a cloud with a few types, and nothing
// that runs.
func newWorld(seed uint64, plant rig.Plant, s shape) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 0x6661756c74)), down: map[string]bool{}, shape: s}
	set := settings.Default()
	set.ClusterName, set.DriftEnabled = clusterName, s.Drift
	if s.Queue {
		set.InterruptionQueue = queueName
	}
	region := region()
	w.Rig = rig.New(rig.Options{
		Seed: seed, Start: start, Settings: set, Shuffle: true,
		Cloud: ec2.Options{Region: "us-west-2", Zones: zones, World: &region, Lag: time.Duration(w.rng.IntN(4)) * time.Second},
		Shared: aws.Settings{Cluster: launch.Cluster{Name: clusterName, Endpoint: "https://api.test", CABundle: "Y2E=", Version: "1.33", ServiceCIDR: netip.MustParsePrefix("10.100.0.0/16"),
			DefaultInstanceProfile: "node-profile", ENILimitedPodDensity: true}, VMMemoryOverheadPercent: set.VMMemoryOverheadPercent},
	})
	w.Plant = plant
	w.Cloud.AddQueue(queueName)
	w.kube = w.Kube.Client("world")
	w.rules = newRules(w)
	w.Cloud.Subscribe(w.machineChanged)
	w.Kube.Subscribe(w.rules.changed)
	env, err := cluster.New(w.Kube, cluster.Options{Down: w.isDown})
	w.must(err)
	w.around = w.Surround(env.Step)
	w.furnish()
	w.Watch(w.rules.look)
	return w
}

// must is for what the world does itself.
func (w *world) must(err error) {
	if err != nil {
		panic(fmt.Sprintf("the world itself: %v", err))
	}
}

// setDown says whether a kubelet runs on a machine, and lets the cluster notice.
func (w *world) setDown(providerID string, down bool) {
	w.down[providerID] = down
	w.around.Wake()
	if down {
		return
	}
	var nodes corev1.NodeList
	w.must(w.kube.List(ctx, &nodes, client.UnsafeDisableDeepCopy))
	for i := range nodes.Items { // a kubelet that is back says so
		if nodes.Items[i].Spec.ProviderID != providerID {
			continue
		}
		n := nodes.Items[i].DeepCopy()
		for k := range n.Status.Conditions {
			if c := &n.Status.Conditions[k]; c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
				c.Status, c.Reason, c.LastTransitionTime = corev1.ConditionTrue, "KubeletReady", metav1.NewTime(w.Now())
				w.must(w.kube.Status().Update(ctx, n))
			}
		}
	}
}

func (w *world) isDown(n *corev1.Node) bool { return w.down[n.Spec.ProviderID] }

var zones = []string{"us-west-2a", "us-west-2b", "us-west-2c"}

// region sells four sizes in three zones, on demand and spot.
func region() ec2.World {
	w := ec2.World{VPCs: []ec2.VPC{{ID: "vpc-1", CIDR: "10.0.0.0/8"}}}
	w.Images, w.Parameters = ec2.StandardImages()
	tags := ec2.Tags(selected)
	for i, z := range zones {
		w.Subnets = append(w.Subnets, ec2.Subnet{ID: "subnet-" + z, VPC: "vpc-1", Zone: z, CIDR: fmt.Sprintf("10.%d.0.0/16", i+1), Tags: tags})
	}
	w.SecurityGroups = []ec2.SecurityGroup{{ID: "sg-1", Name: "nodes", VPC: "vpc-1", Tags: tags}}
	for i, cpu := range []int64{2, 4, 8, 16} {
		name := []string{"m5.large", "m5.xlarge", "m5.2xlarge", "m5.4xlarge"}[i]
		w.Types = append(w.Types, catalog.Row{Name: name, Arch: []string{"x86_64"}, VCPU: cpu, MemoryMiB: cpu * 4096, Hypervisor: "nitro",
			Markets: []string{"on-demand", "spot"}, MaxENIs: 4, IPv4PerENI: 15, EBSVolumes: 27, CPUManufacturer: "intel",
			Stated: &catalog.Stated{Capacity: sizes(cpu*1000, cpu*4096), Allocatable: sizes(cpu*1000-100, cpu*4096-1024)}})
		for _, z := range zones {
			price := quantity.Price(cpu * 48_000)
			w.Offers = append(w.Offers, ec2.Offer{Type: name, Zone: z, OnDemand: price, Spot: price * 2 / 5})
		}
	}
	return w
}

func sizes(milli, mib int64) []quantity.Amount {
	return []quantity.Amount{{Name: quantity.CPU, Value: milli}, {Name: quantity.Memory, Value: mib << 20}, {Name: quantity.Pods, Value: 58}}
}

// limitCPU is the limit of the pool; the workload stays well below it.
const limitCPU = 200

// furnish makes the pool and what goes with it.
func (w *world) furnish() {
	for _, ns := range []string{"default", "kube-system"} {
		w.must(w.Kube.Import(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
	}
	w.must(w.Kube.Import(w.shape.objects(corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(limitCPU, resource.DecimalSI)})...))
	daemon := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "agent"}}
	daemon.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}}
	daemon.Spec.Template = template("agent", 100)
	w.must(w.Kube.Import(daemon))
}

func template(app string, milli int64) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example.test/app:1", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{
				corev1.ResourceCPU:    *resource.NewMilliQuantity(milli, resource.DecimalSI),
				corev1.ResourceMemory: *resource.NewQuantity(milli<<21, resource.BinarySI),
			}}}}},
	}
}

// deploy makes a workload; guarded ones have a budget, some pods may not be
// evicted at all.
func (w *world) deploy(name string, replicas int32, milli int64, guarded, bound bool) {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	d.Spec.Replicas = &replicas
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	d.Spec.Template = template(name, milli)
	if bound {
		d.Spec.Template.Annotations = map[string]string{"karpenter.sh/do-not-evict": "true"}
	}
	w.must(w.kube.Create(ctx, d))
	if guarded {
		one := intstr.FromInt32(1)
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		b.Spec.MaxUnavailable, b.Spec.Selector = &one, d.Spec.Selector
		w.must(w.kube.Create(ctx, b))
	}
}

// scale changes a workload.
func (w *world) scale(name string, replicas int32) {
	d := &appsv1.Deployment{}
	w.must(w.kube.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, d))
	d.Spec.Replicas = &replicas
	w.must(w.kube.Update(ctx, d))
}

const poolName = "main" // and that of its class

// provisioner is the pool as it is now.
func (w *world) provisioner() *v1alpha5.Provisioner { return read(w, &v1alpha5.Provisioner{}) }

// read reads the pool, or its class.
func read[T client.Object](w *world, o T) T {
	w.must(w.kube.Get(ctx, client.ObjectKey{Name: poolName}, o))
	return o
}

// machineChanged makes machines nodes, unless something is wrong with them.
func (w *world) machineChanged(e ec2.Event) {
	i := e.Instance
	w.rules.moved = true
	if e.From == "" && i.FleetID != "" {
		w.rules.launched(&i)
	}
	switch {
	case i.State == ec2.Running && i.FleetID != "":
		w.setDown(i.ProviderID(), false)
		if !i.NeverJoins {
			w.After(20*time.Second+time.Duration(w.rng.IntN(30))*time.Second+w.chaos.boot(), func() { w.join(i.ID) })
		}
	case i.State != ec2.Pending:
		w.setDown(i.ProviderID(), true)
	}
}

// join makes a machine a node.
func (w *world) join(id string) {
	i, ok := w.Cloud.Instance(id)
	if !ok || i.State != ec2.Running {
		return
	}
	n := w.NodeOf(&i)
	w.chaos.shrink(n)
	if old := (&corev1.Node{}); w.kube.Get(ctx, client.ObjectKey{Name: n.Name}, old) == nil {
		return // a machine that was stopped and started
	}
	w.must(w.Kube.Import(n))
}
