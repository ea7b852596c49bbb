package charts_test

import (
	"bytes"
	"flag"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"karpenter/internal/settings"
)

func file(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestGolden(t *testing.T) {
	golden(t, "workshop.yaml", mustRender(t, file(t, "testdata/workshop-values.yaml")))
	golden(t, "all.yaml", mustRender(t, file(t, "testdata/all-values.yaml")))
}

// TestAllValuesAreAll: testdata/all-values.yaml names every value of the chart,
// and gives each another value than its default.
func TestAllValuesAreAll(t *testing.T) {
	var defaults, all map[string]any
	for path, into := range map[string]*map[string]any{"karpenter/values.yaml": &defaults, "testdata/all-values.yaml": &all} {
		if err := yaml.Unmarshal([]byte(file(t, path)), into); err != nil {
			t.Fatal(err)
		}
	}
	// Kubernetes' own structures are one value each.
	whole := []string{"affinity", "controller.resources", "nodeSelector", "podSecurityContext", "strategy"}
	var compare func(path string, a, b map[string]any)
	compare = func(path string, a, b map[string]any) {
		for key, value := range a {
			inner, isMap := value.(map[string]any)
			other, there := b[key]
			switch {
			case !there:
				t.Errorf("testdata/all-values.yaml does not set %s%s", path, key)
			case isMap && len(inner) > 0 && !slices.Contains(whole, path+key):
				o, _ := other.(map[string]any)
				compare(path+key+".", inner, o)
			case reflect.DeepEqual(value, other) && value != true:
				t.Errorf("testdata/all-values.yaml sets %s%s to its default", path, key)
			}
		}
	}
	compare("", defaults, all)
}

func TestTyposAreRefusedByName(t *testing.T) {
	for _, c := range []struct{ values, want string }{
		{"replica: 3", "replica"},
		{"settings: {clusterNam: x}", "clusterNam"},
		{"settings: {aws: {interuptionQueueName: x}}", "interuptionQueueName"},
		{"settings: {featureGates: {spotToSpot: true}}", "spotToSpot"},
		{"controller: {resource: {}}", "resource"},
		{"serviceAccount: {annotation: {}}", "annotation"},
		{"logLevel: loud", "logLevel"},
		{"settings: {batchMaxDuration: ten}", "batchMaxDuration"},
		{"settings: {vmMemoryOverheadPercent: -1}", "vmMemoryOverheadPercent"},
		{"settings: {clusterEndpoint: example.com}", "clusterEndpoint"},
		{"settings: {tags: {example.com/cost: x}}", "example.com/cost"}, // no key of a ConfigMap
	} {
		if _, err := render(t, "karpenter", c.values); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that names %q", c.values, err, c.want)
		}
	}
}

func TestDefaultProvisionerDoesNothingAndSaysSo(t *testing.T) {
	plain := mustRender(t, "settings: {clusterName: x}")
	for _, v := range []string{"false", "true"} {
		got := mustRender(t, "settings: {clusterName: x}\ndefaultProvisioner: {create: "+v+"}")
		if !reflect.DeepEqual(got.objects, plain.objects) {
			t.Errorf("defaultProvisioner.create=%s changes what is installed", v)
		}
		if !strings.Contains(got.notes, "defaultProvisioner.create does nothing") {
			t.Errorf("the notes do not say that defaultProvisioner.create=%s does nothing:\n%s", v, got.notes)
		}
	}
	if strings.Contains(plain.notes, "defaultProvisioner") || strings.Contains(plain.notes, "clusterName") {
		t.Errorf("notes about what nobody set:\n%s", plain.notes)
	}
	if notes := mustRender(t, "").notes; !strings.Contains(notes, "settings.clusterName is not set") {
		t.Errorf("the notes do not say that clusterName is missing:\n%s", notes)
	}
}

// TestContainerIsHarmless: whatever is set, the controller has no rights on its
// machine, unless they are given by name.
func TestContainerIsHarmless(t *testing.T) {
	for _, values := range []string{"", file(t, "testdata/all-values.yaml")} {
		r := mustRender(t, values)
		var d object
		for _, o := range r.objects {
			if o["kind"] == "Deployment" {
				d = o
			}
		}
		c := object(d.at("spec", "template", "spec", "containers", 0).(map[string]any))
		if c.text("name") != "controller" {
			t.Errorf("the first container is %q", c.text("name"))
		}
		for path, want := range map[string]any{
			"runAsNonRoot": true, "readOnlyRootFilesystem": true, "allowPrivilegeEscalation": false,
			"capabilities": map[string]any{"drop": []any{"ALL"}}, "seccompProfile": map[string]any{"type": "RuntimeDefault"},
		} {
			if got := c.at("securityContext", path); !reflect.DeepEqual(got, want) {
				t.Errorf("securityContext.%s = %v, want %v", path, got, want)
			}
		}
	}
}

