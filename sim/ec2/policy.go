package ec2

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Policy is an IAM policy: what a caller may do. What no statement allows is
// refused.
type Policy struct {
	Version   string      `json:"Version"`
	Statement []Statement `json:"Statement"`
}

// Statement allows actions on resources, if all conditions hold. The simulation
// knows the effect Allow, and the conditions StringEquals and StringLike.
type Statement struct {
	ID        string                      `json:"Sid,omitempty"`
	Effect    string                      `json:"Effect"`
	Action    Texts                       `json:"Action"`
	Resource  Texts                       `json:"Resource"`
	Condition map[string]map[string]Texts `json:"Condition,omitempty"`
}

// Texts is a text or a list of texts.
type Texts []string

// UnmarshalJSON reads either.
func (t *Texts) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*t = Texts{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(t))
}

// ParsePolicy reads a policy document and refuses what the simulation would
// ignore.
func ParsePolicy(document string) (*Policy, error) {
	d := json.NewDecoder(strings.NewReader(document))
	d.DisallowUnknownFields()
	p := &Policy{}
	if err := d.Decode(p); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	for i, s := range p.Statement {
		switch {
		case s.Effect != "Allow":
			return nil, fmt.Errorf("policy: statement %d (%s): effect %q is not simulated, only Allow", i, s.ID, s.Effect)
		case len(s.Action) == 0 || len(s.Resource) == 0:
			return nil, fmt.Errorf("policy: statement %d (%s) has no action or no resource", i, s.ID)
		}
		for operator := range s.Condition {
			if operator != "StringEquals" && operator != "StringLike" {
				return nil, fmt.Errorf("policy: statement %d (%s): condition %s is not simulated, only StringEquals and StringLike", i, s.ID, operator)
			}
		}
	}
	return p, nil
}

// allowing is a policy that allows actions on everything; nil allows all.
func allowing(actions []string) *Policy {
	if actions == nil {
		return nil
	}
	return &Policy{Statement: []Statement{{Effect: "Allow", Action: actions, Resource: Texts{"*"}}}}
}

// allows returns the entry (statement and action) that gives a right.
func (p *Policy) allows(a access, context map[string]string) (string, bool) {
	for _, s := range p.Statement {
		i := slices.IndexFunc(s.Action, func(pattern string) bool { return wildcard(pattern, a.action) })
		onThis := a.resource == "" || slices.ContainsFunc(s.Resource, func(pattern string) bool { return glob(pattern, a.resource) })
		if i >= 0 && onThis && s.holds(a.keys, context) {
			return strings.TrimPrefix(s.ID+"/"+s.Action[i], "/"), true
		}
	}
	return "", false
}

// holds reports whether all conditions do. A key that the context lacks makes
// none hold.
func (s *Statement) holds(contexts ...map[string]string) bool {
	for operator, keys := range s.Condition {
		for key, want := range keys {
			have, known := "", false
			for _, c := range contexts {
				if v, ok := c[key]; ok {
					have, known = v, true
				}
			}
			match := func(w string) bool { return w == have }
			if operator == "StringLike" {
				match = func(w string) bool { return glob(w, have) }
			}
			if !known || !slices.ContainsFunc(want, match) {
				return false
			}
		}
	}
	return true
}

// Entries lists what a policy gives: statement and action.
func (p *Policy) Entries() []string {
	var out []string
	for _, s := range p.Statement {
		for _, a := range s.Action {
			out = append(out, strings.TrimPrefix(s.ID+"/"+a, "/"))
		}
	}
	return out
}

// SetPolicy replaces what callers may do; nil allows everything.
func (c *Cloud) SetPolicy(p *Policy) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.policy = p
}

// SetAllow allows only these actions, on everything; nil allows all.
func (c *Cloud) SetAllow(actions []string) { c.SetPolicy(allowing(actions)) }

// UsedRights returns the entries of policies that were needed so far, sorted.
func (c *Cloud) UsedRights() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.used))
}
