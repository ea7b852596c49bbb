package agreement

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// freely is the whole of kube-scheduler, fed by hand and run step by step: its
// queue, its hints, its nominations and its bindings are the real ones. Only
// the API server is missing: what the scheduler writes goes into a box, and
// from there back to it.
type freely struct {
	ctx       context.Context
	stop      context.CancelFunc
	scheduler *scheduler.Scheduler
	feeds     map[reflect.Type]*feed
	version   int

	mu    sync.Mutex
	box   []object
	gone  []*corev1.Pod
	knock chan struct{}
}

// object is what a feed holds.
type object interface {
	runtime.Object
	metav1.Object
}

func newFreely() (*freely, error) {
	registerMetrics()
	f := &freely{knock: make(chan struct{}, 1), feeds: map[reflect.Type]*feed{}}
	f.ctx, f.stop = context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	client := &clientset{Interface: &fake.Clientset{}, to: f}
	factory := informers.NewSharedInformerFactory(client, 0)
	for _, o := range []runtime.Object{
		&corev1.Pod{}, &corev1.Node{}, &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}, &corev1.Namespace{}, &storagev1.StorageClass{}, &storagev1.CSINode{},
		&storagev1.CSIDriver{}, &storagev1.CSIStorageCapacity{}, &storagev1.VolumeAttachment{},
	} {
		f.feeds[reflect.TypeOf(o)] = newFeed(factory, o)
	}
	var err error
	f.scheduler, err = scheduler.New(f.ctx, client, factory, nil, func(string) events.EventRecorderLogger { return &events.FakeRecorder{} },
		scheduler.WithParallelism(1), scheduler.WithPodMaxBackoffSeconds(0))
	if err != nil {
		f.stop()
		return nil, err
	}
	for name, profile := range f.scheduler.Profiles {
		f.scheduler.Profiles[name] = binder{profile, f}
	}
	return f, nil
}

func (f *freely) close() {
	f.stop()
	f.scheduler.SchedulingQueue.Close()
	f.scheduler.Profiles.Close()
}

// put adds an object or changes it, as if a watch had said so. It must not be
// changed afterwards.
func (f *freely) put(o object) {
	f.version++
	o.SetResourceVersion(fmt.Sprint(f.version))
	f.feeds[reflect.TypeOf(o)].put(o)
}

var podType = reflect.TypeOf(&corev1.Pod{})

// pod is what the scheduler knows of a pod.
func (f *freely) pod(namespace, name string) *corev1.Pod {
	o, ok, _ := f.feeds[podType].GetIndexer().GetByKey(namespace + "/" + name)
	if !ok {
		return nil
	}
	return o.(*corev1.Pod)
}

// steps bounds how long the scheduler may take to come to rest.
const steps = 100_000

var errRestless = errors.New("the scheduler does not come to rest")

// settle lets the scheduler work until it has nothing left to do.
func (f *freely) settle() error {
	for range steps {
		changed, gone := f.take()
		for _, o := range changed {
			f.put(o)
		}
		for _, p := range gone {
			f.feeds[podType].remove(p)
		}
		q := f.scheduler.SchedulingQueue
		switch {
		case len(q.PodsInActiveQ())+len(q.PodsInBackoffQ()) > 0:
			f.scheduler.ScheduleOne(f.ctx)
		case len(q.InFlightPods()) == 0 && !f.binding():
			return nil
		default:
			select {
			case <-f.knock:
			case <-time.After(10 * time.Second):
				return errRestless
			}
		}
	}
	return errRestless
}

// sweep tries every pod again, as the scheduler does every five minutes.
func (f *freely) sweep() error {
	f.scheduler.SchedulingQueue.MoveAllToActiveOrBackoffQueue(klog.Logger{}, framework.EventUnschedulableTimeout, nil, nil, nil)
	return f.settle()
}

// binding reports whether a pod is bound in the scheduler's mind only.
func (f *freely) binding() bool {
	for _, o := range f.feeds[podType].GetIndexer().List() {
		if p := o.(*corev1.Pod); p.Spec.NodeName == "" {
			if assumed, _ := f.scheduler.Cache.IsAssumedPod(p); assumed {
				return true
			}
		}
	}
	return false
}

func (f *freely) take() ([]object, []*corev1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	changed, gone := f.box, f.gone
	f.box, f.gone = nil, nil
	return changed, gone
}

