package schedule

import (
	"math/bits"
	"slices"
	"strings"

	"karpenter/internal/core/label"
)

// set is a set of small integers. Sets that are combined have equal length.
type set []uint64

func newSet(n int) set { return make(set, (n+63)/64) }

func fullSet(n int) set {
	s := newSet(n)
	for i := range s {
		s[i] = ^uint64(0)
	}
	if n%64 != 0 {
		s[len(s)-1] = 1<<(n%64) - 1
	}
	return s
}

func (s set) has(i int) bool { return s[i>>6]>>(i&63)&1 == 1 }
func (s set) add(i int)      { s[i>>6] |= 1 << (i & 63) }
func (s set) remove(i int)   { s[i>>6] &^= 1 << (i & 63) }

func (s set) and(o set) {
	for i := range s {
		s[i] &= o[i]
	}
}

func (s set) or(o set) {
	for i := range s {
		s[i] |= o[i]
	}
}

func (s set) empty() bool {
	for _, w := range s {
		if w != 0 {
			return false
		}
	}
	return true
}

// next returns the first member at or after i, or -1.
func (s set) next(i int) int {
	w := i >> 6
	if w >= len(s) {
		return -1
	}
	word := s[w] >> (i & 63)
	if word != 0 {
		return i + bits.TrailingZeros64(word)
	}
	for w++; w < len(s); w++ {
		if s[w] != 0 {
			return w<<6 + bits.TrailingZeros64(s[w])
		}
	}
	return -1
}

// table answers which of n things (nodes or offerings) satisfy a requirement.
// Every label key is turned into a column of value numbers once, and every
// requirement is held against each different value once.
type table struct {
	n       int
	value   func(i int, key string) (string, bool)
	columns map[string]*column
	known   map[string]set
	buf     []byte
}

type column struct {
	ids    []int32  // per thing; 0 is absent
	values []string // values[id-1]
}

func newTable(n int, value func(i int, key string) (string, bool)) *table {
	return &table{n: n, value: value, columns: map[string]*column{}, known: map[string]set{}}
}

func (t *table) column(key string) *column {
	if c, ok := t.columns[key]; ok {
		return c
	}
	c := &column{ids: make([]int32, t.n)}
	ids := map[string]int32{}
	for i := range t.n {
		v, ok := t.value(i, key)
		if !ok {
			continue
		}
		id, seen := ids[v]
		if !seen {
			c.values = append(c.values, v)
			id = int32(len(c.values))
			ids[v] = id
		}
		c.ids[i] = id
	}
	t.columns[key] = c
	return c
}

// matching returns the things on which the requirement holds. The set is
// shared; it must not be changed.
func (t *table) matching(r label.Requirement) set {
	t.buf = appendRequirement(t.buf[:0], r)
	if s, ok := t.known[string(t.buf)]; ok {
		return s
	}
	signature := string(t.buf)
	c := t.column(r.Key)
	allowed := make([]bool, len(c.values)+1)
	allowed[0] = r.Allows("", false)
	for i, v := range c.values {
		allowed[i+1] = r.Allows(v, true)
	}
	s := newSet(t.n)
	for i, id := range c.ids {
		if allowed[id] {
			s.add(i)
		}
	}
	t.known[signature] = s
	return s
}

// distinct returns the different values of the key over some things, sorted.
func (t *table) distinct(key string, of set) []string {
	c := t.column(key)
	var out []string
	seen := make([]bool, len(c.values)+1)
	seen[0] = true
	for i := of.next(0); i >= 0; i = of.next(i + 1) {
		if id := c.ids[i]; !seen[id] {
			seen[id] = true
			out = append(out, c.values[id-1])
		}
	}
	slices.SortFunc(out, strings.Compare)
	return out
}
