package mirror

import (
	"context"
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

// Reads are objects of the kinds that a view is made of; pools are the kinds of
// pools that the API server knows, none: all.
func Reads(pools ...dialect.Dialect) []client.Object {
	if len(pools) == 0 {
		pools = dialect.All()
	}
	out := []client.Object{&corev1.Pod{}, &corev1.Node{}, &apiv1.NodeClaim{}}
	for _, d := range pools {
		out = append(out, d.Pool())
	}
	return append(out, &appsv1.DaemonSet{}, &policyv1.PodDisruptionBudget{}, &corev1.Namespace{}, &corev1.PersistentVolume{},
		&corev1.PersistentVolumeClaim{}, &storagev1.StorageClass{}, &storagev1.CSINode{})
}

// Same reports whether a view that is made of the same objects as v, before
// v.Until, would be like v: no write is assumed that v does not show, and the
// pools can buy the same.
func (m *Mirror) Same(ctx context.Context, v *View) bool {
	if !m.assumed.none() {
		return false
	}
	asked := map[world.CatalogKey]bool{}
	for i := range v.Pools {
		pool := v.Pools[i]
		if asked[pool.Catalog] {
			continue
		}
		asked[pool.Catalog] = true
		if !sameCatalog(v.Catalogs[pool.Catalog], m.catalogs(ctx, pool)) {
			return false
		}
	}
	return true
}

// sameCatalog reports whether two catalogues are one and the same; catalogues
// are kept where they are made, and never changed.
func sameCatalog(a, b world.Catalog) bool {
	return a.Region == b.Region && a.Trouble == b.Trouble && len(a.Types) == len(b.Types) && (len(a.Types) == 0 || &a.Types[0] == &b.Types[0])
}

// none reports whether everything that was written has been seen.
func (a *assumed) none() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.claims)+len(a.intents)+len(a.deletions)+len(a.nominated) == 0
}

// until is when the same objects may make another view. While machines or pods
// are on their way that is at once; else only budgets of pools look at the
// clock, whose schedules are in minutes.
func (b *build) until() time.Time {
	moving := !b.mirror.assumed.none() || len(b.view.Promised)+len(b.view.Leaving)+len(b.reserved)+len(b.bereft) > 0 ||
		slices.ContainsFunc(b.waiting, func(e podEntry) bool { return e.ours != "" }) ||
		slices.ContainsFunc(b.view.Nodes, func(n world.Node) bool { return n.Claim != "" && (n.Deleting || !n.Initialized) })
	if moving {
		return b.now
	}
	for i := range b.view.Pools {
		for _, w := range b.view.Pools[i].Disruption.Budgets {
			if w.Schedule != "" {
				return b.now.Truncate(time.Minute).Add(time.Minute)
			}
		}
	}
	return time.Time{}
}
