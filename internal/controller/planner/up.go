package planner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/internal/core/schedule"
	"karpenter/internal/core/world"
	"karpenter/internal/journal"
	"karpenter/internal/kube/convert"
	"karpenter/internal/kube/dialect"
	"karpenter/internal/kube/intent"
	"karpenter/internal/kube/ledger"
	"karpenter/internal/kube/mirror"
	"karpenter/internal/kube/nominate"
	"karpenter/internal/settings"
)

// up plans the pending pods and buys what they need.
func (p *Planner) up(ctx context.Context, set settings.Settings) error {
	v, err := p.view(ctx, set)
	if err != nil {
		return err
	}
	p.remember(v)
	p.Metrics.Pending(len(v.Pending))
	if len(v.Pending) == 0 {
		return p.nominations(ctx, set, v, nil)
	}
	start := p.Now()
	plan := schedule.Solve(v.Snapshot, schedule.Options{})
	p.Metrics.Solved(len(v.Pending), p.Now().Sub(start), len(plan.Unplaced))
	p.Log.V(1).Info("found provisionable pods", "pods", len(v.Pending), "placements", len(plan.Placements), "newNodes", len(plan.Machines), "unplaced", len(plan.Unplaced))
	if news := p.explain(v, plan); news || len(plan.Machines) > 0 {
		p.Journal.Add(journal.Planned(v.Snapshot, &plan, start))
	}
	if len(plan.Machines) > 0 {
		p.Log.Info("computed new nodes", "newNodes", len(plan.Machines), "pods", podsOf(plan.Machines), "pricePerHour", plan.Price().String())
	}
	err = errors.Join(p.provision(ctx, v, plan.Machines), p.promise(ctx, v, plan.Placements))
	return errors.Join(err, p.nominations(ctx, set, v, plan.Placements))
}

// remember which pods were seen, and come back while any of them waits.
func (p *Planner) remember(v *mirror.View) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = make(map[types.UID]bool, len(v.Pending))
	for i := range v.Pending {
		p.known[types.UID(v.Pending[i].UID)] = true
	}
	for i := range v.Nodes {
		for _, pod := range v.Nodes[i].Pods {
			if _, promised := v.Promised[pod.ObjectName]; promised {
				p.known[types.UID(pod.UID)] = true
			}
		}
	}
	if len(v.Pending)+len(v.Promised) > 0 {
		p.retryAt = p.Now().Add(retry)
	}
}

// buy writes the record of one machine. The pool is read once more: it may have
// gone, or its limits may have been lowered, since the snapshot.
func (p *Planner) buy(ctx context.Context, v *mirror.View, m schedule.Machine, annotations map[string]string) (world.Record, error) {
	known := v.Pool(m.PoolKind, m.Pool)
	if known == nil {
		return world.Record{}, fmt.Errorf("buying a machine: pool %q is not in the snapshot", m.Pool)
	}
	pool := *known
	if err := p.stillAllowed(ctx, pool); err != nil {
		return world.Record{}, fmt.Errorf("buying a machine for %s %q: %w", pool.Kind, pool.Name, err)
	}
	rec, err := p.Ledger.Begin(ctx, pool, ledger.Machine{
		Requirements: m.Requirements, Requests: m.Requests, Labels: m.Labels, Pods: m.Pods, Annotations: annotations,
	})
	if err != nil {
		return world.Record{}, err
	}
	p.Mirror.Claim(rec, p.Now())
	p.bought(v, &rec, &m, annotations != nil)
	p.Journal.Add(journal.Bid(rec.Name, &m, annotations[intent.ReplacesAnnotation], p.Now()))
	p.Log.Info("asked for a node", "nodeclaim", rec.Name, poolWord(pool.Kind), m.Pool, "pods", len(m.Pods),
		"requests", m.Requests.String(), "types", fewTypes(m.Options), "price", m.Price.String())
	return rec, nil
}

func (p *Planner) stillAllowed(ctx context.Context, pool world.Pool) error {
	now := dialect.Of(pool.Kind).Pool()
	err := p.Client.Get(ctx, client.ObjectKey{Name: pool.Name}, now)
	if apierrors.IsNotFound(err) || err == nil && (string(now.GetUID()) != pool.UID || now.GetDeletionTimestamp() != nil) {
		return fmt.Errorf("it has been deleted")
	}
	if err != nil {
		return err
	}
	fresh, err := convert.PoolOf(now)
	if err != nil {
		return err
	}
	for _, limit := range fresh.Limits {
		if used := pool.Used.Get(limit.Name); used >= limit.Value {
			return fmt.Errorf("limit of %s reached: %d in use, limit %d", limit.Name, used, limit.Value)
		}
	}
	return nil
}

