// Package claim brings machines up: it launches what is written down as a
// NodeClaim, registers the Node that joins, waits until it is usable, and notes
// since when it has been empty.
//
// It may import api, core, cloud, kube and settings. What to do is decided by
// lifecycle.Next; this package reads, asks and carries out. A pass may die
// between any two calls: the next one goes on from what is written down.
package claim

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "karpenter/api/v1"
	"karpenter/internal/cloud"
	"karpenter/internal/core/label"
	"karpenter/internal/core/lifecycle"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/convert"
	"karpenter/internal/kube/dialect"
	"karpenter/internal/kube/event"
	"karpenter/internal/kube/ledger"
	"karpenter/internal/kube/nominate"
	"karpenter/internal/settings"
)

// Cloud starts machines.
type Cloud interface {
	Prepare(ctx context.Context, r cloud.LaunchRequest) (cloud.Prepared, error)
	// Launch with the same token never makes a second machine.
	Launch(ctx context.Context, token string, p cloud.Prepared) (cloud.Instance, error)
}

// Controller brings machines up. It keeps nothing that a restart may not lose.
type Controller struct {
	Ledger   *ledger.Ledger
	Cloud    Cloud
	Events   event.Recorder
	Settings func() settings.Settings
	// NominatedUntil says until when pods are expected on a node; nil: nobody
	// plans pods onto nodes that exist.
	NominatedUntil func(node string) time.Time
	// Disrupted counts a machine that is given up; nil: nobody counts.
	Disrupted func(reason, pool string)
	// Learn is told what the node of a machine of the pool really has; nil:
	// nobody learns.
	Learn func(pool world.Pool, labels map[string]string, capacity, allocatable quantity.Resources)
	// Drift tells how machines differ from what would be bought now; nil: nobody
	// looks.
	Drift Drifter
	// Kinds are the kinds of pools whose changes make machines drift.
	Kinds []dialect.Dialect
	Now   func() time.Time

	mu     sync.Mutex
	memory map[types.UID]memory
	names  map[string]types.UID
}

// memory is what is remembered of a record between passes.
type memory struct {
	retryAt                       time.Time // when a failed launch is tried again
	heldBack                      time.Time // see lifecycle.Input
	firstNominated, lastNominated time.Time
	pods                          map[string]bool // see lifecycle.Input
	found                         found           // how it has drifted
}

// pass is one look at one record.
type pass struct {
	claim   *v1.NodeClaim
	nodes   []corev1.Node
	pods    map[world.ObjectName]*corev1.Pod // that wait for a place
	pool    world.Pool
	hasPool bool
	in      lifecycle.Input
}

// Reconcile does what is to be done for one NodeClaim now.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	p := pass{claim: &v1.NodeClaim{}}
	if err := c.Ledger.Client.Get(ctx, req.NamespacedName, p.claim); err != nil {
		c.forget(req.Name)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if p.claim.DeletionTimestamp != nil {
		c.forget(req.Name)
		return reconcile.Result{}, nil
	}
	if err := c.observe(ctx, &p); err != nil {
		return ledger.Result(p.in.Now, time.Time{}, err)
	}
	step := lifecycle.Next(p.in)
	if step.Prepare || step.Launch {
		again, err := c.launch(ctx, &p, step)
		return ledger.Result(p.in.Now, again, err)
	}
	err := c.drift(ctx, &p, &step)
	if err == nil {
		err = c.act(ctx, &p, step)
	}
	return ledger.Result(p.in.Now, step.Again, err)
}

// observe reads everything that the decision looks at.
func (c *Controller) observe(ctx context.Context, p *pass) (err error) {
	set := c.Settings()
	p.in = lifecycle.Input{Now: c.Now(), Record: convert.Record(p.claim), Limits: lifecycle.DefaultLimits()}
	in := &p.in
	in.Limits.NominationLead = set.NominationLead
	in.StartupTaints = in.Record.StartupTaints
	if in.Record.Pool != "" {
		if p.pool, p.hasPool, err = c.Ledger.Pool(ctx, in.Record.PoolKind, in.Record.Pool); err != nil {
			return fmt.Errorf("reading %s %q of NodeClaim %q: %w", in.Record.PoolKind, in.Record.Pool, p.claim.Name, err)
		}
	}
	if p.hasPool {
		in.Empty = lifecycle.NoStamp
		if p.pool.EmptyAfter != nil {
			in.Empty = lifecycle.Stamp
		}
		if p.pool.Kind == dialect.KindProvisioner {
			in.StartupTaints = p.pool.StartupTaints // what a Provisioner says now holds
		}
		if q := p.pool.Disruption.QuietFor; q != nil {
			in.Quiet = &q.Duration
		}
	}
	m := c.recall(p.claim)
	in.RetryAt, in.HeldBack, in.Seen = m.retryAt, m.heldBack, m.pods
	in.Nominations = lifecycle.Nominations{Off: !set.Nominate, First: m.firstNominated, Last: m.lastNominated}

	if p.nodes, err = c.Ledger.Nodes(ctx, in.Record.ProviderID); err != nil {
		return err
	}
	for i := range p.nodes {
		pods, err := c.Ledger.PodsOn(ctx, p.nodes[i].Name)
		if err != nil {
			return err
		}
		in.Nodes = append(in.Nodes, ledger.Facts(&p.nodes[i], p.claim, pods))
	}
	if err := c.stuck(ctx, p); err != nil {
		return err
	}
	if len(p.nodes) != 1 {
		return nil
	}
	if node := convert.Node(&p.nodes[0]); c.Learn != nil && p.hasPool && node.Capacity.MemoryBytes > 0 {
		c.Learn(p.pool, in.Record.Labels, node.Capacity, node.Allocatable)
	}
	if c.NominatedUntil != nil {
		in.NominatedUntil = c.NominatedUntil(p.nodes[0].Name)
	}
	return c.expect(ctx, p)
}

