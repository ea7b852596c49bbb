package mirror

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apiv1 "karpenter/api/v1"
	"karpenter/internal/core/disrupt"
	"karpenter/internal/core/lifecycle"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/convert"
	"karpenter/internal/kube/dialect"
	"karpenter/internal/kube/intent"
)

// build is the making of one view.
type build struct {
	mirror *Mirror
	now    time.Time
	window time.Duration
	listed *listed
	view   *View

	claims   map[string]world.Record // by name, assumed ones included
	names    []string                // of claims, in the order of their creation
	intents  map[string]string       // claim → method
	deleting map[string]bool         // claims whose deletion is assumed
	bereft   map[string]time.Time    // see [Mirror]

	bound    map[string][]world.Pod // by node
	waiting  []podEntry             // unbound and wanting a place
	reserved []podEntry             // nominated by others

	byClaim map[string]int // claim → index in view.Nodes
	byNode  map[string]int // node → index in view.Nodes
}

// pools translates the pools and asks what each can buy.
func (b *build) pools(ctx context.Context) error {
	b.view.Catalogs = map[world.CatalogKey]world.Catalog{}
	for _, list := range b.listed.pools {
		err := meta.EachListItem(list, func(o runtime.Object) error {
			b.pool(ctx, o.(client.Object))
			return nil
		})
		if err != nil {
			return fmt.Errorf("reading %T: %w", list, err)
		}
	}
	return nil
}

func (b *build) pool(ctx context.Context, o client.Object) {
	pool, err := convert.PoolOf(o)
	catalog, known := b.view.Catalogs[pool.Catalog]
	if !known && err == nil {
		catalog = b.mirror.catalogs(ctx, pool)
		b.view.Catalogs[pool.Catalog] = catalog
	}
	pool.NotReady = notReady(o, cmp.Or(pool.NotReady, catalog.Trouble))
	convert.Windows(&pool, b.now)
	if pool.Kind == dialect.KindNodePool {
		pool.Disruption.SpotToSpot = b.view.Policy.SpotToSpot
	}
	b.view.Pools = append(b.view.Pools, pool)
}

// notReady says why the pool cannot buy now. trouble is what was found just
// now; the pool's condition covers what takes longer to find out.
func notReady(p client.Object, trouble string) string {
	if p.GetDeletionTimestamp() != nil {
		return "it is being deleted"
	}
	if trouble != "" {
		return trouble
	}
	c := meta.FindStatusCondition(*convert.Conditions(p), apiv1.ConditionReady)
	switch {
	case c == nil, c.ObservedGeneration < p.GetGeneration():
		return "it is new or has changed, and is being checked"
	case c.Status != "True":
		return cmp.Or(c.Message, c.Reason)
	}
	return ""
}

// records translates the NodeClaims and lays our latest writes over them.
func (b *build) records() {
	b.claims, b.intents = map[string]world.Record{}, map[string]string{}
	for i := range b.listed.claims.Items {
		c := &b.listed.claims.Items[i]
		r := b.mirror.cache.record(c)
		b.claims[r.Name] = r
		if in, ok, _ := intent.Read(c.Annotations); ok {
			b.intents[r.Name] = cmp.Or(in.Method, "unknown")
		}
	}
	b.deleting = b.mirror.assumed.merge(b.claims, b.intents, b.now)
	b.names = slices.SortedFunc(maps.Keys(b.claims), func(x, y string) int {
		return cmp.Or(b.claims[x].Created.Compare(b.claims[y].Created), strings.Compare(x, y))
	})
}

// pods sorts the pods into bound ones and those that want a place.
func (b *build) pods() {
	b.bound = map[string][]world.Pod{}
	for _, e := range b.mirror.cache.pods(b.listed.pods.Items) {
		switch {
		case e.pod.Finished:
		case e.pod.Node != "":
			b.bound[e.pod.Node] = append(b.bound[e.pod.Node], e.pod)
		case e.pod.Nominated != "":
			b.reserved = append(b.reserved, e)
		case e.wants:
			b.waiting = append(b.waiting, e)
		}
		if e.ours != "" {
			b.view.Nominated[e.pod.ObjectName] = e.ours
		}
	}
}