// explain says where pods go, and why others stay. Pods that stay for the same
// reason share a line in the log, when the reason is new; it reports whether one is.
func (p *Planner) explain(v *mirror.View, plan schedule.Plan) (news bool) {
	waiting := map[string][]world.ObjectName{}
	var texts []string
	for _, u := range plan.Unplaced {
		words := make([]string, 0, len(u.Reasons))
		for _, r := range u.Reasons {
			words = append(words, r.String())
		}
		p.tell(v, u.Pod, corev1.EventTypeWarning, "FailedScheduling", "no node can be made for this pod: "+strings.Join(words, "; "))
		text := closest(words)
		if waiting[text] == nil {
			texts = append(texts, text)
		}
		waiting[text] = append(waiting[text], u.Pod)
	}
	for _, text := range texts {
		if pods := waiting[text]; !p.said[text] {
			news = true
			p.Log.Error(nil, "could not place pod", "pod", pods[0].String(), "andOthers", len(pods)-1, "reason", text)
		}
	}
	p.said = make(map[string]bool, len(texts))
	for _, text := range texts {
		p.said[text] = true
	}
	for _, pl := range plan.Placements {
		where := "node " + pl.Node
		if pl.Node == "" {
			where = "nodeclaim " + pl.Claim
		}
		p.tell(v, pl.Pod, corev1.EventTypeNormal, "Nominated", "pod should run on "+where)
	}
	return news
}

// closest is the reason that comes closest to a fit, for the log; the event of
// the pod has all of them.
func closest(reasons []string) string {
	if more := len(reasons) - 1; more > 0 {
		return fmt.Sprintf("%s; and %d other reason(s)", reasons[0], more)
	}
	return strings.Join(reasons, "")
}

// tell publishes an event about a pending pod; one that still runs somewhere
// is not told that it should move.
func (p *Planner) tell(v *mirror.View, name world.ObjectName, kind, reason, text string) {
	if _, leaving := v.Leaving[name]; leaving {
		return
	}
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name, pod.UID = name.Namespace, name.Name, types.UID(v.UIDs[name])
	p.Events.Event(pod, kind, reason, text)
}

// promise writes down which pods are to run on machines that are not ready, so
// that they are nominated as soon as those for which the machine was bought. A
// record that is not launched is left alone: its launch is being written down.
func (p *Planner) promise(ctx context.Context, v *mirror.View, placements []schedule.Placement) (failed error) {
	boots := map[string]bool{}
	for i := range v.Nodes {
		n := &v.Nodes[i]
		boots[n.Claim] = n.Claim != "" && n.ProviderID != "" && !n.Initialized
	}
	pods := map[string][]world.ObjectName{}
	for _, pl := range placements {
		if _, leaving := v.Leaving[pl.Pod]; !leaving && boots[pl.Claim] {
			pods[pl.Claim] = append(pods[pl.Claim], pl.Pod)
		}
	}
	for claim, names := range pods {
		err := p.Ledger.Plan(ctx, claim, names)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // else the next plan does it
			failed = errors.Join(failed, fmt.Errorf("planning pods onto NodeClaim %s: %w", claim, err))
		}
	}
	return failed
}

// nominations makes status.nominatedNodeName of the pending pods agree with the
// plan, on nodes that are ready; the claim controller does so for new nodes.
func (p *Planner) nominations(ctx context.Context, set settings.Settings, v *mirror.View, placements []schedule.Placement) error {
	ready := map[string]bool{}
	for i := range v.Nodes {
		ready[v.Nodes[i].Name] = v.Nodes[i].Initialized
	}
	want := map[world.ObjectName]string{}
	for _, pl := range placements {
		if _, leaving := v.Leaving[pl.Pod]; leaving || pl.Node == "" || !ready[pl.Node] {
			continue
		}
		p.Mirror.Expect(pl.Node, p.Now().Add(nominationWindow(set)))
		want[pl.Pod] = pl.Node
	}
	var failed error
	for i := range v.Pending {
		name := v.Pending[i].ObjectName
		node := want[name]
		if !set.Nominate {
			node = ""
		}
		if v.Nominated[name] == node {
			continue
		}
		pod := &corev1.Pod{}
		err := p.Client.Get(ctx, client.ObjectKey{Namespace: name.Namespace, Name: name.Name}, pod)
		if err == nil {
			err = nominate.Set(ctx, p.Client.Status(), pod, node)
		}
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			failed = errors.Join(failed, fmt.Errorf("nominating pod %s: %w", name, err))
		}
	}
	return failed
}

// poolWord is what a kind of pool is called in logs and events.
func poolWord(kind string) string { return strings.ToLower(dialect.Of(kind).Kind) }

func podsOf(machines []schedule.Machine) (n int) {
	for _, m := range machines {
		n += len(m.Pods)
	}
	return n
}

// fewTypes names the first five instance types, cheapest first.
func fewTypes(options []schedule.Option) string {
	var names []string
	for _, o := range options {
		if !slices.Contains(names, o.Type) {
			names = append(names, o.Type)
		}
	}
	if more := len(names) - 5; more > 0 {
		return fmt.Sprintf("%s and %d other(s)", strings.Join(names[:5], ", "), more)
	}
	return strings.Join(names, ", ")
}