// written takes what the scheduler writes; it comes from its goroutines.
func (f *freely) written(o object) {
	f.mu.Lock()
	// Two writes to one pod before the first was seen must not undo each other.
	if p, isPod := o.(*corev1.Pod); isPod {
		for i := range f.box {
			if old, same := f.box[i].(*corev1.Pod); same && old.UID == p.UID && old.Spec.NodeName != "" && p.Spec.NodeName == "" {
				p.Spec.NodeName = old.Spec.NodeName
				f.box[i] = p
			}
		}
	}
	f.box = append(f.box, o)
	f.mu.Unlock()
	f.wake()
}

// deleted takes a pod that the scheduler preempts.
func (f *freely) deleted(p *corev1.Pod) {
	f.mu.Lock()
	f.gone = append(f.gone, p)
	f.mu.Unlock()
	f.wake()
}

func (f *freely) wake() {
	select {
	case f.knock <- struct{}{}:
	default:
	}
}

// feed is an informer that is fed by hand.
type feed struct {
	cache.SharedIndexInformer
	handlers []cache.ResourceEventHandler
}

func newFeed(factory informers.SharedInformerFactory, kind runtime.Object) *feed {
	f := &feed{SharedIndexInformer: cache.NewSharedIndexInformer(nil, kind, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
	factory.InformerFor(kind, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer { return f })
	return f
}

func (f *feed) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	f.handlers = append(f.handlers, h)
	return f, nil
}

func (f *feed) AddEventHandlerWithResyncPeriod(h cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return f.AddEventHandler(h)
}

func (f *feed) AddEventHandlerWithOptions(h cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return f.AddEventHandler(h)
}

func (f *feed) HasSynced() bool                     { return true }
func (f *feed) HasSyncedChecker() cache.DoneChecker { return synced{} }

type synced struct{}

func (synced) Name() string { return "fed by hand" }
func (synced) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

func (f *feed) put(o any) {
	old, known, _ := f.GetIndexer().Get(o)
	if err := f.GetIndexer().Update(o); err != nil {
		panic(err) // an object without a name
	}
	for _, h := range f.handlers {
		if known {
			h.OnUpdate(old, o)
		} else {
			h.OnAdd(o, false)
		}
	}
}

func (f *feed) remove(o any) {
	old, known, _ := f.GetIndexer().Get(o)
	if !known {
		return
	}
	if err := f.GetIndexer().Delete(o); err != nil {
		panic(err) // an object without a name
	}
	for _, h := range f.handlers {
		h.OnDelete(old)
	}
}

// clientset is one whose pods can be bound and patched.
type clientset struct {
	kubernetes.Interface
	to *freely
}

func (c *clientset) CoreV1() typedv1.CoreV1Interface { return core{c.Interface.CoreV1(), c.to} }

type core struct {
	typedv1.CoreV1Interface
	to *freely
}

func (c core) Pods(namespace string) typedv1.PodInterface {
	return podClient{c.CoreV1Interface.Pods(namespace), namespace, c.to}
}

type podClient struct {
	typedv1.PodInterface
	namespace string
	to        *freely
}

func (c podClient) Bind(_ context.Context, b *corev1.Binding, _ metav1.CreateOptions) error {
	p := c.to.pod(c.namespace, b.Name)
	if p == nil {
		return fmt.Errorf("no pod %s/%s", c.namespace, b.Name)
	}
	p = p.DeepCopy()
	p.Spec.NodeName, p.Status.NominatedNodeName = b.Target.Name, ""
	c.to.written(p)
	return nil
}

func (c podClient) Delete(_ context.Context, name string, _ metav1.DeleteOptions) error {
	if p := c.to.pod(c.namespace, name); p != nil {
		c.to.deleted(p)
	}
	return nil
}

func (c podClient) Patch(_ context.Context, name string, _ types.PatchType, data []byte, _ metav1.PatchOptions, _ ...string) (*corev1.Pod, error) {
	p := c.to.pod(c.namespace, name)
	if p == nil {
		return nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
	}
	old, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	patched, err := strategicpatch.StrategicMergePatch(old, data, corev1.Pod{})
	if err != nil {
		return nil, err
	}
	out := &corev1.Pod{}
	if err := json.Unmarshal(patched, out); err != nil {
		return nil, err
	}
	c.to.written(out)
	return out, nil
}
