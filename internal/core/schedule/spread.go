package schedule

import (
	"slices"

	"karpenter/internal/core/world"
)

// spreadOf compiles topology spread. As with kube-scheduler only nodes count
// that have the keys of all hard constraints of the pod.
func spreadOf(b *rulebook, o *owned, p *world.Pod) {
	var keys []int
	for i := range p.Spread {
		if s := &p.Spread[i]; !s.Soft {
			keys = append(keys, b.key(s.Key))
		}
	}
	for i := range p.Spread {
		s := &p.Spread[i]
		if s.Soft {
			if b.wishes {
				m := b.matcher(false, []string{p.Namespace}, s.Selector)
				t := b.tally(tally{key: b.key(s.Key), matchers: []int32{m}, spread: true, wish: true})
				o.rule.wishes = append(o.rule.wishes, wish{t, -softSpreadWeight})
			}
			continue
		}
		m := b.matcher(false, []string{p.Namespace}, s.Selector)
		counted := m
		if !s.Selector.Nothing && len(s.Selector.Requirements) == 0 {
			// kube-scheduler counts nothing for a selector that selects
			// everything, but takes the pod for selected.
			counted, m = b.matcher(false, nil, world.LabelSelector{Nothing: true}), -1
		}
		t := b.tally(tally{key: b.key(s.Key), matchers: []int32{counted}, spread: true, filter: b.filter(p, s, keys)})
		o.rule.spread = append(o.rule.spread, spreadRule{tally: t, skew: s.MaxSkew, minDomains: s.MinDomains})
		o.self = append(o.self, m)
	}
}

// softSpreadWeight is what one more pod in a domain counts for where the pods
// would rather be spread; preferences have weights of 1 to 100.
const softSpreadWeight = 10

func (b *rulebook) filter(p *world.Pod, s *world.Spread, keys []int) *filter {
	f := &filter{taints: s.HonorTaints, keys: keys}
	k := []byte{bit(s.HonorTaints), bit(s.IgnoreAffinity)}
	for _, key := range keys {
		k = append(k, byte(key), byte(key>>8))
	}
	if !s.IgnoreAffinity {
		f.ways = affinityWays(p)
		k = appendAffinity(k, p)
	}
	if s.HonorTaints {
		f.tolerations = p.Tolerations
		k = appendTolerations(k, p)
	}
	if known := b.filters[string(k)]; known != nil {
		return known
	}
	f.id = len(b.filters) + 1
	b.filters[string(k)] = f
	return f
}

// exceeds reports whether the domain may have more than so many pods above the one
// that has fewest, over all ways in which places that are not decided turn out:
// such a place brings its pods to the domain, or opens another one with them, but
// not both.
func (b *board) exceeds(t, v, brought, by int32) bool {
	c, key := &b.count[t], b.book.tallies[t].key
	high := c.most(v) + brought
	if by < 0 {
		return true
	}
	for w := range c.sure {
		if c.sure[w] > 0 && int32(w) != v && high-c.pods[w] > by {
			return true
		}
	}
	for _, s := range b.spots {
		if s.counts[t] == never || s.values[key] != open && s.counts[t] != perhaps {
			continue
		}
		own := int32(0)
		for _, o := range s.unsure {
			if o == t {
				own++
			}
		}
		values := s.domainsOf(t, key)
		here := int32(0)
		if slices.Contains(values, v) {
			here = own
		}
		for _, w := range values {
			if w != v && !c.known(w) && high-here-own > by {
				return true
			}
		}
	}
	return false
}
