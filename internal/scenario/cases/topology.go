package cases

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "karpenter/api/v1"
)

func (e *evaluation) topology() {
	for _, s := range e.k.Spread {
		e.spread(s)
	}
	for _, z := range e.k.Zones {
		key := z.Key
		if key == "" {
			key = "zone"
		}
		have := e.counts(key, e.selected(z.Selector))
		ok := true
		for _, d := range sortedKeys(z.Counts) {
			ok = ok && have[d] == z.Counts[d]
		}
		for d, n := range have {
			_, named := z.Counts[d]
			ok = ok && (named || n == 0)
		}
		e.is(ok, fmt.Sprintf("zones: %v", z.Counts), "there are %v", have)
	}
	for _, g := range e.k.Together {
		have := e.counts(g.Key, e.members(g))
		e.is(len(have) == 1 && have[""] == 0, fmt.Sprintf("together by %s: %v", g.Key, e.members(g)), "they are in %v", have)
	}
	for _, g := range e.k.Apart {
		have := e.counts(g.Key, e.members(g))
		ok := have[""] == 0
		for _, n := range have {
			ok = ok && n <= 1
		}
		e.is(ok, fmt.Sprintf("apart by %s: %v", g.Key, e.members(g)), "they are in %v", have)
	}
}

// counts pods per domain; "" are those without.
func (e *evaluation) counts(key string, pods []string) map[string]int {
	out := map[string]int{}
	for _, p := range pods {
		out[e.s.domain(e.s.home(p), key)]++
	}
	return out
}

func (e *evaluation) members(g Group) []string {
	if g.Selector.Selector != nil {
		return e.selected(g.Selector)
	}
	return g.Pods
}

// spread compares all domains: those of the region for zones, else those that
// nodes have.
func (e *evaluation) spread(s Spread) {
	have := e.counts(s.Key, e.selected(s.Selector))
	delete(have, "")
	domains := s.Within
	if domains == nil {
		if s.Key == "zone" || s.Key == "topology.kubernetes.io/zone" {
			domains = slices.Clone(e.c.Cloud.Zones)
		}
		for d := range have {
			if !slices.Contains(domains, d) {
				domains = append(domains, d)
			}
		}
	}
	least, most := -1, 0
	for _, d := range domains {
		most = max(most, have[d])
		if least < 0 || have[d] < least {
			least = have[d]
		}
	}
	e.is(most-least <= s.MaxSkew, fmt.Sprintf("spread over %s: at most %d", s.Key, s.MaxSkew), "there are %v", have)
}

func (e *evaluation) words() {
	for _, x := range e.k.Explain {
		name := fmt.Sprintf("explain: %s %v", x.About, []string(x.Mentions))
		ok, seen := e.s.says(e.about(x.About), x.Mentions)
		if len(seen) > 12 {
			seen = seen[len(seen)-12:]
		}
		e.is(ok, name, "what was said: %q", seen)
		for _, w := range x.MentionsNot {
			e.not(e.about(x.About), w)
		}
	}
	if len(e.k.MentionsNot) == 0 {
		return
	}
	var about []string // the objects of the other checks; nil: everything
	for _, x := range e.k.Explain {
		about = append(about, e.about(x.About)...)
	}
	for _, pod := range sortedKeys(e.k.Pending) {
		if p := e.s.pod(pod); p != nil {
			about = append(about, "Pod/"+p.Namespace+"/"+p.Name)
		}
	}
	for _, w := range e.k.MentionsNot {
		e.not(about, w)
	}
}

func (e *evaluation) not(about []string, word string) {
	said := ""
	for _, t := range e.s.Texts {
		if (about == nil || slices.ContainsFunc(about, func(a string) bool { return slices.Contains(t.About, a) })) && mentions(t.Words, []string{word}) {
			said = t.Words
		}
	}
	e.is(said == "", "mentionsNot: "+word, "it was said: %s", said)
}

// about turns what a check names into the names of texts; nil: anything.
func (e *evaluation) about(s string) []string {
	kind, namespace, name, err := Target(s)
	if err != nil {
		return nil
	}
	return []string{kind + "/" + name, kind + "/" + namespace + "/" + name}
}

func named(name string) func(*karpv1.NodeClaim) bool {
	return func(c *karpv1.NodeClaim) bool { return c.Name == name }
}

func registered(c metav1.Condition) bool {
	return c.Type == karpv1.ConditionRegistered && c.Status == metav1.ConditionTrue
}
