package label

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var (
	namePattern   = regexp.MustCompile(`^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)$`)
	prefixPattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
)

// ValidateKey checks that the key is a qualified name: at most 63 letters,
// digits, '-', '_' and '.', with an optional DNS domain and '/' before them.
func ValidateKey(key string) error {
	prefix, name, found := strings.Cut(key, "/")
	if !found {
		prefix, name = "", key
	} else if len(prefix) > 253 || !prefixPattern.MatchString(prefix) {
		return fmt.Errorf("label key %q: the part before '/' must be a DNS domain in lower case", key)
	}
	if len(name) > 63 || !namePattern.MatchString(name) {
		return fmt.Errorf("label key %q: the name must be 1 to 63 letters, digits, '-', '_' or '.', and begin and end with a letter or digit", key)
	}
	return nil
}

// ValidateValue checks that the text may be the value of a label; the empty
// text may.
func ValidateValue(value string) error {
	if value != "" && (len(value) > 63 || !namePattern.MatchString(value)) {
		return fmt.Errorf("label value %q: at most 63 letters, digits, '-', '_' or '.', beginning and ending with a letter or digit", value)
	}
	return nil
}

// Validate checks that a requirement is well formed: its key, its operator and
// the number and form of its values. Whether the key may be used on a pool is
// not asked (see [Restricted]).
func Validate(r Requirement) error {
	if err := ValidateKey(Normalize(r.Key)); err != nil {
		return err
	}
	for _, v := range r.Values {
		if err := ValidateValue(v); err != nil {
			return fmt.Errorf("requirement on %q: %w", r.Key, err)
		}
	}
	switch r.Op {
	case In:
		if len(r.Values) == 0 {
			return fmt.Errorf("requirement on %q: operator In needs at least one value", r.Key)
		}
		if r.MinValues > len(r.Values) {
			return fmt.Errorf("requirement on %q: minValues is %d, but only %d values are listed", r.Key, r.MinValues, len(r.Values))
		}
	case Gt, Lt, Gte, Lte:
		if len(r.Values) != 1 {
			return fmt.Errorf("requirement on %q: operator %s needs exactly one value, got %d", r.Key, r.Op, len(r.Values))
		}
		if n, err := strconv.ParseInt(r.Values[0], 10, 64); err != nil || n < 0 {
			return fmt.Errorf("requirement on %q: operator %s needs an integer ≥ 0, got %q", r.Key, r.Op, r.Values[0])
		}
	case NotIn, Exists, DoesNotExist:
	default:
		return fmt.Errorf("requirement on %q: unknown operator %q, use In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte or Lte", r.Key, r.Op)
	}
	return nil
}
