package scenario

import (
	"slices"
	"strings"
	"testing"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

func snapshot(t *testing.T, text string) *world.Snapshot {
	t.Helper()
	m, err := read(t, text)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Skipped) > 0 {
		t.Errorf("skipped: %v", m.Skipped)
	}
	s, err := m.Snapshot(Place{Region: "us-west-2"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStatefulSetsHaveVolumes(t *testing.T) {
	s := snapshot(t, `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  template:
    spec:
      volumes: [{name: data, emptyDir: {}}]
      containers: [{name: c}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {storageClassName: zonal}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: zonal}
provisioner: ebs.csi.aws.com
volumeBindingMode: WaitForFirstConsumer
allowedTopologies: [{matchLabelExpressions: [{key: topology.ebs.csi.aws.com/zone, values: [us-west-2b]}]}]
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv}
spec:
  csi: {driver: ebs.csi.aws.com, volumeHandle: vol-1}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [us-west-2a]}]}]}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data-db-1}
spec: {volumeName: pv}
`)
	for i, want := range []string{"us-west-2b", "us-west-2a"} { // made for db-0, found by db-1
		p := s.Pending[i]
		if len(p.Volumes) != 1 || p.Volumes[0][0].Key != label.Zone || p.Volumes[0][0].Values[0] != want {
			t.Errorf("%s: want its volume in %s, got %v (%s)", p.Name, want, p.Volumes, p.Refused)
		}
		if len(p.Attach) != 1 {
			t.Errorf("%s: want one volume to attach, got %v", p.Name, p.Attach)
		}
	}
}

func TestMissingObjectsAreNamed(t *testing.T) {
	s := snapshot(t, `
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: no-such-class}}}}], containers: [{name: c}]}
`)
	if got := s.Pending[0].Refused; !strings.Contains(got, "no-such-class") {
		t.Errorf("got %q", got)
	}
}

func TestNamespacesNeedNoManifest(t *testing.T) {
	s := snapshot(t, `
apiVersion: v1
kind: Namespace
metadata: {name: red, labels: {team: r}}
---
apiVersion: v1
kind: Pod
metadata: {name: other, namespace: unwritten}
spec: {containers: [{name: c}]}
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: zz}
spec:
  containers: [{name: c, resources: {requests: {cpu: "1"}}}]
  affinity:
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {topologyKey: kubernetes.io/hostname, labelSelector: {}, namespaceSelector: {matchLabels: {team: r}}}
      - {topologyKey: kubernetes.io/hostname, labelSelector: {}, namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: unwritten}}}
`)
	got := s.Pending[0].AntiAffinity
	if len(got) != 2 || !slices.Equal(got[0].Namespaces, []string{"red"}) || !slices.Equal(got[1].Namespaces, []string{"unwritten"}) {
		t.Errorf("got %+v", got)
	}
}

func TestRuntimeClassesAddWhatAdmissionWould(t *testing.T) {
	const class = `
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: sandbox}
handler: sandbox
overhead: {podFixed: {cpu: 250m}}
scheduling: {nodeSelector: {sandbox: "yes"}, tolerations: [{key: sandbox, operator: Exists}]}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {runtimeClassName: sandbox, OVERHEAD containers: [{name: c, resources: {requests: {cpu: "1"}}}]}
`
	for overhead, want := range map[string]int64{"": 1250, "overhead: {cpu: 100m},": 1100} {
		p := snapshot(t, strings.Replace(class, "OVERHEAD", overhead, 1)).Pending[0]
		if p.Requests.MilliCPU != want || len(p.Selector) != 1 || p.Selector[0].Key != "sandbox" || len(p.Tolerations) != 1 {
			t.Errorf("%q: got %+v", overhead, p)
		}
	}
}

func TestNodesHaveAttachLimits(t *testing.T) {
	s := snapshot(t, `
apiVersion: v1
kind: Node
metadata: {name: node-1}
---
apiVersion: storage.k8s.io/v1
kind: CSINode
metadata: {name: node-1}
spec: {drivers: [{name: ebs.csi.aws.com, nodeID: i-1, allocatable: {count: 25}}]}
`)
	if got := s.Nodes[0].AttachLimits; !slices.Equal(got, []quantity.Amount{{Name: "ebs.csi.aws.com", Value: 25}}) {
		t.Errorf("got %v", got)
	}
}
