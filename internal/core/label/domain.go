package label

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
)

// Domain is the finite list of values of one key that a set of requirements can
// tell apart: every value that is named, the integers named as bounds and one
// for each gap between integers (and one below and one above), any other value,
// and "absent". A requirement is a subset of it, a [Mask]. Integers that nobody
// named are known by their shortest spelling only: 7, not 007.
type Domain struct {
	values []string // named values, then further integers, then "any other"
}

// Mask is a set of members of a [Domain]. Masks of one domain have equal length.
type Mask []uint64

// NewDomain returns the domain of the requirements, which are all on one key,
// and of further values that the key may have.
func NewDomain(reqs []Requirement, more ...string) Domain {
	named := slices.Clone(more)
	var points []int64
	bounded := false
	for _, r := range reqs {
		switch r.Op {
		case In, NotIn:
			named = append(named, r.Values...)
		default:
			if n, ok := r.bound(); ok {
				points = append(points, n)
				bounded = true
			}
		}
	}
	slices.SortFunc(named, compareValues)
	named = slices.Compact(named)
	d := Domain{values: slices.Clip(named)}
	if bounded {
		for _, v := range named {
			if n, err := strconv.ParseInt(v, 10, 64); err == nil {
				points = append(points, n)
			}
		}
		for _, n := range withGaps(points) {
			if v := strconv.FormatInt(n, 10); !slices.Contains(named, v) {
				d.values = append(d.values, v)
			}
		}
	}
	d.values = append(d.values, anyOther(named))
	return d
}

// withGaps returns the points, one integer for each gap between them, one below
// and one above. Negative numbers are left out, since they are not label values.
func withGaps(points []int64) []int64 {
	slices.Sort(points)
	points = slices.Compact(points)
	var out []int64
	if first := points[0]; first > 0 {
		out = append(out, first-1)
	}
	for _, p := range points {
		if p < math.MaxInt64 {
			out = append(out, p, p+1)
		}
	}
	out = append(out, 0, points[len(points)-1])
	slices.Sort(out)
	out = slices.Compact(out)
	negative, _ := slices.BinarySearch(out, 0)
	return out[negative:]
}

// compareValues orders integers by number and before words, words by letter.
func compareValues(a, b string) int {
	x, errX := strconv.ParseInt(a, 10, 64)
	y, errY := strconv.ParseInt(b, 10, 64)
	switch {
	case errX == nil && errY == nil:
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(a, b))
	case errX == nil:
		return -1
	case errY == nil:
		return 1
	}
	return cmp.Compare(a, b)
}

// anyOther returns a word that stands for all values that are not named.
func anyOther(named []string) string {
	word := "any"
	for i := 2; slices.Contains(named, word); i++ {
		word = fmt.Sprintf("any-%d", i)
	}
	return word
}

// Members is the number of members, "absent" included.
func (d Domain) Members() int { return len(d.values) + 1 }

// Words is the length of the domain's masks.
func (d Domain) Words() int { return (d.Members() + 63) / 64 }

// Mask returns the members on which all requirements hold. Without
// requirements it is every member.
func (d Domain) Mask(reqs ...Requirement) Mask {
	m := make(Mask, d.Words())
	for i := range d.Members() {
		value, present := d.member(i)
		if !slices.ContainsFunc(reqs, func(r Requirement) bool { return !r.Allows(value, present) }) {
			m[i/64] |= 1 << (i % 64)
		}
	}
	return m
}

func (d Domain) member(i int) (value string, present bool) {
	if i == len(d.values) {
		return "", false
	}
	return d.values[i], true
}

// Absent returns the mask that holds "absent" alone.
func (d Domain) Absent() Mask { return d.Mask(Requirement{Op: DoesNotExist}) }

// Value decides what a label gets whose value may be any member of the mask:
// nothing if it may be absent, else the smallest value that somebody named,
// else an integer in a gap, else a fixed word. ok is false for an empty mask.
func (d Domain) Value(m Mask) (value string, present, ok bool) {
	if last := len(d.values); m.Has(last) {
		return "", false, true
	}
	for w, word := range m {
		if word != 0 {
			value, _ := d.member(w*64 + bits.TrailingZeros64(word))
			return value, true, true
		}
	}
	return "", false, false
}

// Values lists the values in the mask, the representatives of gaps and of "any
// other" among them.
func (d Domain) Values(m Mask) []string {
	var out []string
	for i, v := range d.values {
		if m.Has(i) {
			out = append(out, v)
		}
	}
	return out
}

// Has reports whether member i is in the mask.
func (m Mask) Has(i int) bool { return i/64 < len(m) && m[i/64]>>(i%64)&1 == 1 }

// Empty reports whether no member is left.
func (m Mask) Empty() bool {
	for _, w := range m {
		if w != 0 {
			return false
		}
	}
	return true
}

// And returns the intersection of two masks of one domain.
func (m Mask) And(o Mask) Mask {
	out := slices.Clone(m)
	for i := range out {
		out[i] &= o[i]
	}
	return out
}

// Meets reports whether two masks of one domain have a member in common.
func (m Mask) Meets(o Mask) bool {
	for i := range m {
		if m[i]&o[i] != 0 {
			return true
		}
	}
	return false
}

// Satisfiable reports whether some label value, or its absence, satisfies all
// requirements, which are on one key. The same holds for every key alone, so a
// list on several keys is satisfiable if each key is.
func Satisfiable(reqs ...Requirement) bool { return !NewDomain(reqs).Mask(reqs...).Empty() }
