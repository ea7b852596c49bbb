// Package boot plays the machines of the simulated cloud: an instance that
// starts to run reads its user data the way its image does (Amazon Linux 2,
// Amazon Linux 2023, Bottlerocket) and registers a Node with what it finds there
// and with the machine's real capacity. It also plays the two components that know about machines from
// outside, the cloud controller and the device plugins.
//
// Heartbeats and pods are kwok's part. User data is parsed, never run.
package boot

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

// Annotations that tell kwok (cluster/stages.yaml) whether the node's kubelet
// runs and when it is Ready.
const (
	kubeletAnnotation = "lab/kubelet"
	readyAnnotation   = "lab/ready-after"
)

// Delays of real machines, shortened. Zero means at once.
type Delays struct {
	Boot    time.Duration // running → the kubelet registers
	Cloud   time.Duration // registered → labelled by the cloud controller
	Ready   time.Duration // registered → Ready (the network plugin has started)
	Devices time.Duration // labelled → device plugins announce devices
	Silence time.Duration // machine gone → the Node's Ready is Unknown
	Removal time.Duration // … → the cloud controller removes the Node
}

// DefaultDelays are long enough to make a difference, short enough to watch.
var DefaultDelays = Delays{
	Boot: time.Second, Cloud: 300 * time.Millisecond, Ready: 2 * time.Second, Devices: 2 * time.Second,
	Silence: 5 * time.Second, Removal: 5 * time.Second,
}

// Agent boots machines. Its methods return at once; the work ends when the
// context given to [New] ends.
type Agent struct {
	ctx     context.Context
	client  kubernetes.Interface
	version string
	delays  Delays
	log     *slog.Logger
	work    sync.WaitGroup

	mu sync.Mutex
	// nodes maps the id of a machine to the name of its Node; cancel stops a
	// machine that is still booting.
	nodes  map[string]string
	cancel map[string]context.CancelFunc
	// memory is the share of its memory that a machine of a type has.
	memory map[string]int64
}

// New returns an agent that registers nodes of the given kubelet version.
func New(ctx context.Context, client kubernetes.Interface, version string, delays Delays, log *slog.Logger) *Agent {
	return &Agent{ctx: ctx, client: client, version: version, delays: delays, log: log,
		nodes: map[string]string{}, cancel: map[string]context.CancelFunc{}, memory: map[string]int64{}}
}

// SetMemoryPercent makes machines of a type that boot from now on have this
// share of their type's memory instead of [DefaultMemoryPercent].
func (a *Agent) SetMemoryPercent(instanceType string, percent int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.memory[instanceType] = percent
}

// Wait returns when no machine is booting or going away.
func (a *Agent) Wait() { a.work.Wait() }

// Running boots a machine that has just started to run.
func (a *Agent) Running(m Machine) {
	ctx, cancel := context.WithCancel(a.ctx)
	a.mu.Lock()
	percent, ok := a.memory[m.Type]
	if !ok {
		percent = DefaultMemoryPercent
	}
	a.nodes[m.ID], a.cancel[m.ID] = strings.ToLower(m.PrivateDNS), cancel
	a.mu.Unlock()
	a.do(m.ID, "booting", func() error { return a.boot(ctx, m, percent) })
}

// Gone takes the machine's kubelet away, and later its Node, unless the machine
// runs again.
func (a *Agent) Gone(id string) {
	a.mu.Lock()
	node, cancel := a.nodes[id], a.cancel[id]
	delete(a.nodes, id)
	delete(a.cancel, id)
	a.mu.Unlock()
	if cancel == nil {
		return // it never ran
	}
	cancel()
	a.do(id, "removing the node of", func() error { return a.remove(a.ctx, id, node) })
}

// runs reports whether the machine has been started again.
func (a *Agent) runs(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cancel[id] != nil
}

func (a *Agent) do(id, what string, f func() error) {
	a.work.Go(func() {
		if err := f(); err != nil && a.ctx.Err() == nil {
			a.log.Error(what+" a machine failed", "instance", id, "error", err)
		}
	})
}

