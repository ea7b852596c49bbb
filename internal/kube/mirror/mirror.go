// Package mirror turns what the informers hold into a snapshot for the core.
//
// It may import admission, convert, dialect and controller-runtime's reader;
// never aws or a controller. What always holds: a snapshot is immutable; what
// was just written counts at once, even before the watch shows it; a machine
// that has not joined never promises more than the least of what it may become.
package mirror

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apiv1 "karpenter/api/v1"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/dialect"
)

// Mirror builds snapshots. It is safe for concurrent use.
type Mirror struct {
	reader   client.Reader
	catalogs Catalogs
	kinds    []dialect.Dialect
	assumed  assumed
	cache    cache
	version  uint64
	// bereft are the claims that were registered and have no Node, by name, since
	// when. A restart loses them, which costs the same patience once more.
	bereft map[string]time.Time
}

// Catalogs tells what a pool can buy now; trouble is part of the answer.
type Catalogs func(context.Context, world.Pool) world.Catalog

// View is a snapshot and what those who act on it need besides.
type View struct {
	*world.Snapshot
	// Nominated are the pending pods that carry a nomination of ours, with the
	// node, sorted by nothing: look up, do not range.
	Nominated map[world.ObjectName]string
	// Promised are the pods for which a machine was bought that is not ready
	// yet, with its NodeClaim. They are not pending.
	Promised map[world.ObjectName]string
	// UIDs of the pending pods.
	UIDs map[world.ObjectName]string
	// Leaving are the pending pods that still run on a node that is going.
	Leaving map[world.ObjectName]string
	// Until is when the same objects may make another view, because time has
	// passed; zero: never. See [Mirror.Same].
	Until time.Time
}

// New makes a mirror over a reader of cached objects. Objects that it reads are
// never changed, and need not be copied. kinds are the kinds of pools that the
// API server knows; without any it is asked for all.
func New(reader client.Reader, catalogs Catalogs, kinds ...dialect.Dialect) *Mirror {
	if len(kinds) == 0 {
		kinds = dialect.All()
	}
	return &Mirror{reader: reader, catalogs: catalogs, kinds: kinds, assumed: newAssumed(), cache: newCache()}
}

// listed is what was read for one snapshot.
type listed struct {
	pools        []client.ObjectList
	claims       apiv1.NodeClaimList
	nodes        corev1.NodeList
	pods         corev1.PodList
	daemons      appsv1.DaemonSetList
	budgets      policyv1.PodDisruptionBudgetList
	namespaces   corev1.NamespaceList
	volumes      corev1.PersistentVolumeList
	volumeClaims corev1.PersistentVolumeClaimList
	classes      storagev1.StorageClassList
	csiNodes     storagev1.CSINodeList
}

// View reads everything and returns it as it is at the given time. policy goes
// into the snapshot as it is; nominationWindow is how long pods are expected on
// a node after it has become ready for them.
func (m *Mirror) View(ctx context.Context, now time.Time, policy world.Policy, nominationWindow time.Duration) (*View, error) {
	// Nodes and claims are read before pods: a pod that is bound in between is
	// then pending in this snapshot, never counted twice. What pods refer to is
	// read after them.
	var l listed
	for _, d := range m.kinds {
		l.pools = append(l.pools, d.Pools())
	}
	for _, list := range slices.Concat([]client.ObjectList{&l.nodes, &l.claims}, l.pools, []client.ObjectList{
		&l.daemons, &l.budgets, &l.pods, &l.namespaces, &l.volumes, &l.volumeClaims, &l.classes, &l.csiNodes,
	}) {
		if err := m.reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("reading %T: %w", list, err)
		}
	}
	m.cache.mu.Lock()
	defer m.cache.mu.Unlock()
	m.version++
	m.cache.round = m.version
	b := &build{mirror: m, now: now, window: nominationWindow, listed: &l, bereft: map[string]time.Time{}, view: &View{
		Snapshot:  &world.Snapshot{Version: m.version, Policy: policy},
		Nominated: map[world.ObjectName]string{}, Promised: map[world.ObjectName]string{}, Leaving: map[world.ObjectName]string{}, UIDs: map[world.ObjectName]string{},
	}}
	m.cache.refer(&l)
	if err := b.pools(ctx); err != nil {
		return nil, err
	}
	b.records()
	b.pods()
	b.moved()
	b.nodes()
	b.promises()
	b.budgets()
	b.pending()
	b.daemons()
	b.usage()
	m.cache.sweep(b.claims)
	m.bereft = b.bereft
	world.SortPools(b.view.Pools)
	world.SortNodes(b.view.Nodes)
	world.SortPending(b.view.Pending)
	b.view.Until = b.until()
	return b.view, nil
}