// TestNames of objects follow the release.
func TestNames(t *testing.T) {
	for release, want := range map[string]string{"karpenter": "karpenter", "my-karpenter": "my-karpenter", "scaler": "scaler-karpenter"} {
		r, err := renderAs(t, "karpenter", release, "")
		if err != nil {
			t.Fatal(err)
		}
		d := r.one(t, "Deployment", want)
		if got := d.text("spec", "template", "spec", "serviceAccountName"); got != want {
			t.Errorf("release %s: service account %q, want %q", release, got, want)
		}
		r.one(t, "ClusterRoleBinding", want+"-core")
	}
}

// TestKeepsOffItsOwnMachines of both generations, and its replicas apart.
func TestKeepsOffItsOwnMachines(t *testing.T) {
	d := mustRender(t, "").one(t, "Deployment", "karpenter")
	terms := d.at("spec", "template", "spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms").([]any)
	if len(terms) != 1 {
		t.Fatalf("%d terms: only one of them would have to hold", len(terms))
	}
	want := []any{
		map[string]any{"key": "karpenter.sh/nodepool", "operator": "DoesNotExist"},
		map[string]any{"key": "karpenter.sh/provisioner-name", "operator": "DoesNotExist"},
	}
	if got := terms[0].(map[string]any)["matchExpressions"]; !reflect.DeepEqual(got, want) {
		t.Errorf("node affinity %v", got)
	}
	selector := d.at("spec", "selector", "matchLabels")
	for _, path := range [][]any{
		{"affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution", 0, "labelSelector", "matchLabels"},
		{"topologySpreadConstraints", 0, "labelSelector", "matchLabels"},
	} {
		if got := d.at(append([]any{"spec", "template", "spec"}, path...)...); !reflect.DeepEqual(got, selector) {
			t.Errorf("%v: selector %v, want %v", path, got, selector)
		}
	}
}

// later are variables of the v1 chart that the process does not read yet; they
// have no effect.
var later = []string{
	"AWS_FEATURE_GATES", "CPU_REQUESTS", "DISABLE_CLUSTER_STATE_OBSERVABILITY", "ENABLE_ZONAL_SHIFT",
	"IGNORE_DRA_REQUESTS", "LOG_ERROR_OUTPUT_PATHS", "LOG_OUTPUT_PATHS",
}

// TestProcessUnderstandsItsEnvironment: every variable of the container is read
// by the process, and holds a value that it accepts.
func TestProcessUnderstandsItsEnvironment(t *testing.T) {
	all := strings.Replace(file(t, "testdata/all-values.yaml"), "fullnameOverride: node-scaler", "", 1)
	all = strings.Replace(all, "nameOverride: scaler", "", 1)
	all = strings.Replace(all, "settingsConfigMap: {create: true}", "", 1)
	all = strings.Replace(all, "  tags: {team: a}", "", 1)
	all = strings.Replace(all, "    tags: {team: b, cost-centre: c}", "", 1)
	for _, values := range []string{file(t, "testdata/workshop-values.yaml"), all} {
		env := mustRender(t, values).env(t)
		asked := map[string]bool{}
		fs := flag.NewFlagSet("karpenter", flag.ContinueOnError)
		fs.SetOutput(io.Discard)
		_, s, err := settings.Parse(fs, nil, func(name string) (string, bool) {
			asked[name] = true
			v, ok := env[name]
			return v, ok
		})
		if err != nil {
			t.Errorf("the process refuses its environment: %v", err)
		}
		if err := s.Validate(); err != nil {
			t.Error(err)
		}
		for _, name := range slices.Sorted(maps.Keys(env)) {
			if !asked[name] && !slices.Contains(later, name) {
				t.Errorf("the process does not read %s", name)
			}
		}
	}
}