func (a *Agent) boot(ctx context.Context, m Machine, memoryPercent int64) error {
	if err := sleep(ctx, a.delays.Boot); err != nil {
		return nil // it was stopped while booting
	}
	node, err := NewNode(m, memoryPercent, a.version)
	if err != nil {
		return err
	}
	node.Annotations = map[string]string{kubeletAnnotation: "running", readyAnnotation: a.delays.Ready.String()}
	if _, err := a.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); errors.IsAlreadyExists(err) {
		// It was stopped and runs again; a Node of another machine stays as it is.
		return a.update(ctx, node.Name, m.ID, func(n *corev1.Node) { n.Annotations = merged(n.Annotations, node.Annotations) })
	} else if err != nil {
		return fmt.Errorf("registering node %s: %w", node.Name, err)
	}
	a.log.Info("node registered", "instance", m.ID, "node", node.Name, "type", m.Type, "zone", m.Zone)
	if err := sleep(ctx, a.delays.Cloud); err != nil {
		return nil
	}
	err = a.update(ctx, node.Name, m.ID, func(n *corev1.Node) {
		n.Labels = merged(n.Labels, m.cloudLabels())
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&uninitialized) })
	})
	if err != nil || len(m.Devices) == 0 {
		return err
	}
	if err := sleep(ctx, a.delays.Devices); err != nil {
		return nil
	}
	return a.announce(ctx, node.Name, m)
}

// announce adds the machine's devices to its Node, as device plugins do.
func (a *Agent) announce(ctx context.Context, name string, m Machine) error {
	return retry.RetryOnConflict(patience, func() error {
		node, err := a.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil || !owns(node, m.ID) {
			return ignoreGone(err)
		}
		for device, count := range m.Devices {
			amount := *resource.NewQuantity(count, resource.DecimalSI)
			node.Status.Capacity[corev1.ResourceName(device)] = amount
			node.Status.Allocatable[corev1.ResourceName(device)] = amount
		}
		_, err = a.client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
		return ignoreGone(err)
	})
}

// remove lets the kubelet fall silent and removes the Node, as the node
// controller and the cloud controller do.
func (a *Agent) remove(ctx context.Context, id, name string) error {
	err := a.update(ctx, name, id, func(n *corev1.Node) {
		n.Annotations = merged(n.Annotations, map[string]string{kubeletAnnotation: "stopped"})
	})
	if err != nil {
		return err
	}
	if err := sleep(ctx, a.delays.Silence); err != nil || a.runs(id) {
		return nil
	}
	err = retry.RetryOnConflict(patience, func() error {
		node, err := a.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil || !owns(node, id) {
			return ignoreGone(err)
		}
		for i, c := range node.Status.Conditions {
			node.Status.Conditions[i].Status = corev1.ConditionUnknown
			node.Status.Conditions[i].Reason = "NodeStatusUnknown"
			node.Status.Conditions[i].Message = "Kubelet stopped posting node status."
			if c.Status != corev1.ConditionUnknown {
				node.Status.Conditions[i].LastTransitionTime = metav1.Now()
			}
		}
		_, err = a.client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
		return ignoreGone(err)
	})
	if err != nil {
		return err
	}
	if err := sleep(ctx, a.delays.Removal); err != nil || a.runs(id) {
		return nil
	}
	node, err := a.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil || !owns(node, id) {
		return ignoreGone(err)
	}
	err = a.client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &node.UID},
	})
	return ignoreGone(err)
}

// patience is for the many who write to a Node that has just joined: where a
// real cloud controller or kubelet begins again, the agent has this one try.
var patience = wait.Backoff{Steps: 30, Duration: 20 * time.Millisecond, Factor: 1.2, Jitter: 0.5}

// update changes the Node of a machine; a Node that is gone, or belongs to
// another machine by now, is left alone.
func (a *Agent) update(ctx context.Context, name, id string, change func(*corev1.Node)) error {
	return retry.RetryOnConflict(patience, func() error {
		node, err := a.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil || !owns(node, id) {
			return ignoreGone(err)
		}
		change(node)
		_, err = a.client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
		return ignoreGone(err)
	})
}

func owns(node *corev1.Node, id string) bool {
	return strings.HasSuffix(node.Spec.ProviderID, "/"+id)
}

func ignoreGone(err error) error {
	if errors.IsNotFound(err) {
		return nil
	}
	return err
}

func merged(a, b map[string]string) map[string]string {
	m := maps.Clone(a)
	if m == nil {
		m = map[string]string{}
	}
	maps.Copy(m, b)
	return m
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
