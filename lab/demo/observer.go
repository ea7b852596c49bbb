package demo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"karpenter/internal/aws/catalog"
	"karpenter/internal/core/label"
	"karpenter/sim/ec2"
)

// observer watches the cluster and the cloud from outside, as a person would,
// and tells the timeline.
type observer struct {
	poolLabel string // of the pool that is played
	line      *timeline
	cloud     *cloud
	prices    catalog.Prices

	mu     sync.Mutex
	pods   map[string]*corev1.Pod // of the default namespace, by name
	nodes  map[string]*corev1.Node
	events []*corev1.Event
	// unschedulable is when a pod was first seen that kube-scheduler cannot
	// place.
	unschedulable map[string]time.Time
	// empty is when a node was first seen without pods after having some.
	empty     map[string]time.Time
	gone      map[string]time.Time
	instances map[string]ec2.Instance
	calls     []ec2.APICall
}

func newObserver(line *timeline, cloud *cloud, region string) *observer {
	return &observer{
		line: line, cloud: cloud, prices: catalog.EmbeddedPrices(region),
		pods: map[string]*corev1.Pod{}, nodes: map[string]*corev1.Node{},
		unschedulable: map[string]time.Time{}, empty: map[string]time.Time{}, gone: map[string]time.Time{},
		instances: map[string]ec2.Instance{},
	}
}

// run observes until the context ends; it returns when the first lists are in.
func (o *observer) run(ctx context.Context, client kubernetes.Interface) error {
	known, err := o.cloud.instances(ctx)
	if err != nil {
		return err
	}
	for _, i := range known { // of earlier demos
		o.instances[i.ID] = i
	}
	if o.calls, err = o.cloud.calls(ctx); err != nil {
		return err
	}
	cluster := informers.NewSharedInformerFactory(client, 0)
	workload := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(metav1.NamespaceDefault))
	for _, watch := range []struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandlerFuncs
	}{
		{workload.Core().V1().Pods().Informer(), handler(o.pod, o.podGone)},
		{workload.Core().V1().Events().Informer(), handler(o.event, nil)},
		{cluster.Core().V1().Nodes().Informer(), handler(o.node, o.nodeGone)},
	} {
		if _, err := watch.informer.AddEventHandler(watch.handler); err != nil {
			return err
		}
	}
	for _, f := range []informers.SharedInformerFactory{workload, cluster} {
		f.Start(ctx.Done())
		f.WaitForCacheSync(ctx.Done())
	}
	go func() {
		for ctx.Err() == nil {
			o.poll(ctx)
			o.line.flush(false)
			time.Sleep(100 * time.Millisecond)
		}
	}()
	return ctx.Err()
}

// handler calls changed with the old and the new object (old nil at first).
func handler[T any](changed func(before, now *T), gone func(*T)) cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(now any) { changed(nil, now.(*T)) },
		UpdateFunc: func(before, now any) { changed(before.(*T), now.(*T)) },
		DeleteFunc: func(last any) {
			if unknown, ok := last.(cache.DeletedFinalStateUnknown); ok {
				last = unknown.Obj
			}
			if gone != nil {
				gone(last.(*T))
			}
		},
	}
}

func (o *observer) pod(before, now *corev1.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pods[now.Name] = now
	at := time.Now()
	if _, seen := o.unschedulable[now.Name]; !seen && isUnschedulable(now) {
		o.unschedulable[now.Name] = at
		o.line.add(entry{at: at, who: "scheduler", what: "cannot place {}", group: "unschedulable"})
	}
	if before == nil {
		return
	}
	if before.Spec.NodeName == "" && now.Spec.NodeName != "" {
		delete(o.empty, now.Spec.NodeName)
		o.line.add(entry{at: at, who: "scheduler", what: "places {} on " + short(now.Spec.NodeName), group: "bound " + now.Spec.NodeName})
	}
	if before.Status.Phase != now.Status.Phase && now.Status.Phase == corev1.PodRunning {
		o.line.add(entry{at: at, who: "pod", what: "running: {} on " + short(now.Spec.NodeName), group: "runs " + now.Spec.NodeName})
	}
}

