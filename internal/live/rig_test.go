package live_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1alpha1 "karpenter/api/aws/v1alpha1"
	"karpenter/api/v1alpha5"
	"karpenter/internal/aws"
	"karpenter/internal/aws/catalog"
	"karpenter/internal/aws/launch"
	"karpenter/internal/core/quantity"
	"karpenter/internal/kube/logbook"
	"karpenter/internal/live"
	"karpenter/internal/settings"
	"karpenter/sim/cluster"
	"karpenter/sim/ec2"
	"karpenter/sim/rig"
)

var (
	ctx   = context.Background()
	start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	zones = []string{"us-west-2a", "us-west-2b", "us-west-2c"}
	tags  = map[string]string{"test": "true"}
)

// running is a cluster with the controller, on virtual time.
type running struct {
	*rig.Rig
	t    *testing.T
	rng  *rand.Rand
	kube client.Client
}

func region() ec2.World {
	w := ec2.World{VPCs: []ec2.VPC{{ID: "vpc-1", CIDR: "10.0.0.0/8"}}}
	w.Images, w.Parameters = ec2.StandardImages()
	for i, z := range zones {
		w.Subnets = append(w.Subnets, ec2.Subnet{ID: "subnet-" + z, VPC: "vpc-1", Zone: z, CIDR: fmt.Sprintf("10.%d.0.0/16", i+1), Tags: tags})
	}
	w.SecurityGroups = []ec2.SecurityGroup{{ID: "sg-1", Name: "nodes", VPC: "vpc-1", Tags: tags}}
	for i, name := range []string{"m5.large", "m5.xlarge", "m5.2xlarge", "m5.4xlarge"} {
		cpu := int64(2) << i
		size := func(less int64) []quantity.Amount {
			return []quantity.Amount{{Name: quantity.CPU, Value: cpu*1000 - less}, {Name: quantity.Memory, Value: (cpu*4096 - 10*less) << 20}, {Name: quantity.Pods, Value: 58}}
		}
		w.Types = append(w.Types, catalog.Row{Name: name, Arch: []string{"x86_64"}, VCPU: cpu, MemoryMiB: cpu * 4096, Hypervisor: "nitro",
			Markets: []string{"on-demand", "spot"}, MaxENIs: 4, IPv4PerENI: 15, EBSVolumes: 27, CPUManufacturer: "intel", Stated: &catalog.Stated{Capacity: size(0), Allocatable: size(100)}})
		for _, z := range zones {
			w.Offers = append(w.Offers, ec2.Offer{Type: name, Zone: z, OnDemand: quantity.Price(cpu * 48_000), Spot: quantity.Price(cpu * 19_200)})
		}
	}
	return w
}

// newRunning makes a cluster of a seed, with a provisioner that may consolidate
// or remove what is empty, and some workloads.
func newRunning(t *testing.T, seed uint64) *running {
	set := settings.Default()
	set.ClusterName = "live"
	world := region()
	w := &running{t: t, rng: rand.New(rand.NewPCG(seed, 1)), Rig: rig.New(rig.Options{
		Seed: seed, Start: start, Settings: set, Cloud: ec2.Options{Region: "us-west-2", Zones: zones, World: &world},
		Shared: aws.Settings{Cluster: launch.Cluster{Name: "live", Endpoint: "https://api.test", CABundle: "Y2E=", Version: "1.33", DefaultInstanceProfile: "p", ENILimitedPodDensity: true}, VMMemoryOverheadPercent: 0.075},
	})}
	w.kube = w.Kube.Client("test")
	env, err := cluster.New(w.Kube, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w.Surround(env.Step)
	w.Cloud.Subscribe(func(e ec2.Event) {
		if i := e.Instance; i.State == ec2.Running && i.FleetID != "" {
			w.After(20*time.Second, func() {
				if i, ok := w.Cloud.Instance(i.ID); ok && i.State == ec2.Running {
					w.must(w.Kube.Import(w.NodeOf(&i)))
				}
			})
		}
	})
	for _, ns := range []string{"default", "kube-system", "karpenter"} {
		w.must(w.Kube.Import(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
	}
	class := &awsv1alpha1.AWSNodeTemplate{ObjectMeta: metav1.ObjectMeta{Name: "main"}}
	class.Spec.SubnetSelector, class.Spec.SecurityGroupSelector = tags, tags
	pool := &v1alpha5.Provisioner{ObjectMeta: metav1.ObjectMeta{Name: "main"}}
	pool.Spec.ProviderRef = &v1alpha5.ProviderRef{Name: "main"}
	if ttl, yes := int64(30), true; w.rng.IntN(3) == 0 {
		pool.Spec.TTLSecondsAfterEmpty = &ttl
	} else {
		pool.Spec.Consolidation = &v1alpha5.Consolidation{Enabled: &yes}
	}
	w.must(w.Kube.Import(class, pool))
	for i := range 2 + w.rng.IntN(4) {
		w.deploy(fmt.Sprintf("app-%d", i), int32(w.rng.IntN(12)), []int64{200, 500, 900, 1800, 3500}[w.rng.IntN(5)])
	}
	w.Start()
	return w
}

func (w *running) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *running) deploy(name string, replicas int32, milli int64) {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	d.Spec.Replicas = &replicas
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	d.Spec.Template.Labels = map[string]string{"app": name}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "app:1", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewMilliQuantity(milli, resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(milli<<21, resource.BinarySI)}}}}
	w.must(w.kube.Create(ctx, d))
}

