package label

import (
	"slices"
	"strconv"
	"strings"
)

// Allows reports whether the requirement holds on an object whose label has the
// value, or has no such label if present is false. The rules are those of
// kube-scheduler: NotIn and DoesNotExist hold where the label is absent, bounds
// need an integer on both sides.
func (r Requirement) Allows(value string, present bool) bool {
	switch r.Op {
	case In:
		return present && slices.Contains(r.Values, value)
	case NotIn:
		return !present || !slices.Contains(r.Values, value)
	case Exists:
		return present
	case DoesNotExist:
		return !present
	}
	bound, ok := r.bound()
	n, err := strconv.ParseInt(value, 10, 64)
	if !present || !ok || err != nil {
		return false
	}
	switch r.Op {
	case Gt:
		return n > bound
	case Lt:
		return n < bound
	case Gte:
		return n >= bound
	default:
		return n <= bound
	}
}

// bound returns the number of a requirement with one of the four bounds.
func (r Requirement) bound() (int64, bool) {
	switch r.Op {
	case Gt, Lt, Gte, Lte:
		if len(r.Values) == 1 {
			n, err := strconv.ParseInt(r.Values[0], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// String writes the requirement for people, e.g. `zone In [a b]`.
func (r Requirement) String() string {
	switch r.Op {
	case Exists, DoesNotExist:
		return r.Key + " " + string(r.Op)
	case Gt, Lt, Gte, Lte:
		return r.Key + " " + string(r.Op) + " " + strings.Join(r.Values, " ")
	}
	return r.Key + " " + string(r.Op) + " [" + strings.Join(r.Values, " ") + "]"
}

// Matches reports whether all requirements hold on an object with these labels.
func Matches(reqs []Requirement, labels map[string]string) bool {
	_, failed := FirstMismatch(reqs, labels)
	return !failed
}

// FirstMismatch returns the first requirement that does not hold on an object
// with these labels. Keys are compared as written, then by their normal form.
func FirstMismatch(reqs []Requirement, labels map[string]string) (Requirement, bool) {
	for _, r := range reqs {
		value, present := labels[r.Key]
		if !present {
			value, present = labels[Normalize(r.Key)]
		}
		if !r.Allows(value, present) {
			return r, true
		}
	}
	return Requirement{}, false
}

// FromLabels writes labels as In requirements, sorted by key.
func FromLabels(labels map[string]string) []Requirement {
	out := make([]Requirement, 0, len(labels))
	for k, v := range labels {
		out = append(out, Requirement{Key: Normalize(k), Op: In, Values: []string{v}})
	}
	Sort(out)
	return out
}

// Sort puts requirements in a fixed order: by key, operator and values.
func Sort(reqs []Requirement) { slices.SortFunc(reqs, Requirement.Compare) }

// Compare orders requirements by key, operator, values and MinValues.
func (r Requirement) Compare(o Requirement) int {
	if c := strings.Compare(r.Key, o.Key); c != 0 {
		return c
	}
	if c := strings.Compare(string(r.Op), string(o.Op)); c != 0 {
		return c
	}
	if c := slices.Compare(r.Values, o.Values); c != 0 {
		return c
	}
	return r.MinValues - o.MinValues
}
