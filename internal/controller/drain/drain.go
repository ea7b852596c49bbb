// Package drain takes machines down: it keeps new pods off, sees the old ones
// out through the Eviction API, waits for their volumes, terminates the
// instance, and lets go of Node and NodeClaim once the cloud says that it is
// gone. Deleting the Node and deleting the NodeClaim lead to the same end.
//
// It may import api, core, cloud and kube. What to do is decided by
// lifecycle.Drain; this package reads, asks and carries out.
package drain

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "karpenter/api/v1"
	"karpenter/internal/cloud"
	"karpenter/internal/core/label"
	"karpenter/internal/core/lifecycle"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/convert"
	"karpenter/internal/kube/dialect"
	"karpenter/internal/kube/event"
	"karpenter/internal/kube/ledger"
	"karpenter/internal/kube/nominate"
)

// Cloud ends machines.
type Cloud interface {
	// Find looks an instance up by the token of its launch.
	Find(ctx context.Context, token string) (cloud.Instance, error)
	Describe(ctx context.Context, id string) (cloud.Instance, error)
	Terminate(ctx context.Context, id string) error
}

// Controller takes machines down. It keeps nothing that a restart may not lose.
type Controller struct {
	Ledger *ledger.Ledger
	Cloud  Cloud
	Events event.Recorder
	// Metrics may be nil.
	Metrics *Metrics
	Now     func() time.Time

	mu    sync.Mutex
	tries map[string]map[types.UID]try // of evictions, by node and pod
	// daemonVolumes are volumes that pods of DaemonSets used, by node.
	daemonVolumes map[string]map[string]bool
}

// pass is one look at one machine.
type pass struct {
	claim *v1.NodeClaim // or nil
	node  *corev1.Node  // or nil
	pods  []corev1.Pod  // on the node
	// nominated are pods for which room is kept there.
	nominated []corev1.Pod
	in        lifecycle.DrainInput
}

// Reconcile does what is to be done now for the NodeClaim of this name, or for
// the Node of this name if it has no NodeClaim.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	p := pass{in: lifecycle.DrainInput{Now: c.Now()}}
	found, err := c.find(ctx, req.Name, &p)
	if err != nil || !found {
		return ledger.Result(p.in.Now, time.Time{}, err)
	}
	if r := p.in.Record; r != nil && r.Deadline != nil {
		if err := c.Ledger.Deadline(ctx, p.claim, *r.Deadline); err != nil {
			return ledger.Result(p.in.Now, time.Time{}, err)
		}
	}
	step := lifecycle.Drain(p.in)
	if step.LookUp {
		if err := c.lookUp(ctx, &p); err != nil {
			return ledger.Result(p.in.Now, p.in.Now.Add(lifecycle.InstancePoll), c.patient(ctx, err))
		}
		step = lifecycle.Drain(p.in)
	}
	again, err := c.act(ctx, &p, step)
	return ledger.Result(p.in.Now, again, err)
}

// find reads the machine; found is false if nothing of it is being deleted.
func (c *Controller) find(ctx context.Context, name string, p *pass) (found bool, err error) {
	claim := &v1.NodeClaim{}
	switch err := c.Ledger.Client.Get(ctx, types.NamespacedName{Name: name}, claim); {
	case err == nil:
		p.claim = claim
		r := convert.Record(claim)
		p.in.Record = &r
		if err := c.findNode(ctx, p, r.ProviderID); err != nil {
			return false, err
		}
	case !apierrors.IsNotFound(err):
		return false, err
	default:
		node := &corev1.Node{}
		if err := c.Ledger.Client.Get(ctx, types.NamespacedName{Name: name}, node); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		if !ours(node) {
			return false, nil
		}
		if claim, err := c.Ledger.Claim(ctx, node.Spec.ProviderID); err != nil || claim != nil {
			return false, err // it is looked at under the name of its record
		}
		p.node = node
	}
	leaving := p.claim != nil && p.claim.DeletionTimestamp != nil || p.node != nil && p.node.DeletionTimestamp != nil
	if !leaving {
		return false, nil
	}
	if p.claim != nil && !controllerutil.ContainsFinalizer(p.claim, dialect.FinalizerTermination) && p.node == nil {
		return false, nil // somebody else holds it
	}
	return true, c.observe(ctx, p)
}

func ours(n *corev1.Node) bool {
	return controllerutil.ContainsFinalizer(n, dialect.FinalizerTermination) &&
		(n.Labels[label.Provisioner] != "" || n.Labels[label.NodePool] != "" || n.Labels[label.Registered] == "true")
}

func (c *Controller) findNode(ctx context.Context, p *pass, providerID string) error {
	nodes, err := c.Ledger.Nodes(ctx, providerID)
	if err != nil || len(nodes) == 0 {
		return err
	}
	p.node = &nodes[0] // if there are more, they follow one by one
	return nil
}

// observe reads what is on the node.
func (c *Controller) observe(ctx context.Context, p *pass) (err error) {
	p.in.Node = nil
	p.in.EndAnnounced = p.in.Record != nil && p.in.Record.Interrupted != ""
	p.in.Cordon = p.claim != nil && p.claim.Labels[label.Provisioner] != ""
	if p.node == nil {
		return nil
	}
	p.in.Cordon = p.in.Cordon || p.node.Labels[label.Provisioner] != ""
	if p.pods, err = c.Ledger.PodsOn(ctx, p.node.Name); err != nil {
		return err
	}
	facts := ledger.Facts(p.node, p.claim, p.pods)
	p.in.Node = &facts
	if p.nominated, err = c.Ledger.PodsNominated(ctx, p.node.Name); err != nil {
		return err
	}
	p.in.Nominated = nil
	for i := range p.nominated {
		node, ours := nominate.Of(&p.nominated[i])
		p.in.Nominated = append(p.in.Nominated, lifecycle.Expected{ObjectName: name(&p.nominated[i]), Nominated: node, Ours: ours})
	}
	p.in.Attachments, err = c.attachments(ctx, p)
	return err
}

