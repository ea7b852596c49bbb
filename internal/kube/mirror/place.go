package mirror

import (
	"time"

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

// nodeless is how long a machine that was registered may lack its Node and still
// count as coming: the Node may not be seen yet, or be made anew by its kubelet.
// Its record is given up later.
const nodeless = 30 * time.Second

// lost notes that a claim which was registered has no Node, and reports whether
// that has been so for too long to wait for it.
func (b *build) lost(claim string) bool {
	since, known := b.mirror.bereft[claim]
	if !known {
		since = b.now
	}
	b.bereft[claim] = since
	return b.now.Sub(since) >= nodeless
}

// catalogOf is what the pool of the record can buy.
func (b *build) catalogOf(r world.Record) world.Catalog {
	if p := b.view.Pool(r.PoolKind, r.Pool); p != nil {
		return b.view.Catalogs[p.Catalog]
	}
	return world.Catalog{}
}
