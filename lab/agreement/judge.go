package agreement

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clientcache "k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

// registerMetrics must have run before any part of the scheduler does.
var registerMetrics = sync.OnceFunc(metrics.Register)

// Judge asks the filters of kube-scheduler, in its default configuration,
// whether pods may go on nodes. It knows one cluster at a time and belongs to
// one goroutine.
type Judge struct {
	ctx       context.Context
	stop      context.CancelFunc
	framework framework.Framework
	world     *current
	informers informers.SharedInformerFactory

	nodes []*corev1.Node
	pods  []*corev1.Pod // bound
}

// current lets the plugins, which keep what they were given at the start, see
// one snapshot after the other.
type current struct{ *cache.Snapshot }

// NewJudge makes a judge. Close it after use.
func NewJudge() (*Judge, error) {
	registerMetrics()
	cfg, err := latest.Default()
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	j := &Judge{ctx: ctx, stop: stop, world: &current{cache.NewEmptySnapshot()}}
	client := fake.NewSimpleClientset()
	factory := informers.NewSharedInformerFactory(client, 0) // never started
	j.informers = factory
	claims := assumecache.NewAssumeCache(klog.Logger{}, factory.Resource().V1().ResourceClaims().Informer(), "ResourceClaim", "", nil)
	resources, err := tracker.StartTracker(ctx, tracker.Options{SliceInformer: factory.Resource().V1().ResourceSlices()})
	if err != nil {
		return nil, err
	}
	j.framework, err = runtime.NewFramework(ctx, plugins.NewInTreeRegistry(), &cfg.Profiles[0],
		runtime.WithSnapshotSharedLister(j.world), runtime.WithInformerFactory(factory), runtime.WithClientSet(client), runtime.WithParallelism(1),
		runtime.WithSharedDRAManager(dynamicresources.NewDRAManager(ctx, claims, resources, factory)),
		runtime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())))
	if err != nil {
		stop()
		return nil, err
	}
	return j, nil
}

// Close ends what the judge started.
func (j *Judge) Close() {
	j.stop()
	runtime.WaitForShutdown(j.framework)
}

// Enter puts the judge into a cluster of these nodes and bound pods, with the
// namespaces and the storage of another.
func (j *Judge) Enter(c *Cluster, nodes []*corev1.Node, bound []*corev1.Pod) error {
	j.nodes, j.pods = nodes, slices.Clone(bound)
	j.world.Snapshot = cache.NewSnapshot(bound, nodes)
	core, storage := j.informers.Core().V1(), j.informers.Storage().V1()
	var csiNodes []*storagev1.CSINode
	for _, n := range nodes {
		csiNodes = append(csiNodes, c.csiNode(n))
	}
	return errors.Join(
		know(core.Namespaces().Informer(), pointers(c.Namespaces)), know(core.PersistentVolumes().Informer(), pointers(c.Volumes)),
		know(core.PersistentVolumeClaims().Informer(), c.allClaims()), know(storage.StorageClasses().Informer(), pointers(c.Classes)),
		know(storage.CSINodes().Informer(), csiNodes))
}

// know replaces what the plugins see of one kind.
func know[T any](of clientcache.SharedIndexInformer, objects []T) error {
	all := make([]any, len(objects))
	for i, o := range objects {
		all[i] = o
	}
	return of.GetIndexer().Replace(all, "")
}

func pointers[T any](list []T) []*T {
	out := make([]*T, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	return out
}

// instead asks what would be if a node were another one, with other pods on it,
// or if there were one more.
func (j *Judge) instead(c *Cluster, n *corev1.Node, on []*corev1.Pod, do func(fwk.NodeInfo)) error {
	before, csi := j.world.Snapshot, j.informers.Storage().V1().CSINodes().Informer().GetIndexer()
	nodes := slices.DeleteFunc(slices.Clone(j.nodes), func(o *corev1.Node) bool { return o.Name == n.Name })
	pods := slices.DeleteFunc(slices.Clone(j.pods), func(p *corev1.Pod) bool { return p.Spec.NodeName == n.Name })
	for _, p := range on {
		pods = append(pods, boundTo(p, n.Name))
	}
	old, known, _ := csi.GetByKey(n.Name)
	j.world.Snapshot = cache.NewSnapshot(pods, append(nodes, n))
	err := csi.Update(c.csiNode(n))
	if info, e := j.node(n.Name); e == nil {
		do(info)
	}
	j.world.Snapshot = before
	if known {
		return errors.Join(err, csi.Update(old))
	}
	return errors.Join(err, csi.Delete(c.csiNode(n)))
}

func boundTo(p *corev1.Pod, node string) *corev1.Pod {
	p = p.DeepCopy()
	p.Spec.NodeName = node
	return p
}

// question is one pod, asked about nodes while the cluster stays as it is.
type question struct {
	judge  *Judge
	pod    *corev1.Pod
	state  fwk.CycleState
	only   *fwk.PreFilterResult
	refuse *fwk.Status
}

// ask begins a question. It holds until the next pod is bound.
func (j *Judge) ask(pod *corev1.Pod) *question {
	q := &question{judge: j, pod: pod, state: framework.NewCycleState()}
	q.only, q.refuse, _ = j.framework.RunPreFilterPlugins(j.ctx, q.state, pod)
	return q
}

// on returns why the pod may not go on the node, or "" if it may. The node may
// be one that the cluster does not have.
func (q *question) on(n fwk.NodeInfo) string {
	if !q.refuse.IsSuccess() {
		return words(q.refuse)
	}
	if !q.only.AllNodes() && !q.only.NodeNames.Has(n.Node().Name) {
		return "PreFilter: the pod is restricted to other nodes"
	}
	if s := q.judge.framework.RunFilterPlugins(q.judge.ctx, q.state, q.pod, n); !s.IsSuccess() {
		return words(s)
	}
	return ""
}

func words(s *fwk.Status) string { return fmt.Sprintf("%s: %s", s.Plugin(), s.Message()) }

// node returns a node of the cluster as the scheduler sees it.
func (j *Judge) node(name string) (fwk.NodeInfo, error) { return j.world.Get(name) }

// try binds the pod to a node of the cluster if the filters let it, and returns
// why not otherwise.
func (j *Judge) try(pod *corev1.Pod, node string) (why string, err error) {
	info, err := j.node(node)
	if err != nil {
		return "", err
	}
	if why := j.ask(pod).on(info); why != "" {
		return why, nil
	}
	return "", j.bind(pod, node)
}

// bind puts the pod on a node of the cluster, whether it may go there or not, and
// makes its volumes.
func (j *Judge) bind(pod *corev1.Pod, node string) error {
	pod = boundTo(pod, node)
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return err
	}
	at, err := j.node(node)
	if err != nil {
		return err
	}
	j.pods = append(j.pods, pod)
	core := j.informers.Core().V1()
	s := shelf{
		core.PersistentVolumeClaims().Informer().GetIndexer(), core.PersistentVolumes().Informer().GetIndexer(),
		j.informers.Storage().V1().StorageClasses().Informer().GetIndexer(),
	}
	var failed error
	err = s.bind(pod, at.Node(), func(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
		failed = errors.Join(failed, s.volumes.Update(pv), s.claims.Update(claim))
	})
	return errors.Join(err, failed, j.world.AssumePod(info))
}