// expect reads the pods for which the machine was bought, and those nominated
// to its node, as far as they still wait for a place.
func (c *Controller) expect(ctx context.Context, p *pass) error {
	p.pods = map[world.ObjectName]*corev1.Pod{}
	nominated, err := c.Ledger.PodsNominated(ctx, p.nodes[0].Name)
	if err != nil {
		return err
	}
	for i := range nominated {
		p.expect(&nominated[i])
	}
	for _, name := range p.in.Record.Pods {
		pod := &corev1.Pod{}
		err := c.Ledger.Client.Get(ctx, types.NamespacedName{Namespace: name.Namespace, Name: name.Name}, pod)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil {
			p.expect(pod)
		}
	}
	return nil
}

func (p *pass) expect(pod *corev1.Pod) {
	name := world.ObjectName{Namespace: pod.Namespace, Name: pod.Name}
	finished := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || finished || p.pods[name] != nil {
		return
	}
	p.pods[name] = pod
	node, ours := nominate.Of(pod)
	p.in.Nominations.Pods = append(p.in.Nominations.Pods, lifecycle.Expected{ObjectName: name, Nominated: node, Ours: ours})
}

// act carries a step out, in the order of its fields.
func (c *Controller) act(ctx context.Context, p *pass, step lifecycle.Step) error {
	if step.Delete != "" {
		return c.giveUp(ctx, p.claim, step.Delete)
	}
	logger := log.FromContext(ctx)
	for i := range p.nodes {
		if n := &p.nodes[i]; n.Name == step.NodeName {
			if err := c.Ledger.PatchNode(ctx, n, p.claim, step.Node); err != nil {
				return fmt.Errorf("writing Node %q: %w", n.Name, err)
			}
			c.say(n, step.Events)
			c.progress(ctx, p, step)
		}
	}
	for _, name := range step.Nominate {
		// A hint: if it cannot be given, the node is opened all the same.
		if err := nominate.Set(ctx, c.Ledger.Client.Status(), p.pods[name], step.NodeName); err != nil {
			// Most likely it found a place just now.
			logger.V(1).Info("pod could not be nominated", "pod", name.String(), "node", step.NodeName, "error", err.Error())
		}
	}
	if len(step.Nominate) > 0 {
		c.remember(p.claim, func(m *memory) {
			m.lastNominated = c.Now()
			if m.firstNominated.IsZero() {
				m.firstNominated = m.lastNominated
			}
		})
	}
	if err := c.Ledger.NoteStep(ctx, p.claim, step); err != nil {
		return err
	}
	if step.Seen != nil {
		c.remember(p.claim, func(m *memory) { m.pods = step.Seen })
	}
	return nil
}

// progress tells people how far a machine has come.
func (c *Controller) progress(ctx context.Context, p *pass, step lifecycle.Step) {
	for _, l := range []struct{ key, text string }{{label.Registered, "node joined"}, {label.Initialized, "node is ready for use"}} {
		if step.Node.Labels[l.key] != "" {
			log.FromContext(ctx).Info(l.text, "nodeclaim", p.claim.Name, "node", step.NodeName,
				"after", p.in.Now.Sub(p.in.Record.Created).Round(time.Second).String())
		}
	}
}

// giveUp deletes the record; draining does the rest.
func (c *Controller) giveUp(ctx context.Context, claim *v1.NodeClaim, reason string) error {
	if err := c.Ledger.Delete(ctx, claim); err != nil {
		return err
	}
	log.FromContext(ctx).Info("gave a machine up", "nodeclaim", claim.Name, "reason", reason)
	if c.Disrupted != nil {
		_, pool := dialect.Owner(claim.Labels)
		c.Disrupted(reason, pool)
	}
	return nil
}

func (c *Controller) say(about client.Object, events []lifecycle.Event) {
	for _, e := range events {
		kind := corev1.EventTypeNormal
		if e.Warning {
			kind = corev1.EventTypeWarning
		}
		c.Events.Event(about, kind, e.Reason, e.Message)
	}
}

func (c *Controller) recall(claim *v1.NodeClaim) memory {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.memory[claim.UID]
}

func (c *Controller) remember(claim *v1.NodeClaim, change func(*memory)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.memory == nil {
		c.memory, c.names = map[types.UID]memory{}, map[string]types.UID{}
	}
	m := c.memory[claim.UID]
	change(&m)
	c.memory[claim.UID], c.names[claim.Name] = m, claim.UID
}

func (c *Controller) forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.memory, c.names[name])
	delete(c.names, name)
}
