// Package charts_test renders the charts with Helm's own engine and holds what
// comes out against golden files, the settings of the process and the CRDs.
//
// testdata/workshop.yaml is what the workshop installs; the lab runs the
// controller under the rules in it. `go -C charts test ./... -update` writes
// the golden files anew.
package charts_test

import (
	"bytes"
	"cmp"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	chartutil "helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files")

// object is a rendered Kubernetes object.
type object map[string]any

// at walks along keys and indexes; nil if there is nothing.
func (o object) at(path ...any) any {
	var now any = map[string]any(o)
	for _, step := range path {
		switch s := step.(type) {
		case string:
			m, _ := now.(map[string]any)
			now = m[s]
		case int:
			l, _ := now.([]any)
			if s >= len(l) {
				return nil
			}
			now = l[s]
		}
	}
	return now
}

func (o object) text(path ...any) string {
	s, _ := o.at(path...).(string)
	return s
}

// rendered are the objects of a chart, and its notes.
type rendered struct {
	objects []object
	notes   string
}

// one returns the only object of that kind and name.
func (r rendered) one(t *testing.T, kind, name string) object {
	t.Helper()
	for _, o := range r.objects {
		if o["kind"] == kind && o.text("metadata", "name") == name {
			return o
		}
	}
	t.Fatalf("no %s %q was rendered", kind, name)
	return nil
}

// env returns the variables of the controller that have a plain value.
func (r rendered) env(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	list, _ := r.one(t, "Deployment", "karpenter").at("spec", "template", "spec", "containers", 0, "env").([]any)
	for _, e := range list {
		v := object(e.(map[string]any))
		if value, ok := v["value"].(string); ok {
			out[v.text("name")] = value
		}
	}
	return out
}

// render renders a chart of this folder as release karpenter in namespace
// karpenter.
func render(t *testing.T, name, values string) (rendered, error) {
	t.Helper()
	return renderAs(t, name, "karpenter", values)
}

func renderAs(t *testing.T, name, release, values string) (rendered, error) {
	t.Helper()
	chart, err := loader.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]any{}
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		t.Fatal(err)
	}
	version, err := common.ParseKubeVersion("v1.37.2")
	if err != nil {
		t.Fatal(err)
	}
	caps := common.DefaultCapabilities.Copy()
	caps.KubeVersion = *version
	all, err := chartutil.ToRenderValues(chart, given, common.ReleaseOptions{Name: release, Namespace: "karpenter", Revision: 1, IsInstall: true}, caps)
	if err != nil {
		return rendered{}, err
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return rendered{}, err
	}
	var out rendered
	for path, text := range files {
		if strings.HasSuffix(path, "NOTES.txt") {
			out.notes = text
			continue
		}
		for _, document := range strings.Split("\n"+text, "\n---") {
			o := object{}
			if err := yaml.UnmarshalStrict([]byte(document), &o); err != nil {
				t.Fatalf("%s: %v\n%s", path, err, document)
			}
			if len(o) > 0 {
				out.objects = append(out.objects, o)
			}
		}
	}
	slices.SortFunc(out.objects, func(a, b object) int {
		return cmp.Or(cmp.Compare(a.text("kind"), b.text("kind")), cmp.Compare(a.text("metadata", "namespace"), b.text("metadata", "namespace")),
			cmp.Compare(a.text("metadata", "name"), b.text("metadata", "name")))
	})
	return out, nil
}

func mustRender(t *testing.T, values string) rendered {
	t.Helper()
	r, err := render(t, "karpenter", values)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// golden compares the objects with a file.
func golden(t *testing.T, file string, r rendered) {
	t.Helper()
	var text bytes.Buffer
	for _, o := range r.objects {
		document, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString("---\n")
		text.Write(document)
	}
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, text.Bytes()) {
		t.Errorf("%s is not what the chart renders: run go -C charts test ./... -update and look at the difference", path)
	}
}
