package label

import (
	"fmt"
	"strings"
	"testing"
)

func TestRestricted(t *testing.T) {
	for key, free := range map[string]bool{
		"kubernetes.io/foo": false, "karpenter.sh/foo": false, "karpenter.k8s.aws/foo": false,
		"kubernetes.io/hostname": false, "karpenter.sh/emptiness-timestamp": false, "sub.k8s.io/a": false,
		"node.kubernetes.io/foo": true, "kops.k8s.io/instancegroup": true, "foo.com/bar": true,
		"node-restriction.kubernetes.io/team": true, "my-k8s.io/a": true, "notkarpenter.sh/a": true,
		"env": true, "eks.amazonaws.com/nodegroup": true,
		"failure-domain.beta.kubernetes.io/zone": true, "karpenter.k8s.aws/instance-family": true,
	} {
		if err := Restricted(key); (err == nil) != free {
			t.Errorf("Restricted(%q) = %v, want free = %v", key, err, free)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		r    Requirement
		want string // part of the message; empty: valid
	}{
		{Requirement{Key: "a", Op: In, Values: []string{"x"}}, ""},
		{Requirement{Key: "a", Op: NotIn}, ""},
		{Requirement{Key: "a", Op: Exists, Values: []string{"ignored"}}, ""},
		{Requirement{Key: "failure-domain.beta.kubernetes.io/zone", Op: In, Values: []string{"x"}}, ""},
		{Requirement{Key: "a", Op: In}, "at least one"},
		{Requirement{Key: "a", Op: In, Values: []string{"x"}, MinValues: 2}, "minValues"},
		{Requirement{Key: "a", Op: "Like", Values: []string{"x"}}, `unknown operator "Like"`},
		{Requirement{Key: "a", Op: Gt, Values: []string{"-1"}}, "label value"},
		{Requirement{Key: "a", Op: Gt, Values: []string{"1", "2"}}, "exactly one"},
		{Requirement{Key: "a", Op: Lt, Values: []string{"a"}}, "integer"},
		{Requirement{Key: "a b", Op: Exists}, "label key"},
		{Requirement{Key: "A.com/b/c", Op: Exists}, "label key"},
		{Requirement{Key: "a", Op: In, Values: []string{"-x"}}, "label value"},
		{Requirement{Key: strings.Repeat("k", 64), Op: Exists}, "label key"},
	} {
		err := Validate(c.r)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("Validate(%v) = %v, want %q", c.r, err, c.want)
		}
	}
}

func TestHint(t *testing.T) {
	known := append(WellKnownKeys(), "intent", "example.com/team")
	for key, want := range map[string]string{
		"zone": Zone, "intents": "intent", "intnet": "", "example.com/teem": "example.com/team",
		"nonsense": "", "kubernetes.io/archs": Arch,
	} {
		if got := Hint(key, known); got != want {
			t.Errorf("Hint(%q) = %q, want %q", key, got, want)
		}
	}
}

func TestMatches(t *testing.T) {
	labels := map[string]string{"n": "5", "w": "word", Zone: "a"}
	for text, want := range map[string]bool{
		"n In 5": true, "n NotIn 5": false, "x NotIn 5": true, "x DoesNotExist": true, "n Exists": true, "x Exists": false,
		"n Gt 4": true, "n Gt 5": false, "n Gte 5": true, "n Lt 5": false, "n Lte 5": true, "w Gt 1": false, "x Lt 9": false,
		"n Gt x": false, "failure-domain.beta.kubernetes.io/zone In a": true,
	} {
		f := strings.Fields(text)
		r := Requirement{Key: f[0], Op: Op(f[1]), Values: f[2:]}
		if got := Matches([]Requirement{r}, labels); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

func TestValueOfLabel(t *testing.T) {
	for _, c := range []struct{ reqs, want string }{
		{"Exists", "any"},
		{"Exists; NotIn any", "any-2"},
		{"In b a", "a"},
		{"In 10 9", "9"},
		{"Gt 3; Lt 6", "4"},
		{"Gt 1; Lt 2", "impossible"},
		{"Gt 3; NotIn 4", "5"},
		{"NotIn a", "absent"},
		{"DoesNotExist", "absent"},
		{"In a; DoesNotExist", "impossible"},
		{"Gt 9223372036854775807", "impossible"},
		{"Lt 0", "impossible"},
		{"Lt 1", "0"},
	} {
		reqs := parse(c.reqs)
		d := NewDomain(reqs)
		value, present, ok := d.Value(d.Mask(reqs...))
		switch {
		case !ok:
			value = "impossible"
		case !present:
			value = "absent"
		}
		if value != c.want {
			t.Errorf("%s: %s, want %s", c.reqs, value, c.want)
		}
	}
}

func parse(text string) []Requirement {
	var out []Requirement
	for part := range strings.SplitSeq(text, ";") {
		f := strings.Fields(part)
		out = append(out, Requirement{Key: "k", Op: Op(f[0]), Values: f[1:]})
	}
	return out
}

// FuzzAlgebra holds masks against brute force over many label values: an
// intersection is empty exactly if no value satisfies all requirements, and the
// value that is decided satisfies them.
func FuzzAlgebra(f *testing.F) {
	for _, seed := range []string{
		"\x00\x01\x02", "\x04\x01\x05\x02", "\x04\x01\x05\x03\x01\x02", "\x02\x01\x05\x06", "\x03\x00\x01\x07",
		"\x06\x07\x07\x07\x01\x07", "\x04\x00\x05\x09\x01\x35", "\x04\x08", "\x05\x00\x01\x00", "\x00\x0f\x01\x0f\x02\x00",
	} {
		f.Add([]byte(seed))
	}
	ops := []Op{In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte}
	words := []string{"0", "1", "2", "3", "5", "9", "10", "007", "a", "b", "any", "any-2", "", "9223372036854775807", "x", "4"}
	candidates := append([]string{"zz", "any-3", "9223372036854775806"}, words...)
	for i := range 20 {
		candidates = append(candidates, fmt.Sprint(i))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var reqs []Requirement
		for i := 0; i+1 < len(data) && len(reqs) < 6; i += 2 {
			r := Requirement{Key: "k", Op: ops[data[i]%8]}
			if b := data[i+1]; r.Op != Exists && r.Op != DoesNotExist {
				r.Values = []string{words[b%16]}
				if r.Op == In || r.Op == NotIn {
					r.Values = append(r.Values, words[b/16])
				}
			}
			reqs = append(reqs, r)
		}
		all := func(v string, present bool) bool {
			for _, r := range reqs {
				if !r.Allows(v, present) {
					return false
				}
			}
			return true
		}
		possible := all("", false)
		for _, v := range candidates {
			possible = possible || all(v, true)
		}
		d := NewDomain(reqs)
		mask := d.Mask()
		for _, r := range reqs {
			mask = mask.And(d.Mask(r))
		}
		value, present, ok := d.Value(mask)
		if ok != possible || mask.Empty() == possible || Satisfiable(reqs...) != possible {
			t.Fatalf("%v: satisfiable %v, brute force %v", reqs, ok, possible)
		}
		if ok && !all(value, present) {
			t.Fatalf("%v: decided %q (present %v), which does not satisfy them", reqs, value, present)
		}
		if !mask.Meets(d.Mask()) == ok {
			t.Fatalf("%v: Meets disagrees", reqs)
		}
	})
}
