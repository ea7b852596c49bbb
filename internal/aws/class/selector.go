package class

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"karpenter/api/aws/v1alpha1"
)

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

// selector turns a map of tags into filters, sorted by key so that equal maps
// give equal filters. Wildcards inside values are left to EC2.
func (k kind) selector(tags map[string]string, prefix string) (Selector, []problem) {
	sel := Selector{Field: prefix + k.field}
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
			sel.Filters = append(sel.Filters, Filter{k.idFilter, values})
		case tags[key] == "*" && k.keyFilter:
			sel.Filters = append(sel.Filters, Filter{"tag-key", []string{key}})
		default:
			sel.Filters = append(sel.Filters, Filter{"tag:" + key, values})
		}
	}
	return sel, problems
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
