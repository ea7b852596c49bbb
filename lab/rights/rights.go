// Package rights holds what somebody may do in a cluster against what they did:
// which requests were refused, and which rules nobody needed.
//
// It reads the rendered objects of a chart and the audit log of the API server.
package rights

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/yaml"
)

// Right is to do one thing to one kind of object.
type Right struct {
	Verb, Group, Resource string // the resource with its subresource: pods/status
	// Namespace is where it holds, empty = everywhere; Name is the only object
	// for which it holds, empty = all.
	Namespace, Name string
}

func (r Right) String() string {
	s := r.Verb + " " + r.Resource
	if r.Group != "" {
		s += "." + r.Group
	}
	if r.Name != "" {
		s += " " + r.Name
	}
	if r.Namespace != "" {
		s += " in " + r.Namespace
	}
	return s
}

// covers reports whether the right was needed for a request.
func (r Right) covers(request Right) bool {
	return r.Verb == request.Verb && r.Group == request.Group && r.Resource == request.Resource &&
		(r.Namespace == "" || r.Namespace == request.Namespace) && (r.Name == "" || r.Name == request.Name)
}

// Requests are what one user asked of an API server.
type Requests struct {
	Done, Refused []Right // each once, in order
}

// FromAudit reads an audit log, one JSON object per line, and returns the
// requests of a user. A last line that is cut off is left out.
func FromAudit(log io.Reader, user string) (Requests, error) {
	done, refused := map[Right]bool{}, map[Right]bool{}
	lines := bufio.NewReader(log)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return Requests{Done: sorted(done), Refused: sorted(refused)}, nil
		}
		if err != nil {
			return Requests{}, err
		}
		var e auditv1.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return Requests{}, fmt.Errorf("audit log: %w in %.80s", err, line)
		}
		if e.User.Username != user || e.ObjectRef == nil {
			continue
		}
		asked := Right{Verb: e.Verb, Group: e.ObjectRef.APIGroup, Resource: e.ObjectRef.Resource, Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name}
		if e.ObjectRef.Subresource != "" {
			asked.Resource += "/" + e.ObjectRef.Subresource
		}
		if e.Annotations["authorization.k8s.io/decision"] == "forbid" {
			refused[asked] = true
		} else {
			done[asked] = true
		}
	}
}

// Granted returns what the roles among the objects, YAML documents, give to a
// service account through their bindings.
func Granted(objects []byte, namespace, account string) ([]Right, error) {
	rules := map[string][]rbacv1.PolicyRule{} // by kind, namespace and name
	type binding struct{ role, namespace string }
	var bindings []binding
	for document := range bytes.SplitSeq(objects, []byte("\n---")) {
		var kind struct{ Kind string }
		if err := yaml.Unmarshal(document, &kind); err != nil {
			return nil, err
		}
		switch kind.Kind {
		case "ClusterRole", "Role":
			var r rbacv1.Role // of the two kinds, the fields that count are the same
			if err := yaml.Unmarshal(document, &r); err != nil {
				return nil, err
			}
			rules[key(kind.Kind, r.Namespace, r.Name)] = r.Rules
		case "ClusterRoleBinding", "RoleBinding":
			var b rbacv1.RoleBinding
			if err := yaml.Unmarshal(document, &b); err != nil {
				return nil, err
			}
			ours := slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool {
				return s.Kind == "ServiceAccount" && s.Name == account && s.Namespace == namespace
			})
			if ours {
				bindings = append(bindings, binding{key(b.RoleRef.Kind, roleNamespace(b), b.RoleRef.Name), b.Namespace})
			}
		}
	}
	found := map[Right]bool{}
	for _, b := range bindings {
		list, ok := rules[b.role]
		if !ok {
			return nil, fmt.Errorf("a binding names the role %s, which is not among the objects", b.role)
		}
		for _, rule := range list {
			for _, r := range expand(rule, b.namespace) {
				found[r] = true
			}
		}
	}
	return sorted(found), nil
}

func key(kind, namespace, name string) string { return kind + "/" + namespace + "/" + name }

func roleNamespace(b rbacv1.RoleBinding) string {
	if b.RoleRef.Kind == "ClusterRole" {
		return ""
	}
	return b.Namespace
}

func expand(rule rbacv1.PolicyRule, namespace string) (out []Right) {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				for _, name := range names {
					out = append(out, Right{verb, group, resource, namespace, name})
				}
			}
		}
	}
	return out
}

// Unused returns the rights that no request needed.
func Unused(granted []Right, r Requests) (out []Right) {
	for _, g := range granted {
		if !slices.ContainsFunc(r.Done, g.covers) {
			out = append(out, g)
		}
	}
	return out
}

func sorted(set map[Right]bool) (out []Right) {
	for r := range set {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b Right) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource), strings.Compare(a.Verb, b.Verb),
			strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return out
}