// lookUp asks the cloud which instance it is and how far it has come.
func (c *Controller) lookUp(ctx context.Context, p *pass) error {
	r := p.in.Record
	if r != nil && r.ProviderID == "" {
		i, err := c.Cloud.Find(ctx, r.Token)
		p.in.Instance, err = instance(i, err)
		if err != nil || i.ProviderID == "" {
			return err
		}
		r.ProviderID = i.ProviderID // never written down, but its node may have joined
		if err := c.findNode(ctx, p, r.ProviderID); err != nil {
			return err
		}
		return c.observe(ctx, p)
	}
	providerID := ""
	if r != nil {
		providerID = r.ProviderID
	} else if p.node != nil {
		providerID = p.node.Spec.ProviderID
	}
	id, err := cloud.InstanceID(providerID)
	if err != nil {
		p.in.Instance = &lifecycle.Instance{State: lifecycle.Unidentified, Problem: err.Error()}
		return nil
	}
	i, err := c.Cloud.Describe(ctx, id)
	p.in.Instance, err = instance(i, err)
	if p.in.Instance != nil {
		p.in.Instance.ID = id
	}
	return err
}

// act carries a step out, in the order of its fields, and returns when to look
// again.
func (c *Controller) act(ctx context.Context, p *pass, step lifecycle.DrainStep) (time.Time, error) {
	again := step.Again
	if p.node != nil {
		if err := c.Ledger.PatchNode(ctx, p.node, p.claim, step.Node); err != nil {
			return again, fmt.Errorf("marking Node %q: %w", p.node.Name, err)
		}
	}
	c.say(p, step.Events)
	if step.DeleteRecord {
		log.FromContext(ctx).Info("deleting the record of a node that is being deleted", "nodeclaim", p.claim.Name)
		if err := c.Ledger.Delete(ctx, p.claim); err != nil {
			return again, err
		}
	}
	if step.DeleteNode {
		if err := c.Ledger.DeleteNode(ctx, p.node); err != nil {
			return again, err
		}
	}
	for _, pod := range named(p.nominated, step.Withdraw) {
		// A hint: the scheduler looks elsewhere by itself, only later.
		if err := nominate.Set(ctx, c.Ledger.Client.Status(), pod, ""); err != nil {
			log.FromContext(ctx).V(1).Info("nomination could not be taken back", "pod", name(pod).String(), "error", err.Error())
		}
	}
	again = earlier(again, c.evict(ctx, p, step))
	if err := c.remove(ctx, p, step.Remove); err != nil {
		return again, err
	}
	if step.Terminate {
		if err := c.terminate(ctx, p); err != nil {
			return again, c.patient(ctx, err)
		}
	}
	if p.claim != nil && !step.DeleteRecord && !step.ReleaseRecord {
		if err := c.Ledger.Note(ctx, p.claim, "", step.Conditions...); err != nil {
			return again, err
		}
	}
	return again, c.release(ctx, p, step)
}

func (c *Controller) terminate(ctx context.Context, p *pass) error {
	id := p.in.Instance.ID
	err := c.Cloud.Terminate(ctx, id)
	if notFound(err) {
		return nil
	}
	if err != nil {
		if !throttled(err) {
			c.say(p, []lifecycle.Event{{Warning: true, Reason: "TerminationFailed", Message: err.Error()}})
		}
		return fmt.Errorf("terminating instance %s: %w", id, err)
	}
	log.FromContext(ctx).Info("terminating an instance", "instance", id)
	return nil
}

func (c *Controller) release(ctx context.Context, p *pass, step lifecycle.DrainStep) error {
	if step.ReleaseNode {
		released, err := c.Ledger.Release(ctx, p.node)
		if err != nil {
			return err
		}
		c.forget(p.node.Name)
		if released {
			took := c.Now().Sub(p.node.DeletionTimestamp.Time)
			c.Metrics.nodeGone(pool(p.node), c.Now().Sub(p.node.CreationTimestamp.Time), took)
			log.FromContext(ctx).Info("node is gone", "node", p.node.Name, "after", took.Round(time.Second).String())
		}
	}
	if step.ReleaseRecord {
		released, err := c.Ledger.Release(ctx, p.claim)
		if err != nil {
			return err
		}
		if released {
			took := c.Now().Sub(p.claim.DeletionTimestamp.Time)
			c.Metrics.claimGone(pool(p.claim), took)
			log.FromContext(ctx).Info("machine is gone", "nodeclaim", p.claim.Name, "after", took.Round(time.Second).String())
		}
	}
	return nil
}

// say publishes events about the Node, or about the record where there is none.
func (c *Controller) say(p *pass, events []lifecycle.Event) {
	var about client.Object = p.claim
	if p.node != nil {
		about = p.node
	}
	for _, e := range events {
		kind := corev1.EventTypeNormal
		if e.Warning {
			kind = corev1.EventTypeWarning
		}
		c.Events.Event(about, kind, e.Reason, e.Message)
	}
}

// patient turns an answer that only asks for patience into none.
func (c *Controller) patient(ctx context.Context, err error) error {
	if throttled(err) {
		log.FromContext(ctx).Info("the cloud asks us to be slower", "error", err.Error())
		return nil
	}
	return err
}

func pool(o client.Object) string {
	_, name := dialect.Owner(o.GetLabels())
	return name
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func name(p *corev1.Pod) world.ObjectName {
	return world.ObjectName{Namespace: p.Namespace, Name: p.Name}
}