// nodes joins nodes and claims by provider ID. A claim without a node is a
// place of its own; one that has lost its node is on its way out.
func (b *build) nodes() {
	b.byClaim, b.byNode = map[string]int{}, map[string]int{}
	byProvider := map[string]string{}
	for _, name := range b.names {
		if id := b.claims[name].ProviderID; id != "" {
			byProvider[id] = name
		}
	}
	for i := range b.listed.nodes.Items {
		n := &b.listed.nodes.Items[i]
		claim := byProvider[n.Spec.ProviderID]
		if n.Spec.ProviderID == "" || b.hasNode(claim) {
			claim = ""
		}
		b.add(b.node(n, claim), claim)
	}
	for _, name := range b.names {
		if !b.hasNode(name) {
			r := b.claims[name]
			n := convert.Booting(r, b.catalogOf(r))
			n.Deleting = n.Deleting || r.Registered.True() && b.lost(name)
			b.add(n, name)
		}
	}
}

func (b *build) hasNode(claim string) bool { _, ok := b.byClaim[claim]; return ok }

// add appends a node, with what is known about its claim being on its way out.
func (b *build) add(n world.Node, claim string) {
	if r, ok := b.claims[claim]; ok {
		n.Disruption = b.intents[claim]
		n.Deleting = n.Deleting || r.DeletedAt != nil || r.Interrupted != "" || b.deleting[claim] || n.Disruption != ""
	}
	n.Pods = b.bound[n.Name]
	if until := b.mirror.assumed.expected(n.Name); until != nil && b.now.Before(*until) {
		n.NominatedUntil = until
	}
	if claim != "" {
		b.byClaim[claim] = len(b.view.Nodes)
	}
	if n.Joined {
		b.byNode[n.Name] = len(b.view.Nodes)
	}
	b.view.Nodes = append(b.view.Nodes, n)
}

// leaving reports whether the machine is really on its way out, not only chosen
// to be: its pods need another place now.
func (b *build) leaving(n *world.Node) bool {
	return n.Deleting && (n.Disruption == "" || b.claims[n.Claim].DeletedAt != nil || b.claims[n.Claim].Interrupted != "" || b.deleting[n.Claim])
}

// promises keeps room for pods on the machines that were bought for them, until
// they are bound or the nomination window after initialization is over (for pods
// of a machine that is being replaced: until they have left it); and for pods
// that others nominated.
func (b *build) promises() {
	candidates := map[world.ObjectName]world.Pod{}
	for _, e := range b.waiting {
		candidates[e.pod.ObjectName] = e.pod
	}
	for i := range b.view.Nodes {
		if n := &b.view.Nodes[i]; n.Deleting {
			for _, p := range n.Pods {
				candidates[p.ObjectName] = p
			}
		}
	}
	for _, name := range b.names {
		r, n := b.claims[name], &b.view.Nodes[b.byClaim[name]]
		until := r.Initialized.Since.Add(b.window)
		if n.Deleting {
			continue
		}
		for _, pod := range r.Pods {
			p, waits := candidates[pod]
			_, taken := b.view.Promised[pod]
			late := n.Initialized && !b.now.Before(until) && p.Node == ""
			if hold := r.Initialized.Since.Add(lifecycle.PlannedHold); late && waits && b.now.Before(hold) {
				expect(n, hold) // it is planned anew, but the scheduler may still send it here
			}
			if !waits || taken || late || p.Node == n.Name {
				continue
			}
			b.view.Promised[pod] = name
			b.keepRoom(n, p)
			if n.Initialized && p.Node == "" {
				expect(n, until)
			}
		}
	}
	for _, e := range b.reserved {
		if i, ok := b.byNode[e.pod.Nominated]; ok {
			b.keepRoom(&b.view.Nodes[i], e.pod)
		} else if e.wants {
			b.waiting = append(b.waiting, e) // the node is gone, and the nomination with it
		}
	}
	for _, e := range b.waiting {
		if i, ok := b.byNode[e.ours]; ok {
			until := b.now.Add(b.window)
			b.view.Nodes[i].NominatedUntil = &until
		}
	}
}