// shake scales all workloads anew, to at most so many pods each.
func (w *running) shake(most int) {
	var list appsv1.DeploymentList
	w.must(w.kube.List(ctx, &list))
	for i := range list.Items {
		n := int32(w.rng.IntN(most))
		list.Items[i].Spec.Replicas = &n
		w.must(w.kube.Update(ctx, &list.Items[i]))
	}
}

// controller answers as the metrics port of the process does.
func (w *running) controller(_ context.Context, path string, query url.Values) ([]byte, error) {
	mux := http.NewServeMux()
	mux.HandleFunc("/world", w.Process.All.ServeWorld)
	mux.Handle("/journal", w.Process.All.Journal)
	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/"+path+"?"+query.Encode(), nil))
	if answer.Code != http.StatusOK {
		return nil, fmt.Errorf("%d: %s", answer.Code, answer.Body)
	}
	return answer.Body.Bytes(), nil
}

func (w *running) cluster() live.Cluster {
	return live.Cluster{Reader: w.kube, Namespace: "karpenter", Controller: w.controller, Now: w.Now()}
}

// TestTwoWaysToTheSameWorld: what is read from the cluster alone is what the
// controller sees, but for what the cloud has told.
func TestTwoWaysToTheSameWorld(t *testing.T) {
	w := newRunning(t, 3)
	w.Run(start.Add(5 * time.Minute))
	asked, err := w.cluster().World(ctx)
	w.must(err)
	alone := w.cluster()
	alone.Controller = nil
	read, err := alone.World(ctx)
	w.must(err)
	if len(asked.Notes) != 0 || len(read.Notes) != 1 || asked.Source != "controller" || read.Source != "cluster" {
		t.Errorf("notes %q and %q", asked.Notes, read.Notes)
	}
	a, b := asked.Snapshot, read.Snapshot
	if len(a.Nodes) == 0 || len(a.Nodes) != len(b.Nodes) || len(a.Pools) != 1 || len(b.Pools) != 1 || len(asked.Records) != len(read.Records) {
		t.Fatalf("%d and %d nodes", len(a.Nodes), len(b.Nodes))
	}
	for i := range a.Nodes {
		x, y := &a.Nodes[i], &b.Nodes[i]
		if x.Name != y.Name || x.Claim != y.Claim || len(x.Pods) != len(y.Pods) || x.Initialized != y.Initialized || !x.Allocatable.Equal(y.Allocatable) {
			t.Errorf("node %s: %+v and %+v", x.Name, x, y)
		}
	}
	for _, c := range a.Catalogs {
		if len(c.Types) != 4 {
			t.Errorf("the controller sells %d types", len(c.Types))
		}
	}
	for _, c := range b.Catalogs {
		if len(c.Types) < 100 {
			t.Errorf("the embedded catalogue sells %d types", len(c.Types))
		}
	}
}

// TestJournalOutlivesTheNode: the story of a node that is gone, told after the
// controller was started anew.
func TestJournalOutlivesTheNode(t *testing.T) {
	w := newRunning(t, 4)
	keep := func() {
		k := &logbook.Keeper{Live: w.kube, Client: w.kube, Journal: w.Process.All.Journal, Namespace: "karpenter"}
		w.must(k.Pass(ctx))
	}
	keep()
	w.Run(start.Add(5 * time.Minute))
	var nodes corev1.NodeList
	w.must(w.kube.List(ctx, &nodes))
	if len(nodes.Items) == 0 {
		t.Fatal("no node")
	}
	keep2 := &logbook.Keeper{Live: w.kube, Client: w.kube, Journal: w.Process.All.Journal, Namespace: "karpenter"}
	var list appsv1.DeploymentList
	w.must(w.kube.List(ctx, &list))
	for i := range list.Items {
		w.must(w.kube.Delete(ctx, &list.Items[i]))
	}
	w.Run(start.Add(20 * time.Minute))
	w.must(keep2.Pass(ctx))
	w.Process.Kill()
	w.Start()
	keep()
	w.Run(start.Add(21 * time.Minute))

	all, notes, err := w.cluster().Journal(ctx)
	w.must(err)
	if len(notes) > 0 {
		t.Error(notes)
	}
	checkStory(t, all, nodes.Items[0].Name)
}
