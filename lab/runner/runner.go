// Package runner plays the kubelet for pods of our own program: each such pod
// that is bound to a node becomes a real process on this machine, with the
// pod's arguments and environment and a token of its service account, and its
// probes decide whether the pod is ready.
//
// kwok plays the kubelet for all other pods (cluster/stages.yaml), and serves
// the output of these as their logs.
//
// What differs from a real node: all processes share one network, so that each
// gets free ports on loopback instead of those it asks for; the service account
// is reached through KUBECONFIG, because there are no mounts; resource limits
// are told, not enforced; there is one container, others are left out.
package runner

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/lab/process"
)

// Container is the name of the container that becomes a process; Selector finds
// its pods, and is what kwok's stages leave alone.
const (
	Container = "controller"
	Selector  = "app.kubernetes.io/name=karpenter"
)

// Options of a runner; all fields are required, but Federated.
type Options struct {
	Config *rest.Config // administrator's
	// Program is the binary that the image would hold.
	Program string
	// Folder keeps the files of the pods.
	Folder string
	// Cloud are the variables that point to AWS and give rights there, as the
	// metadata service of the node would.
	Cloud []string
	// Federated: a service account with a role assumes it with its token, as on
	// EKS, instead of using what Cloud gives.
	Federated bool
	// Started is told of every process.
	Started func(process.Record)
	Log     *slog.Logger
}

// Runner runs the pods.
type Runner struct {
	opt     Options
	client  kubernetes.Interface
	objects dynamic.Interface

	mu       sync.Mutex
	lives    map[types.UID]*life
	seenPods int
	work     sync.WaitGroup
}

// New prepares a runner.
func New(opt Options) (*Runner, error) {
	client, err := kubernetes.NewForConfig(opt.Config)
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(opt.Config)
	if err != nil {
		return nil, err
	}
	return &Runner{opt: opt, client: client, objects: objects, lives: map[types.UID]*life{}}, nil
}

// Run follows the pods until the context ends; then it ends all processes and
// returns.
func (r *Runner) Run(ctx context.Context) {
	factory := informers.NewSharedInformerFactoryWithOptions(r.client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = Selector }))
	_, _ = factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { r.seen(ctx, o.(*corev1.Pod)) },
		UpdateFunc: func(_, o any) { r.seen(ctx, o.(*corev1.Pod)) },
		DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			if pod, ok := o.(*corev1.Pod); ok {
				r.gone(pod.UID)
			}
		},
	})
	factory.Start(ctx.Done())
	<-ctx.Done()
	factory.Shutdown()
	r.work.Wait()
}

// seen starts the pod that is bound and not yet run, and stops the one that is
// being deleted.
func (r *Runner) seen(ctx context.Context, pod *corev1.Pod) {
	if pod.Spec.NodeName == "" || container(pod) == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	l, known := r.lives[pod.UID]
	if !known {
		r.seenPods++
		// An address that leads nowhere: Endpoints do not accept one of loopback.
		ip := fmt.Sprintf("192.0.2.%d", r.seenPods%254+1)
		l = &life{runner: r, pod: pod.DeepCopy(), ip: ip, stop: make(chan time.Duration, 1), log: r.opt.Log.With("pod", pod.Name)}
		r.lives[pod.UID] = l
		r.work.Go(func() { l.run(ctx) })
	}
	if pod.DeletionTimestamp != nil {
		grace := time.Duration(0)
		if s := pod.DeletionGracePeriodSeconds; s != nil {
			grace = time.Duration(*s) * time.Second
		}
		l.end(grace)
	}
}

// gone ends what is left of a pod whose object is away.
func (r *Runner) gone(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l, ok := r.lives[uid]; ok {
		l.end(0)
		delete(r.lives, uid)
	}
}

// Process is that of a pod.
type Process struct {
	PID int
	// MetricsURL is where its metrics are, whatever port the pod asked for.
	MetricsURL string
}

// Processes are those that run, by the name of the pod.
func (r *Runner) Processes() map[string]Process {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]Process{}
	for _, l := range r.lives {
		if p := l.running(); p.PID != 0 {
			out[l.pod.Name] = p
		}
	}
	return out
}

func container(pod *corev1.Pod) *corev1.Container {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == Container {
			return &pod.Spec.Containers[i]
		}
	}
	return nil
}
