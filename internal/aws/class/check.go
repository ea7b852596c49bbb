package class

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/internal/cloud"
	"karpenter/internal/core/world"
)

// problem is one thing that is wrong with a class. The field is a path below
// the spec.
type problem struct{ field, text string }

// bad makes one error of all problems, or none.
func bad(ref world.ClassRef, problems []problem) error {
	if len(problems) == 0 {
		return nil
	}
	at, text := prefix(ref), problems[0].text
	for _, p := range problems[1:] {
		text += "; " + at + p.field + ": " + p.text
	}
	return &cloud.BadClassError{Class: ref, Field: at + problems[0].field, Problem: text}
}

// checkTags: how many a machine may have is known only together with ours.
func checkTags(tags map[string]string) []problem {
	var out []problem
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		switch {
		case k == "":
			out = append(out, problem{"tags", "a key is empty: every tag needs a key"})
		case utf8.RuneCountInString(k) > 128 || utf8.RuneCountInString(tags[k]) > 256:
			out = append(out, problem{"tags", fmt.Sprintf("%q is too long: EC2 takes 128 characters in a key and 256 in a value", k)})
		case strings.HasPrefix(strings.ToLower(k), "aws:"):
			out = append(out, problem{"tags", fmt.Sprintf("%q cannot be set: keys that begin with aws: are for AWS only", k)})
		}
	}
	return out
}

// readMetadata returns the options with the given ones where the object is
// silent.
func readMetadata(m *awsv1.MetadataOptions, silent Metadata) (Metadata, []problem) {
	if m == nil {
		return silent, nil
	}
	out := silent
	var problems []problem
	for _, f := range []struct {
		name    string
		value   *string
		into    *string
		allowed []string
	}{
		{"httpEndpoint", m.HTTPEndpoint, &out.Endpoint, []string{"enabled", "disabled"}},
		{"httpProtocolIPv6", m.HTTPProtocolIPv6, &out.IPv6, []string{"enabled", "disabled"}},
		{"httpTokens", m.HTTPTokens, &out.Tokens, []string{"optional", "required"}},
	} {
		switch {
		case f.value == nil:
		case !slices.Contains(f.allowed, *f.value):
			problems = append(problems, problem{"metadataOptions." + f.name, fmt.Sprintf("must be %s, not %q", strings.Join(f.allowed, " or "), *f.value)})
		default:
			*f.into = *f.value
		}
	}
	if n := m.HTTPPutResponseHopLimit; n != nil {
		if out.HopLimit = *n; *n < 1 || *n > 64 {
			problems = append(problems, problem{"metadataOptions.httpPutResponseHopLimit", fmt.Sprintf("must be between 1 and 64, not %d", *n)})
		}
	}
	return out, problems
}

func value[T any](p *T) T {
	if p == nil {
		var none T
		return none
	}
	return *p
}
