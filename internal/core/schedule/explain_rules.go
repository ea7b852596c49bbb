package schedule

import (
	"fmt"
	"slices"

	"karpenter/internal/core/reason"
)

// refuseRules says which rule between pods keeps the class off the machines of
// the shop; nil if it is none.
func (p *problem) refuseRules(s *shop, c *class) reason.Reason {
	pool := reason.Pool{Kind: s.pool.Kind, Name: s.pool.Name}
	if why := s.refusePort(c); why != nil {
		return why
	}
	if c.rules == nil || s.broken != "" {
		return nil
	}
	b := p.settler.board
	for _, t := range p.settler.tuplesOf(c) {
		first := t.first(c)
		if t.shop != s || first < 0 {
			continue
		}
		t.spot.bring(s, first)
		broken := b.check(c.rules, &t.spot)
		if broken.kind == kept {
			continue
		}
		if broken.kind == brokenPort {
			return reason.PortTaken{Pool: pool, Protocol: broken.port.Protocol, Port: broken.port.Port}
		}
		key := p.book.keys[p.book.tallies[broken.tally].key]
		switch broken.kind {
		case brokenSpread:
			return reason.SpreadBroken{
				Pool: pool, Key: key, MaxSkew: broken.spread.skew, MinDomains: broken.spread.minDomains, Counts: b.words(broken.tally, true),
			}
		case brokenAffinity:
			return reason.NobodyToBeWith{Pool: pool, Key: key, Domains: b.words(broken.tally, false)}
		default:
			return reason.KeptApart{Pool: pool, Key: key, Domains: b.words(broken.tally, false), ByOthers: broken.kind == brokenShun}
		}
	}
	return nil
}

// refusePort says that daemon pods take a port of the class wherever it might go.
func (s *shop) refusePort(c *class) reason.Reason {
	if len(s.demand(c.profile).ways) > 0 {
		return nil
	}
	for i := range s.daemons {
		if port, bad := conflict(c.profile.ports, s.daemons[i].rules.ports); bad {
			return reason.PortTaken{Pool: reason.Pool{Kind: s.pool.Kind, Name: s.pool.Name}, Protocol: port.Protocol, Port: port.Port, Daemon: s.daemons[i].name}
		}
	}
	return nil
}

// words lists the domains of a tally: with their counts, or only those that have
// pods. Hosts are too many to list.
func (b *board) words(tally int32, counts bool) (out []string) {
	t, c := b.book.tallies[tally], &b.count[tally]
	if t.key == b.book.host {
		return nil
	}
	for v, n := range c.pods {
		name := b.book.name(t.key, int32(v))
		switch {
		case counts && c.sure[v] > 0:
			out = append(out, fmt.Sprintf("%s %d", name, n))
		case !counts && n > 0:
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
