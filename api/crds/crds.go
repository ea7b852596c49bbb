// Package crds holds the generated CustomResourceDefinitions of the API.
//
// They come from one run of the generator (tools/gen.sh) over the types of
// api/** and are never edited by hand.
package crds

import (
	"embed"
	"fmt"
	"io/fs"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// Files holds the manifests, one CustomResourceDefinition per file.
//
//go:embed *.yaml
var Files embed.FS

// All returns the CustomResourceDefinitions, sorted by name.
func All() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	names, err := fs.Glob(Files, "*.yaml")
	if err != nil {
		return nil, err
	}
	var out []*apiextensionsv1.CustomResourceDefinition
	for _, name := range names {
		text, err := Files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, crd); err != nil {
			return nil, fmt.Errorf("embedded manifest %s: %w", name, err)
		}
		out = append(out, crd)
	}
	return out, nil
}
