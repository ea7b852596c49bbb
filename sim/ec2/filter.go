package ec2

import (
	"cmp"
	"encoding/base64"
	"maps"
	"slices"
	"strings"
)

// Filter narrows a Describe call: any of Values must match; the wildcards *
// and ? may be used.
type Filter struct {
	Name   string
	Values []string `query:"Value"`
}

// wildcard is glob without regard to case.
func wildcard(pattern, value string) bool {
	return glob(strings.ToLower(pattern), strings.ToLower(value))
}

// glob matches a pattern with the wildcards * and ? against a value.
func glob(p, v string) bool {
	star, mark := -1, 0
	i, j := 0, 0
	for j < len(v) {
		switch {
		case i < len(p) && p[i] == '*':
			star, mark = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == v[j]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(p[i:], "*") == ""
}

// attributes says how the filters of one kind of resource read it: by filter
// name. Those on tags are common to all (see selectBy).
type attributes[T any] map[string]func(T) []string

// one lifts a single-valued reader.
func one[T any](f func(T) string) func(T) []string {
	return func(t T) []string { return []string{f(t)} }
}

// selectBy returns the items that pass all filters. tags may be nil for
// resources without tags.
func selectBy[T any](items []T, filters []Filter, attr attributes[T], tags func(T) Tags) ([]T, error) {
	read := make([]func(T) []string, len(filters))
	for i, f := range filters {
		if len(f.Values) == 0 {
			return nil, missing("Filter." + f.Name + ".Value")
		}
		key, isTag := strings.CutPrefix(f.Name, "tag:")
		switch {
		case attr[f.Name] != nil:
			read[i] = attr[f.Name]
		case tags != nil && isTag:
			read[i] = func(t T) []string {
				if v, ok := tags(t)[key]; ok {
					return []string{v}
				}
				return nil
			}
		case tags != nil && f.Name == "tag-key":
			read[i] = func(t T) []string { return slices.Collect(maps.Keys(tags(t))) }
		case tags != nil && f.Name == "tag-value":
			read[i] = func(t T) []string { return slices.Collect(maps.Values(tags(t))) }
		default:
			return nil, errorf("InvalidParameterValue", "The filter '%s' is invalid", f.Name)
		}
	}
	out := []T{}
	for _, item := range items {
		pass := true
		for i := 0; i < len(filters) && pass; i++ {
			pass = slices.ContainsFunc(read[i](item), func(have string) bool {
				return slices.ContainsFunc(filters[i].Values, func(want string) bool { return glob(want, have) })
			})
		}
		if pass {
			out = append(out, item)
		}
	}
	return out, nil
}

// listing is what Describe calls do with the things they show.
type listing[T any] struct {
	items []T
	// named keep only the items that a caller names.
	named      []named[T]
	filters    []Filter
	attributes attributes[T]
	tags       func(T) Tags // nil: the things have none
	// key tells the items apart; they are shown in its order. inOrder: they
	// are in it already.
	key     func(T) string
	inOrder bool
	bounds  bounds
}

// named are names of items that a caller wants; one that is missing fails the
// call with the code.
type named[T any] struct {
	want []string
	name func(T) string
	code string
	kind string
}

// page returns the items that the caller wants, filtered, in order and cut.
func (l listing[T]) page(p Page) (part []T, next string, err error) {
	items := l.items
	for _, n := range l.named {
		if items, err = n.only(items); err != nil {
			return nil, "", err
		}
	}
	if items, err = selectBy(items, l.filters, l.attributes, l.tags); err != nil {
		return nil, "", err
	}
	if !l.inOrder {
		slices.SortFunc(items, l.compare) // selectBy made them a list of their own
	}
	return page(items, p, l.bounds, l.key)
}

func (l listing[T]) compare(a, b T) int { return strings.Compare(l.key(a), l.key(b)) }

func (n named[T]) only(items []T) ([]T, error) {
	if len(n.want) == 0 {
		return items, nil
	}
	out := []T{}
	have := map[string]bool{}
	for _, t := range items {
		if name := n.name(t); slices.Contains(n.want, name) {
			out, have[name] = append(out, t), true
		}
	}
	for _, w := range n.want {
		if !have[w] {
			return nil, errorf(n.code, "The %s '%s' does not exist", n.kind, w)
		}
	}
	return out, nil
}

// each shows the items of a page.
func each[T, Info any](items []T, show func(T) Info) Set[Info] {
	out := make(Set[Info], 0, len(items))
	for _, t := range items {
		out = append(out, show(t))
	}
	return out
}

// pointers to the items of a slice.
func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}

// paged are the bounds of most Describe calls.
var paged = bounds{least: 5, most: 1000}

// Page asks for a part of a long answer.
type Page struct {
	MaxResults *int
	NextToken  string
}

// bounds of MaxResults; size is what is returned when none is given (0:
// everything).
type bounds struct{ least, most, size int }

// page cuts a part out of items, which are sorted by key. The token names the
// last key of the part before, so items that come or go between two pages do
// not shift the others.
func page[T any](items []T, p Page, b bounds, key func(T) string) (part []T, next string, err error) {
	size := cmp.Or(b.size, len(items))
	if p.MaxResults != nil {
		size = *p.MaxResults
		if size < b.least {
			return nil, "", errorf("InvalidParameterValue", "Value ( %d ) for parameter maxResults is invalid. Expecting a value greater than or equal to %d.", size, b.least)
		}
		if size > b.most {
			return nil, "", errorf("InvalidParameterValue", "Value ( %d ) for parameter maxResults is invalid. Expecting a value less than or equal to %d.", size, b.most)
		}
	}
	if p.NextToken != "" {
		after, err := base64.RawURLEncoding.DecodeString(p.NextToken)
		if err != nil {
			return nil, "", errorf("InvalidNextToken", "The specified NextToken is not valid.")
		}
		at, found := slices.BinarySearchFunc(items, string(after), func(t T, k string) int { return strings.Compare(key(t), k) })
		if found {
			at++
		}
		items = items[at:]
	}
	if len(items) <= size {
		return items, "", nil
	}
	return items[:size], base64.RawURLEncoding.EncodeToString([]byte(key(items[size-1]))), nil
}
