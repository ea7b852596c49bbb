package class

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/api/aws/v1alpha1"
)

// Selector finds EC2 objects: one of its terms must match. Equal meanings give
// equal selectors.
type Selector []Term

// Term holds filters, sorted by name, that must all match.
type Term []Filter

// Filter is a filter of an EC2 Describe call: one of the values must match.
type Filter struct {
	Name   string
	Values []string
}

// Names of filters of images that EC2 does not take as filters.
const (
	// Owner lists owners: account ids, self, amazon.
	Owner = "owner"
	// Parameter lists SSM parameters that hold the id of an image.
	Parameter = "ssm-parameter"
)

// IsZero reports whether nothing is selected.
func (s Selector) IsZero() bool { return len(s) == 0 }

// String writes the selector in words for messages.
func (s Selector) String() string {
	words := make([]string, 0, len(s))
	for _, t := range s {
		words = append(words, t.String())
	}
	return strings.Join(words, ", or ")
}

// String writes the filters in words for messages.
func (t Term) String() string {
	words := make([]string, 0, len(t))
	for _, f := range t {
		words = append(words, f.Name+"="+strings.Join(f.Values, ","))
	}
	return strings.Join(words, " and ")
}

func (t Term) compare(o Term) int {
	return slices.CompareFunc(t, o, func(a, b Filter) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), slices.Compare(a.Values, b.Values))
	})
}

// canonical sorts everything, and joins terms that differ in the values of one
// filter, which saves calls: {a: 1} or {a: 2} is {a: 1 or 2}. In that order the
// values of the last filter are joined first, so that what was one term with
// several values in several filters becomes one again.
func canonical(s Selector) Selector {
	for _, t := range s {
		for i := range t {
			slices.Sort(t[i].Values)
			t[i].Values = slices.Compact(t[i].Values)
		}
		slices.SortFunc(t, func(a, b Filter) int { return cmp.Compare(a.Name, b.Name) })
	}
	slices.SortFunc(s, Term.compare)
	s = slices.CompactFunc(s, func(a, b Term) bool { return a.compare(b) == 0 })
	for joined := true; joined; slices.SortFunc(s, Term.compare) {
		joined = false
		for i := 0; i < len(s) && !joined; i++ {
			for j := i + 1; j < len(s) && !joined; j++ {
				if joined = s[i].join(s[j]); joined {
					s = slices.Delete(s, j, j+1)
				}
			}
		}
	}
	return s
}

// join takes the values of o into t if the two differ in at most one filter.
func (t Term) join(o Term) bool {
	differs := -1
	if len(t) != len(o) {
		return false
	}
	for i := range t {
		switch {
		case t[i].Name != o[i].Name:
			return false
		case slices.Equal(t[i].Values, o[i].Values):
		case differs >= 0:
			return false
		default:
			differs = i
		}
	}
	if differs >= 0 {
		values := slices.Concat(t[differs].Values, o[differs].Values)
		slices.Sort(values)
		t[differs].Values = slices.Compact(values)
	}
	return true
}

// kind is what differs between the selectors of subnets, security groups and
// images.
type kind struct {
	field    string
	idFilter string
	id       *regexp.Regexp
	// keyFilter: a value of * asks for the presence of the tag key (and not for
	// any value of it).
	keyFilter bool
}

var (
	subnets        = kind{"subnetSelector", "subnet-id", regexp.MustCompile(`subnet-[0-9a-z]+`), true}
	securityGroups = kind{"securityGroupSelector", "group-id", regexp.MustCompile(`sg-[0-9a-z]+`), false}
	images         = kind{"amiSelector", "image-id", regexp.MustCompile(`ami-[0-9a-z]+`), false}
)

// tag is the filter for a tag with one of the values.
func (k kind) tag(key string, values ...string) Filter {
	if len(values) == 1 && values[0] == "*" && k.keyFilter {
		return Filter{"tag-key", []string{key}}
	}
	return Filter{"tag:" + key, values}
}

// ofMap reads the selector of an AWSNodeTemplate: a map of tags, whose values
// are lists. Wildcards inside values are left to EC2.
func (k kind) ofMap(tags map[string]string) (Selector, []problem) {
	var term Term
	var problems []problem
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		values := splitList(tags[key])
		switch {
		case key == "":
			problems = append(problems, problem{k.field, "a key is empty: name a tag, or " + v1alpha1.SelectorIDs})
		case len(values) == 0:
			problems = append(problems, problem{k.field + "." + key, `the value is empty: name a value, or "*" for any`})
		case key == v1alpha1.SelectorIDs:
			for _, id := range values {
				if !k.id.MatchString(id) {
					problems = append(problems, problem{k.field + "." + key, fmt.Sprintf("%q is not an id: it must look like %s", id, k.id)})
				}
			}
			term = append(term, Filter{k.idFilter, values})
		default:
			term = append(term, k.tag(key, values...))
		}
	}
	if term == nil {
		return nil, problems
	}
	return canonical(Selector{term}), problems
}

// term is one entry of the lists of an EC2NodeClass.
type term struct {
	tags         awsv1.TagSelector
	id           string
	name         string // of a group, or of an image
	owner        string
	ssmParameter string
}

// defaultOwners keep look-alikes away that others have made public.
var defaultOwners = []string{"amazon", "self"}

// ofTerms reads the terms of an EC2NodeClass.
func (k kind) ofTerms(terms []term, nameFilter string) (Selector, []problem) {
	field := generations[awsv1.Kind].fields[k.field]
	var out Selector
	var problems []problem
	for i, t := range terms {
		var one Term
		for _, key := range slices.Sorted(maps.Keys(t.tags)) {
			if key == "" || t.tags[key] == "" {
				problems = append(problems, problem{fmt.Sprintf("%s[%d].tags", field, i), `neither key nor value may be empty: name a value, or "*" for any`})
			}
			one = append(one, k.tag(key, t.tags[key]))
		}
		for _, f := range []struct{ name, value string }{{k.idFilter, t.id}, {nameFilter, t.name}, {Parameter, t.ssmParameter}} {
			if f.value != "" {
				one = append(one, Filter{f.name, []string{f.value}})
			}
		}
		switch {
		case len(one) == 0:
			problems = append(problems, problem{fmt.Sprintf("%s[%d]", field, i), "selects nothing: name tags or an id"})
			continue
		case t.owner != "":
			one = append(one, Filter{Owner, []string{t.owner}})
		case t.name != "" && k.field == images.field:
			one = append(one, Filter{Owner, slices.Clone(defaultOwners)})
		}
		out = append(out, one)
	}
	return canonical(out), problems
}

// splitList splits at commas and drops blanks and empty entries.
func splitList(s string) []string {
	var out []string
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}