// TestSettingsAreTheSameByEitherWay: in the environment or in the ConfigMap.
func TestSettingsAreTheSameByEitherWay(t *testing.T) {
	values := "settings: {clusterName: green, vmMemoryOverheadPercent: 0.05, packing: {tieTolerance: 0.02}, featureGates: {driftEnabled: true}, aws: {interruptionQueueName: q, enablePodENI: true}}\n"
	env := mustRender(t, values).env(t)
	fs := flag.NewFlagSet("karpenter", flag.ContinueOnError)
	_, fromEnv, err := settings.Parse(fs, nil, func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	if err != nil {
		t.Fatal(err)
	}
	r := mustRender(t, values+"settingsConfigMap: {create: true}")
	if v, there := r.env(t)["CLUSTER_NAME"]; there {
		t.Errorf("CLUSTER_NAME=%s is in the environment too", v)
	}
	data := map[string]string{}
	for k, v := range r.one(t, "ConfigMap", "karpenter-global-settings").at("data").(map[string]any) {
		data[k] = v.(string)
	}
	fromMap, _, err := settings.Default().Apply(data)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(fromEnv, fromMap) {
		t.Errorf("from the environment %+v\nfrom the ConfigMap %+v", fromEnv, fromMap)
	}
	if fromMap.ClusterName != "green" || fromMap.InterruptionQueue != "q" || !fromMap.EnablePodENI || !fromMap.DriftEnabled {
		t.Errorf("%+v", fromMap)
	}
}

// TestTagsNeedTheConfigMap: there is no variable for them.
func TestTagsNeedTheConfigMap(t *testing.T) {
	r := mustRender(t, "settings: {clusterName: x, aws: {tags: {team: a}}}")
	if got := r.one(t, "ConfigMap", "karpenter-global-settings").text("data", "aws.tags.team"); got != "a" {
		t.Errorf("aws.tags.team = %q", got)
	}
}

func TestImages(t *testing.T) {
	for values, want := range map[string]string{
		"": "public.ecr.aws/karpenter/controller:0.1.0",
		"controller: {image: {repository: r/k, tag: v2}}":                                                   "r/k:v2",
		"controller: {image: {repository: r/k, tag: v2, digest: 'sha256:" + strings.Repeat("a", 64) + "'}}": "r/k@sha256:" + strings.Repeat("a", 64),
		"controller: {image: 'r/k:v3'}":                                                                     "r/k:v3",
	} {
		if got := mustRender(t, values).one(t, "Deployment", "karpenter").text("spec", "template", "spec", "containers", 0, "image"); got != want {
			t.Errorf("%s: image %q, want %q", values, got, want)
		}
	}
}

func TestOneSidecarOrSeveral(t *testing.T) {
	for values, want := range map[string]int{
		"": 1, "controller: {sidecarContainer: {name: a, image: i}}": 2,
		"controller: {sidecarContainer: [{name: a, image: i}, {name: b, image: i}]}": 3,
	} {
		if got := mustRender(t, values).one(t, "Deployment", "karpenter").at("spec", "template", "spec", "containers").([]any); len(got) != want {
			t.Errorf("%q: %d containers, want %d", values, len(got), want)
		}
	}
}

// TestCRDs of the charts are those that are generated from the types.
func TestCRDs(t *testing.T) {
	sources, err := filepath.Glob("../api/crds/*.yaml")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no CRDs: %v", err)
	}
	side, err := render(t, "karpenter-crd", "additionalAnnotations: {example.com/x: 'yes'}")
	if err != nil {
		t.Fatal(err)
	}
	if len(side.objects) != len(sources) {
		t.Errorf("karpenter-crd has %d objects, there are %d CRDs", len(side.objects), len(sources))
	}
	for _, folder := range []string{"karpenter/crds", "karpenter-crd/files"} {
		copies, _ := filepath.Glob(folder + "/*.yaml")
		if len(copies) != len(sources) {
			t.Errorf("%s has %d files, api/crds %d: run make gen", folder, len(copies), len(sources))
		}
	}
	for _, source := range sources {
		text := []byte(file(t, source))
		for _, folder := range []string{"karpenter/crds", "karpenter-crd/files"} {
			if !bytes.Equal(text, []byte(file(t, filepath.Join(folder, filepath.Base(source))))) {
				t.Errorf("%s/%s differs from api/crds: run make gen", folder, filepath.Base(source))
			}
		}
		crd := object{}
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatal(err)
		}
		got := side.one(t, "CustomResourceDefinition", crd.text("metadata", "name"))
		if got.text("metadata", "annotations", "example.com/x") != "yes" {
			t.Errorf("%s does not carry the annotation", crd.text("metadata", "name"))
		}
		delete(got.at("metadata", "annotations").(map[string]any), "example.com/x")
		if !reflect.DeepEqual(got, crd) {
			t.Errorf("karpenter-crd renders another %s", crd.text("metadata", "name"))
		}
	}
}
