package convert

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"karpenter/internal/core/quantity"
)

func podSpec(t testing.TB, text string) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{}
	if err := yaml.UnmarshalStrict([]byte(text), p); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRequests(t *testing.T) {
	tests := []struct {
		name, pod, want string
	}{
		{"nothing asked", `spec: {containers: [{name: a}]}`, "pods 1"},
		{"sum of containers", `spec: {containers: [{name: a, resources: {requests: {cpu: 1, memory: 1Gi}}}, {name: b, resources: {requests: {cpu: 500m, nvidia.com/gpu: 1}}}]}`,
			"cpu 1500m, memory 1Gi, pods 1, nvidia.com/gpu 1"},
		{"limit stands in for a request", `spec: {containers: [{name: a, resources: {requests: {cpu: 1}, limits: {cpu: 2, memory: 1Gi}}}]}`, "cpu 1, memory 1Gi, pods 1"},
		{"init container is greater", `spec: {initContainers: [{name: i, resources: {requests: {cpu: 3, memory: 1Mi}}}], containers: [{name: a, resources: {requests: {cpu: 1, memory: 1Gi}}}]}`,
			"cpu 3, memory 1Gi, pods 1"},
		{"init containers run one by one", `spec: {initContainers: [{name: i, resources: {requests: {cpu: 2}}}, {name: j, resources: {requests: {cpu: 2}}}], containers: [{name: a, resources: {requests: {cpu: 1}}}]}`, "cpu 2, pods 1"},
		{"sidecar runs beside containers", `spec: {initContainers: [{name: s, restartPolicy: Always, resources: {requests: {cpu: 1}}}], containers: [{name: a, resources: {requests: {cpu: 1}}}]}`, "cpu 2, pods 1"},
		{"init container beside an earlier sidecar", `spec: {initContainers: [{name: s, restartPolicy: Always, resources: {requests: {cpu: 1}}}, {name: i, resources: {requests: {cpu: 3}}}], containers: [{name: a, resources: {requests: {cpu: 1}}}]}`, "cpu 4, pods 1"},
		{"init container before a later sidecar", `spec: {initContainers: [{name: i, resources: {requests: {cpu: 3}}}, {name: s, restartPolicy: Always, resources: {requests: {cpu: 1}}}], containers: [{name: a, resources: {requests: {cpu: 1}}}]}`, "cpu 3, pods 1"},
		{"overhead of the runtime", `spec: {overhead: {cpu: 250m, memory: 128Mi}, containers: [{name: a, resources: {requests: {cpu: 1}}}]}`, "cpu 1250m, memory 128Mi, pods 1"},
		{"overhead on top of the greatest init container", `spec: {overhead: {cpu: 500m}, initContainers: [{name: i, resources: {requests: {cpu: 3}}}], containers: [{name: a}]}`, "cpu 3500m, pods 1"},
		{"pod level replaces the sum", `spec: {resources: {requests: {cpu: 2}}, containers: [{name: a, resources: {requests: {cpu: 500m, memory: 1Gi}}}, {name: b}]}`, "cpu 2, memory 1Gi, pods 1"},
		{"pod-level limit alone", `spec: {resources: {limits: {cpu: 2, memory: 2Gi}}, containers: [{name: a, resources: {requests: {cpu: 500m}}}]}`, "cpu 500m, memory 2Gi, pods 1"},
		{"pod level and overhead", `spec: {overhead: {cpu: 100m}, resources: {requests: {cpu: 2}}, containers: [{name: a}]}`, "cpu 2100m, pods 1"},
		{"devices are not a matter of the pod level", `spec: {resources: {requests: {nvidia.com/gpu: 8}}, containers: [{name: a, resources: {limits: {nvidia.com/gpu: 1}}}]}`, "pods 1, nvidia.com/gpu 1"},
		{"rounded up", `spec: {containers: [{name: a, resources: {requests: {cpu: 100100u, memory: 1500m}}}]}`, "cpu 101m, memory 2, pods 1"},
		{"growing in place", `{spec: {containers: [{name: a, resources: {requests: {cpu: 2}}}]}, status: {containerStatuses: [{name: a, ready: true, restartCount: 0, image: a, imageID: a, allocatedResources: {cpu: 1}}]}}`, "cpu 2, pods 1"},
		{"shrinking in place", `{spec: {containers: [{name: a, resources: {requests: {cpu: 1}}}]}, status: {containerStatuses: [{name: a, ready: true, restartCount: 0, image: a, imageID: a, resources: {requests: {cpu: 2}}}]}}`, "cpu 2, pods 1"},
		{"growing, which the node cannot", `{spec: {containers: [{name: a, resources: {requests: {cpu: 64}}}]}, status: {conditions: [{type: PodResizePending, status: "True", reason: Infeasible}], containerStatuses: [{name: a, ready: true, restartCount: 0, image: a, imageID: a, allocatedResources: {cpu: 1}, resources: {requests: {cpu: 1}}}]}}`, "cpu 1, pods 1"},
		{"growing later", `{spec: {containers: [{name: a, resources: {requests: {cpu: 2}}}]}, status: {conditions: [{type: PodResizePending, status: "True", reason: Deferred}], containerStatuses: [{name: a, ready: true, restartCount: 0, image: a, imageID: a, allocatedResources: {cpu: 1}}]}}`, "cpu 2, pods 1"},
		{"pod level, shrinking in place", `{spec: {resources: {requests: {cpu: 1}}, containers: [{name: a}]}, status: {allocatedResources: {cpu: 1}, resources: {requests: {cpu: 3}}}}`, "cpu 3, pods 1"},
		{"negative counts as nothing", `spec: {containers: [{name: a, resources: {requests: {cpu: -1}}}]}`, "pods 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Requests(podSpec(t, tt.pod)).String(); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// TestNegativeAmountsAreRefused, as an API server does.
func TestNegativeAmountsAreRefused(t *testing.T) {
	for pod, want := range map[string]string{
		`spec: {containers: [{name: a}, {name: b, resources: {requests: {cpu: -1, memory: -1Gi}}}]}`: "spec.containers[1].resources.requests[cpu]: -1 is less than 0",
		`spec: {initContainers: [{name: a, resources: {limits: {cpu: -1}}}], containers: []}`:        "spec.initContainers[0].resources.limits[cpu]: -1 is less than 0",
		`spec: {resources: {requests: {memory: -1}}, containers: []}`:                                "spec.resources.requests[memory]: -1 is less than 0",
		`spec: {containers: [{name: a, resources: {requests: {cpu: 0}}}]}`:                           "",
	} {
		if got := Pod(podSpec(t, pod)).Refused; !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: got %q, want %q", pod, got, want)
		}
	}
}

func TestResourcesRounding(t *testing.T) {
	tests := []struct {
		name, text string
		down, up   int64
	}{
		{"cpu", "1930m", 1930, 1930},
		{"cpu", "1500100u", 1500, 1501},
		{"cpu", "2", 2000, 2000},
		{"cpu", "-1500100u", -1501, -1500},
		{"memory", "1Gi", 1 << 30, 1 << 30},
		{"memory", "1500m", 1, 2},
		{"memory", "8Ei", most, most},
		{"cpu", "1e30", most, most},
		{"memory", "-8Ei", -most, -most},
		{"nvidia.com/gpu", "2", 2, 2},
	}
	for _, tt := range tests {
		q := resource.MustParse(tt.text)
		for _, up := range []bool{false, true} {
			want := tt.down
			if up {
				want = tt.up
			}
			if got := Resources(corev1.ResourceList{corev1.ResourceName(tt.name): q}, up).Get(tt.name); got != want {
				t.Errorf("%s %s, round up %v: got %d, want %d", tt.name, tt.text, up, got, want)
			}
		}
	}
}

func TestResourceListRoundTrip(t *testing.T) {
	in := quantity.Of(quantity.Amount{Name: "cpu", Value: 1500}, quantity.Amount{Name: "memory", Value: 3 << 30}, quantity.Amount{Name: "ephemeral-storage", Value: 20 << 30},
		quantity.Amount{Name: "pods", Value: 58}, quantity.Amount{Name: "nvidia.com/gpu", Value: 2}, quantity.Amount{Name: "hugepages-2Mi", Value: 4 << 20})
	list := ResourceList(in)
	if got := Resources(list, false); !got.Equal(in) {
		t.Errorf("got %s, want %s", got, in)
	}
	texts := map[string]string{}
	for k, q := range list {
		texts[string(k)] = q.String()
	}
	want := map[string]string{"cpu": "1500m", "memory": "3Gi", "ephemeral-storage": "20Gi", "pods": "58", "nvidia.com/gpu": "2", "hugepages-2Mi": "4Mi"}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Error(diff)
	}
	if ResourceList(quantity.Resources{}) != nil {
		t.Error("nothing should be no list")
	}
}
