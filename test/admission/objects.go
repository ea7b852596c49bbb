// Package admissiontest holds objects that the API must accept or refuse, one
// file for each kind. Package admission, the rules of the CRDs and a real API
// server are held to the same objects.
//
// It knows the form of the files only, none of the kinds.
package admissiontest

import (
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

//go:embed *.yaml
var files embed.FS

// Object is one object, and what is to be said about it.
type Object struct {
	// Case says what is special about it.
	Case string
	Kind string
	// Fields of the whole object.
	Fields map[string]any
	// Reject are words of the API server's refusal. Condition are words of the
	// condition of an object that the API server takes and the controller does
	// not. Without either it is accepted.
	Reject, Condition []string
}

// Wrong reports whether the object must not be acted on.
func (o Object) Wrong() bool { return len(o.Reject)+len(o.Condition) > 0 }

// YAML returns the object as a manifest.
func (o Object) YAML() []byte {
	text, err := yaml.Marshal(o.Fields)
	if err != nil {
		panic(err) // it was read from YAML
	}
	return text
}

// file is a list of cases of one kind. Each is laid over the base: a key of
// spec is the path of a field, of which the whole value is replaced.
type file struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Base       map[string]any `json:"base"`
	Cases      []struct {
		Case      string         `json:"case"`
		Metadata  map[string]any `json:"metadata"`
		Spec      map[string]any `json:"spec"`
		Without   []string       `json:"without"`
		Reject    []string       `json:"reject"`
		Condition []string       `json:"condition"`
	} `json:"cases"`
}

// All returns the objects, by file and in the order of the file.
func All() ([]Object, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, err
	}
	var out []Object
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var f file
		if err := yaml.UnmarshalStrict(text, &f); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, c := range f.Cases {
			spec := runtime.DeepCopyJSON(f.Base)
			for _, path := range c.Without {
				in, key := parent(spec, path)
				delete(in, key)
			}
			for path, value := range c.Spec {
				in, key := parent(spec, path)
				in[key] = value
			}
			meta := map[string]any{"name": "test"}
			maps.Copy(meta, c.Metadata)
			out = append(out, Object{Case: c.Case, Kind: f.Kind, Reject: c.Reject, Condition: c.Condition,
				Fields: map[string]any{"apiVersion": f.APIVersion, "kind": f.Kind, "metadata": meta, "spec": spec}})
		}
	}
	return out, nil
}

// parent returns the object that holds the field at the path, and its key.
func parent(in map[string]any, path string) (map[string]any, string) {
	head, rest, deeper := strings.Cut(path, ".")
	if !deeper {
		return in, path
	}
	next, ok := in[head].(map[string]any)
	if !ok {
		next = map[string]any{}
		in[head] = next
	}
	return parent(next, rest)
}
