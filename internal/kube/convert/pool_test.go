package convert

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"karpenter/api/v1alpha5"
	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

func provisioner(t *testing.T, spec string) *v1alpha5.Provisioner {
	t.Helper()
	p := &v1alpha5.Provisioner{}
	if err := yaml.UnmarshalStrict([]byte("{metadata: {name: test, uid: u}, spec: "+spec+"}"), p); err != nil {
		t.Fatal(err)
	}
	return p
}

func pool(t *testing.T, spec string) world.Pool {
	t.Helper()
	out, err := Pool(provisioner(t, spec))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPool(t *testing.T) {
	p := provisioner(t, `
{providerRef: {name: default},
  weight: 7,
  labels: {env: prod},
  annotations: {a: b},
  taints: [{key: team, value: red, effect: NoSchedule}, {key: none, effect: ""}],
  startupTaints: [{key: start, effect: NoExecute}],
  requirements: [
  {key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]},
  {key: beta.kubernetes.io/arch, operator: In, values: [arm64]},
  {key: karpenter.k8s.aws/instance-family, operator: Exists, values: [ignored]}],
  ttlSecondsAfterEmpty: 30,
  ttlSecondsUntilExpired: 2592000,
  limits: {resources: {memory: 1000Gi, cpu: 1500m, nvidia.com/gpu: 0}},
  kubeletConfiguration: {maxPods: 20, containerRuntime: containerd, clusterDNS: [10.0.0.10], systemReserved: {cpu: 100m}, evictionHard: {memory.available: 5%}, evictionSoft: {nodefs.available: 10%}, evictionSoftGracePeriod: {nodefs.available: 1m}, evictionMaxPodGracePeriod: 60}}`)
	before := p.DeepCopy()
	got, err := Pool(p)
	if err != nil {
		t.Fatal(err)
	}
	twenty, sixty := int32(20), int32(60)
	want := world.Pool{
		Name: "test", Kind: "Provisioner", UID: "u", Weight: 7,
		Class: world.ClassRef{Group: "karpenter.k8s.aws", Kind: "AWSNodeTemplate", Name: "default"}, Catalog: got.Catalog,
		Labels: map[string]string{"env": "prod", "karpenter.sh/provisioner-name": "test"}, Annotations: map[string]string{"a": "b"},
		Requirements: []label.Requirement{
			{Key: label.CapacityType, Op: label.In, Values: []string{"spot", "on-demand"}},
			{Key: label.Arch, Op: label.In, Values: []string{"arm64"}},
			{Key: "karpenter.k8s.aws/instance-family", Op: label.Exists},
			{Key: label.OS, Op: label.In, Values: []string{"linux"}},
		},
		Taints:        []world.Taint{{Key: "team", Value: "red", Effect: world.NoSchedule}},
		StartupTaints: []world.Taint{{Key: "start", Effect: world.NoExecute}},
		Limits:        []quantity.Amount{{Name: "cpu", Value: 1500}, {Name: "memory", Value: 1000 << 30}, {Name: "nvidia.com/gpu", Value: 0}},
		EmptyAfter:    &world.Duration{Duration: 30 * time.Second}, ExpireAfter: &world.Duration{Duration: 720 * time.Hour},
		Kubelet: world.Kubelet{
			MaxPods: &twenty, ContainerRuntime: "containerd", ClusterDNS: []string{"10.0.0.10"}, SystemReserved: map[string]string{"cpu": "100m"},
			EvictionHard: map[string]string{"memory.available": "5%"}, EvictionSoft: map[string]string{"nodefs.available": "10%"},
			EvictionSoftGracePeriod: map[string]string{"nodefs.available": "1m"}, EvictionMaxPodGraceSeconds: &sixty,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before, p); diff != "" {
		t.Errorf("the object changed: %s", diff)
	}
}

func TestPoolWithInlineProvider(t *testing.T) {
	got := pool(t, `{provider: {subnetSelector: {a: b}, securityGroupSelector: {a: b}}}`)
	want := world.ClassRef{Group: "karpenter.sh", Kind: "Provisioner", Name: "test", Inline: `{"securityGroupSelector":{"a":"b"},"subnetSelector":{"a":"b"}}`}
	if diff := cmp.Diff(want, got.Class); diff != "" {
		t.Error(diff)
	}
}

func TestPoolErrors(t *testing.T) {
	tests := []struct {
		name, spec string
		words      []string
	}{
		{"no class", `{}`, []string{"spec.providerRef.name", "AWSNodeTemplate"}},
		{"class without name", `{providerRef: {kind: AWSNodeTemplate}}`, []string{"spec.providerRef.name"}},
		{"wrong operator", `{providerRef: {name: a}, requirements: [{key: a, operator: Near}]}`, []string{"spec.requirements[0].operator", "Near"}},
		{"unknown field of the provider", `{provider: {subnets: {}}}`, []string{"spec.provider", "subnets"}},
	}
	for _, tt := range tests {
		got, err := Pool(provisioner(t, tt.spec))
		if err == nil {
			t.Errorf("%s: no error", tt.name)
			continue
		}
		for _, w := range append(tt.words, `Provisioner "test"`) {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: error lacks %q: %v", tt.name, w, err)
			}
		}
		if got.Name != "test" || got.Kind != "Provisioner" || got.UID != "u" || got.NotReady == "" || !strings.HasSuffix(err.Error(), `"test": `+got.NotReady) {
			t.Errorf("%s: the pool must be known and not ready: %+v", tt.name, got)
		}
	}
}

func TestCatalogKey(t *testing.T) {
	a := pool(t, `{providerRef: {name: default}, weight: 1}`)
	if a.Catalog != "AWSNodeTemplate/default@"+a.Catalog[len(a.Catalog)-8:] {
		t.Errorf("key %q", a.Catalog)
	}
	if b := pool(t, `{providerRef: {name: default}, weight: 2, taints: [{key: a, effect: NoSchedule}]}`); a.Catalog != b.Catalog {
		t.Error("what does not change the offer changes the key")
	}
	for _, spec := range []string{`{providerRef: {name: other}}`, `{providerRef: {name: default}, kubeletConfiguration: {maxPods: 20}}`, `{provider: {subnetSelector: {a: b}, securityGroupSelector: {a: b}}}`} {
		if b := pool(t, spec); a.Catalog == b.Catalog {
			t.Errorf("%s: has the key of another offer", spec)
		}
	}
	many := `{providerRef: {name: default}, kubeletConfiguration: {systemReserved: {cpu: 1, memory: 1Gi, pid: 10}, kubeReserved: {memory: 2Gi, cpu: 2}}}`
	if x, y := pool(t, many), pool(t, many); x.Catalog != y.Catalog {
		t.Error("equal settings give different keys")
	}
}
