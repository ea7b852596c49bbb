package schedule

import (
	"math"
	"slices"

	"karpenter/internal/core/world"
)

// host is what rules between pods need to know of one machine that is being
// filled: how many of its pods count in tallies per host.
type host struct {
	book    *rulebook
	count   []int32 // per tally
	most    []int32 // per tally: what the pods that are there bear
	touched []int32
	ports   []world.HostPort
}

func newHost(book *rulebook) *host {
	h := &host{book: book, count: make([]int32, len(book.tallies)), most: make([]int32, len(book.tallies))}
	for i := range h.most {
		h.most[i] = math.MaxInt32
	}
	return h
}

func (h *host) clear() {
	for _, t := range h.touched {
		h.count[t], h.most[t] = 0, math.MaxInt32
	}
	h.touched, h.ports = h.touched[:0], h.ports[:0]
}

// with adds the daemon pods of a machine of the offer, if there is one.
func (h *host) with(s *shop, offer int) *host {
	for i := range s.daemons {
		if d := &s.daemons[i]; offer >= 0 && d.on.has(offer) {
			h.put(d.rules, 1)
		}
	}
	return h
}

// limit is how many more pods with the rules the machine may take, such that
// they may come in any order.
func (h *host) limit(r *rules) int {
	limit := int32(math.MaxInt32)
	for i := range r.spread {
		s := &r.spread[i]
		switch {
		case h.book.tallies[s.tally].key != h.book.host:
		case s.self == 1:
			limit = min(limit, s.skew-h.count[s.tally])
		case h.count[s.tally] > s.skew:
			return 0
		}
	}
	for _, list := range [2][]int32{r.anti, r.shun} {
		for _, t := range list {
			if h.book.tallies[t].key != h.book.host {
				continue
			}
			if h.count[t] > 0 {
				return 0
			}
			if slices.Contains(r.adds, t) {
				limit = min(limit, 1)
			}
		}
	}
	for _, t := range r.adds {
		limit = min(limit, h.most[t]-h.count[t])
	}
	if len(r.ports) > 0 {
		if _, bad := conflict(r.ports, h.ports); bad {
			return 0
		}
		limit = min(limit, 1)
	}
	return int(max(0, limit))
}

// hosts adds up how many machines the pods left of the classes need at least, as
// the rule that needs most demands.
func (h *host) hosts(classes []*class) float64 {
	need := map[int32]float64{}
	for _, c := range classes {
		if c.rules == nil || !c.rules.onHost {
			continue
		}
		for i := range c.rules.spread {
			if s := &c.rules.spread[i]; s.self == 1 && h.book.tallies[s.tally].key == h.book.host {
				need[s.tally] += float64(c.left()) / float64(s.skew)
			}
		}
		for _, t := range c.rules.anti {
			if h.book.tallies[t].key == h.book.host && slices.Contains(c.rules.adds, t) {
				need[t] += float64(c.left())
			}
		}
	}
	most := 0.0
	for _, n := range need {
		most = max(most, n)
	}
	return most
}

// put counts n pods with the rules.
func (h *host) put(r *rules, n int) {
	for _, t := range r.adds {
		if h.book.tallies[t].key == h.book.host {
			h.count[t] += int32(n)
			h.touched = append(h.touched, t)
		}
	}
	for i := range r.spread {
		if t := r.spread[i].tally; h.book.tallies[t].key == h.book.host {
			h.most[t] = min(h.most[t], r.spread[i].skew)
			h.touched = append(h.touched, t)
		}
	}
	h.ports = append(h.ports, r.ports...)
}

// portion computes what pods of one machine may be worth.
func (pk *packer) portion() {
	pk.share = math.Inf(1)
	if pk.host == nil {
		return
	}
	if n := pk.host.hosts(pk.classes); n > 1 {
		pk.share = shareSlack * pk.remaining() / n
	}
}

// shareSlack is how much more than the average a machine may hold.
const shareSlack = 2