func (o *observer) podGone(last *corev1.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.pods, last.Name)
	node := last.Spec.NodeName
	for _, p := range o.pods {
		if p.Spec.NodeName == node {
			return
		}
	}
	if node != "" {
		o.empty[node] = time.Now()
		o.line.add(entry{at: time.Now(), who: "node", what: short(node) + " is empty"})
	}
}

func isUnschedulable(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
		}
	}
	return false
}

func (o *observer) node(before, now *corev1.Node) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.nodes[now.Name] = now
	say := func(what string) {
		o.line.add(entry{at: time.Now(), who: "node", what: short(now.Name) + " " + what})
	}
	if before == nil {
		say("joined the cluster")
		return
	}
	turned := func(key string) bool { return before.Labels[key] != "true" && now.Labels[key] == "true" }
	if turned(label.Registered) {
		say("registered: labels and taints are right")
	}
	if !isReady(before) && isReady(now) {
		say("is Ready")
	}
	if turned(label.Initialized) {
		say("is initialised: fully usable")
	}
	if before.DeletionTimestamp == nil && now.DeletionTimestamp != nil {
		say("is being drained")
	}
}

func (o *observer) nodeGone(last *corev1.Node) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.nodes, last.Name)
	o.gone[last.Name] = time.Now()
	o.line.add(entry{at: time.Now(), who: "node", what: short(last.Name) + " is gone"})
}

func isReady(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (o *observer) event(_, now *corev1.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events = append(o.events, now)
}

// poll asks the simulated EC2 what happened since.
func (o *observer) poll(ctx context.Context) {
	instances, err := o.cloud.instances(ctx)
	if err != nil {
		return // the demo ends, or its next check says so
	}
	calls, err := o.cloud.calls(ctx)
	if err != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range calls[min(len(o.calls), len(calls)):] {
		if c.Error != "" && (c.Action == "CreateFleet" || c.Action == "TerminateInstances") {
			o.line.add(entry{at: c.Time, who: "EC2", what: c.Action + " refused: " + c.Error})
		}
	}
	o.calls = calls
	for _, i := range instances {
		last, seen := o.instances[i.ID]
		o.instances[i.ID] = i
		if seen && last.State == i.State {
			continue
		}
		what := fmt.Sprintf("%s is %s", i.ID, i.State)
		if !seen {
			what = fmt.Sprintf("%s bought: %s %s %s", i.ID, i.Type, i.Market, o.price(i))
			o.line.add(entry{at: i.Launched, who: "EC2", what: what})
			continue
		}
		o.line.add(entry{at: i.Since, who: "EC2", what: what})
	}
}

// price of an instance per hour, for people.
func (o *observer) price(i ec2.Instance) string {
	quote, ok := o.prices.Quote(i.Type, i.Zone, string(i.Market))
	if !ok {
		return "an unknown price"
	}
	return quote.Price.String()
}

// machines are the pool's instances that have not ended, by id.
func (o *observer) machines() []ec2.Instance {
	o.mu.Lock()
	defer o.mu.Unlock()
	var alive []ec2.Instance
	for _, id := range slices.Sorted(maps.Keys(o.instances)) {
		if i := o.instances[id]; !i.Gone() && i.Tags[o.poolLabel] == poolName {
			alive = append(alive, i)
		}
	}
	return alive
}

// nodeOf returns the Node of an instance.
func (o *observer) nodeOf(id string) (*corev1.Node, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, n := range o.nodes {
		if strings.HasSuffix(n.Spec.ProviderID, "/"+id) {
			return n, true
		}
	}
	return nil, false
}

// short is the first part of a host name.
func short(name string) string {
	first, _, _ := strings.Cut(name, ".")
	return first
}