// expect notes that pods are expected on the node.
func expect(n *world.Node, until time.Time) {
	if n.NominatedUntil == nil || n.NominatedUntil.Before(until) {
		n.NominatedUntil = &until
	}
}

func (b *build) keepRoom(n *world.Node, p world.Pod) {
	n.Pods = append(slices.Clip(n.Pods), p)
}

// pending collects the pods that want a place: those that the scheduler gave
// up on, and those on machines that are going, as far as they can leave. Pods
// that cannot leave must not buy anything: it would stay empty.
func (b *build) pending() {
	add := func(p world.Pod) {
		b.view.Pending = append(b.view.Pending, p)
		b.view.UIDs[p.ObjectName] = p.UID
	}
	for _, e := range b.waiting {
		if _, promised := b.view.Promised[e.pod.ObjectName]; !promised {
			add(e.pod)
		}
	}
	for i := range b.view.Nodes {
		n := &b.view.Nodes[i]
		slices.SortFunc(n.Pods, func(x, y world.Pod) int { return x.Compare(y.ObjectName) })
		if !b.leaving(n) {
			continue
		}
		deadline, interrupted := b.claims[n.Claim].Deadline, b.claims[n.Claim].Interrupted != ""
		for _, p := range n.Pods {
			_, promised := b.view.Promised[p.ObjectName]
			stays := p.Node != n.Name || p.DeletedAt != nil || p.IsDaemon() || p.IsStatic()
			if promised || stays || !b.soonForced(&p, deadline) && (p.Protected(b.now) && !interrupted || disrupt.CannotEvict(p, b.view.Budgets) != nil) {
				continue
			}
			b.view.Leaving[p.ObjectName] = n.Name
			p.Node = ""
			add(p)
		}
	}
}

// ahead is how long before a pod is deleted for a deadline it needs a new place.
const ahead = 5 * time.Minute

// soonForced reports whether the pod will have to go soon, whoever objects.
func (b *build) soonForced(p *world.Pod, deadline *time.Time) bool {
	return deadline != nil && !b.now.Before(deadline.Add(-ahead-time.Duration(p.GraceSeconds)*time.Second))
}

// usage sums the capacity of the machines of each pool and counts them, those on
// their way in or out included. A machine that is not launched counts as the greatest that it
// may become.
func (b *build) usage() {
	for i := range b.view.Pools {
		p := &b.view.Pools[i]
		for _, name := range b.names {
			if r := b.claims[name]; r.Pool != "" && p.Is(r.PoolKind, r.Pool) {
				p.Used = p.Used.Add(b.capacity(p, r)).Add(quantity.Of(quantity.Amount{Name: quantity.Nodes, Value: 1}))
			}
		}
	}
}

func (b *build) capacity(p *world.Pool, r world.Record) quantity.Resources {
	if !r.Capacity.IsZero() {
		return r.Capacity
	}
	var most quantity.Resources
	for _, t := range convert.Options(r, b.view.Catalogs[p.Catalog]) {
		most = most.Max(t.Capacity)
	}
	return most
}

func (b *build) budgets() {
	for i := range b.listed.budgets.Items {
		b.view.Budgets = append(b.view.Budgets, convert.Budget(&b.listed.budgets.Items[i]))
	}
	slices.SortFunc(b.view.Budgets, func(x, y world.PodBudget) int { return x.Compare(y.ObjectName) })
}

func (b *build) daemons() {
	running := convert.DaemonPods{}
	for _, pods := range b.bound {
		for i := range pods {
			running.See(&pods[i])
		}
	}
	for i := range b.listed.daemons.Items {
		b.view.Daemons = append(b.view.Daemons, running.Daemon(&b.listed.daemons.Items[i]))
	}
	slices.SortFunc(b.view.Daemons, func(x, y world.Daemon) int { return x.Compare(y.ObjectName) })
}
