package mirror

import (
	corev1 "k8s.io/api/core/v1"

	"karpenter/internal/core/world"
	"karpenter/internal/kube/convert"
)

// node is a Node that has joined, with its claim if it has one.
func (b *build) node(n *corev1.Node, claim string) world.Node {
	out := b.mirror.cache.node(n)
	out.AttachLimits = b.mirror.cache.look.AttachLimits(n.Name)
	r, owned := b.claims[claim]
	if !owned {
		return out
	}
	out = convert.Joined(out, r)
	if !out.Initialized {
		out.AttachLimits = convert.PromisedLimits(out.AttachLimits, convert.Options(r, b.catalogOf(r)))
	}
	return out
}

// catalogOf is what the pool of the record can buy.
func (b *build) catalogOf(r world.Record) world.Catalog {
	for i := range b.view.Pools {
		if p := &b.view.Pools[i]; p.Name == r.Pool && (r.PoolKind == "" || p.Kind == r.PoolKind) {
			return b.view.Catalogs[p.Catalog]
		}
	}
	return world.Catalog{}
}
