package schedule

import "karpenter/internal/core/world"

// affinityOf compiles pod affinity. A pod is counted if it matches all required
// terms together; then every term needs one in its domain.
func affinityOf(b *rulebook, o *owned, p *world.Pod) {
	for i := range p.Affinity {
		if t := &p.Affinity[i]; t.Weight == 0 {
			o.terms = append(o.terms, b.term(t))
		}
	}
	for i := range p.Affinity {
		t := &p.Affinity[i]
		if t.Weight == 0 {
			o.rule.affinity = append(o.rule.affinity, b.tally(tally{key: b.key(t.Key), matchers: o.terms}))
		} else if b.wishes {
			o.rule.wishes = append(o.rule.wishes, b.wish(t, t.Weight))
		}
	}
}

// antiAffinityOf compiles pod anti-affinity, which acts both ways: the pod
// avoids those that its terms match, and they avoid it.
func antiAffinityOf(b *rulebook, o *owned, p *world.Pod) {
	for i := range p.AntiAffinity {
		t := &p.AntiAffinity[i]
		if t.Weight == 0 {
			m := []int32{b.term(t)}
			key := b.key(t.Key)
			o.rule.anti = append(o.rule.anti, b.tally(tally{key: key, matchers: m}))
			o.rule.adds = append(o.rule.adds, b.tally(tally{key: key, matchers: m, owners: true}))
		} else if b.wishes {
			o.rule.wishes = append(o.rule.wishes, b.wish(t, -t.Weight))
		}
	}
}

func (b *rulebook) term(t *world.PodTerm) int32 {
	return b.matcher(t.AllNamespaces, t.Namespaces, t.Selector)
}

func (b *rulebook) wish(t *world.PodTerm, weight int32) wish {
	return wish{b.tally(tally{key: b.key(t.Key), matchers: []int32{b.term(t)}, wish: true}), weight}
}
