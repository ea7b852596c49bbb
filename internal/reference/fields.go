package reference

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"karpenter/api/crds"
)

// fieldPages adds a page for each kind.
func fieldPages(pages map[string]string) error {
	all, err := crds.All()
	if err != nil {
		return err
	}
	for _, crd := range all {
		for i := range crd.Spec.Versions {
			v := &crd.Spec.Versions[i]
			if !v.Served {
				continue
			}
			kind := crd.Spec.Names.Kind
			var b strings.Builder
			fmt.Fprintf(&b, "%s# %s\n\n`apiVersion: %s/%s`. %s\n\n", generated, kind, crd.Spec.Group, v.Name, plain(v.Schema.OpenAPIV3Schema.Description))
			for _, part := range []string{"spec", "status"} {
				schema, ok := v.Schema.OpenAPIV3Schema.Properties[part]
				if !ok {
					continue
				}
				b.WriteString("## " + part + "\n\n")
				rules(&b, &schema)
				var rows [][]string
				walk(part, &schema, true, &rows)
				table(&b, []string{"field", "type", "allowed", "meaning"}, rows)
			}
			pages["reference/"+strings.ToLower(kind)+".md"] = b.String()
		}
	}
	return nil
}

// rules writes what must be true of several fields together.
func rules(b *strings.Builder, s *apiextensionsv1.JSONSchemaProps) {
	for _, r := range s.XValidations {
		if r.Message != "" {
			fmt.Fprintf(b, "* %s\n", plain(r.Message))
		}
	}
	if len(s.XValidations) > 0 {
		b.WriteString("\n")
	}
}

// walk adds a row for each field below s.
func walk(path string, s *apiextensionsv1.JSONSchemaProps, top bool, rows *[][]string) {
	if !top {
		*rows = append(*rows, []string{code(path), kindOf(s), allowed(s), plain(s.Description)})
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		if slices.Contains(s.Required, name) {
			p.Description = strings.TrimSpace("**Required.** " + p.Description)
		}
		walk(path+"."+name, &p, false, rows)
	}
	if s.Items != nil && s.Items.Schema != nil && len(s.Items.Schema.Properties) > 0 {
		walk(path+"[]", s.Items.Schema, true, rows)
	}
	if a := s.AdditionalProperties; a != nil && a.Schema != nil && len(a.Schema.Properties) > 0 {
		walk(path+".*", a.Schema, true, rows)
	}
}

func kindOf(s *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case s.XIntOrString:
		return "number or text"
	case s.Type == "array" && s.Items != nil && s.Items.Schema != nil:
		return "list of " + kindOf(s.Items.Schema)
	case s.Type == "object" && s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return "map to " + kindOf(s.AdditionalProperties.Schema)
	case s.Format != "" && !strings.HasPrefix(s.Format, "int"):
		return s.Type + " (" + s.Format + ")"
	}
	return s.Type
}

// allowed says what values a field may have.
func allowed(s *apiextensionsv1.JSONSchemaProps) string {
	var out []string
	var values []string
	for _, e := range s.Enum {
		values = append(values, strings.Trim(string(e.Raw), `"`))
	}
	if len(values) > 0 {
		out = append(out, code(values...))
	}
	if s.Default != nil {
		out = append(out, "default "+code(strings.Trim(string(s.Default.Raw), `"`)))
	}
	bound := func(word string, v *float64) {
		if v != nil {
			out = append(out, word+" "+strconv.FormatFloat(*v, 'f', -1, 64))
		}
	}
	count := func(word string, v *int64) {
		if v != nil {
			out = append(out, fmt.Sprintf(word, *v))
		}
	}
	bound("≥", s.Minimum)
	bound("≤", s.Maximum)
	count("at least %d", s.MinItems)
	count("at most %d", s.MaxItems)
	count("at least %d long", s.MinLength)
	count("at most %d long", s.MaxLength)
	if s.Pattern != "" {
		out = append(out, "as "+code(s.Pattern))
	}
	for _, r := range s.XValidations {
		if r.Message != "" {
			out = append(out, plain(r.Message))
		}
	}
	return strings.Join(out, "; ")
}

// plain is a text on one line.
func plain(s string) string { return strings.Join(strings.Fields(s), " ") }
