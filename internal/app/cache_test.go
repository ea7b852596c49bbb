package app

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"karpenter/internal/kube/convert"
)

// TestTheCacheKeepsWhatDecisionsLookAt: a pod and what it refers to translate
// alike before and after the cache has made them small.
func TestTheCacheKeepsWhatDecisionsLookAt(t *testing.T) {
	objects := map[client.Object]string{
		&corev1.Namespace{}: `metadata: {name: ns, labels: {team: r}, annotations: {a: b}}
spec: {finalizers: [kubernetes]}`,
		&storagev1.StorageClass{}: `metadata: {name: zonal, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: ebs.csi.aws.com
parameters: {type: gp3}
volumeBindingMode: WaitForFirstConsumer
allowedTopologies: [{matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: [a, b]}]}]`,
		&corev1.PersistentVolume{}: `metadata: {name: pv, labels: {topology.kubernetes.io/region: r}, finalizers: [x]}
spec: {csi: {driver: ebs.csi.aws.com, volumeHandle: vol-1, fsType: ext4, volumeAttributes: {a: b}}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [a]}]}]}}}`,
		&corev1.PersistentVolumeClaim{}: `metadata: {namespace: ns, name: data, labels: {a: b}, annotations: {x: y}}
spec: {volumeName: pv, accessModes: [ReadWriteOnce]}
status: {phase: Bound, capacity: {storage: 1Gi}}`,
		&storagev1.CSINode{}: `metadata: {name: node-1, annotations: {x: y}}
spec: {drivers: [{name: ebs.csi.aws.com, nodeID: i-1, topologyKeys: [zone], allocatable: {count: 25}}]}`,
		&corev1.Pod{}: `metadata: {namespace: ns, name: p, uid: u, labels: {app: a}}
spec:
  volumes: [{name: c, configMap: {name: c}}, {name: v, persistentVolumeClaim: {claimName: data}}, {name: e, ephemeral: {volumeClaimTemplate: {spec: {}}}}]
  affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: z, labelSelector: {}, namespaceSelector: {matchLabels: {team: r}}}]}}
  initContainers: [{name: i, image: i, restartPolicy: Always, resources: {requests: {cpu: 100m}}, ports: [{containerPort: 1, hostPort: 1}]}]
  containers: [{name: a, image: i, command: [x], resources: {requests: {cpu: 1}}}, {name: b, image: i, resources: {requests: {cpu: 1}}}]
status:
  containerStatuses:
  - {name: a, ready: true, restartCount: 0, image: i, imageID: i, allocatedResources: {cpu: 1}, resources: {requests: {cpu: 3}}}
  - {name: b, ready: true, restartCount: 0, image: i, imageID: i, allocatedResources: {cpu: 1}, resources: {requests: {cpu: 1}}}`,
	}
	transforms := map[string]func(any) (any, error){}
	for kind, by := range cacheOptions().ByObject {
		transforms[typeName(kind)] = by.Transform
	}
	before, after := &convert.Lookups{}, &convert.Lookups{}
	var whole, slim *corev1.Pod
	for o, text := range objects {
		if err := yaml.UnmarshalStrict([]byte(text), o); err != nil {
			t.Fatal(err)
		}
		before.Add(o)
		made, err := transforms[typeName(o)](o.DeepCopyObject())
		if err != nil {
			t.Fatal(err)
		}
		after.Add(made)
		if p, ok := o.(*corev1.Pod); ok {
			whole, slim = p, made.(*corev1.Pod)
		}
	}
	want, got := before.Pod(whole), after.Pod(slim)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got.Requests.MilliCPU != 4100 || len(got.Volumes) == 0 || len(got.Affinity[0].Namespaces) != 1 || len(after.AttachLimits("node-1")) != 1 {
		t.Errorf("the test itself is empty: %+v", got)
	}
	if len(slim.Spec.Volumes) != 2 || len(slim.Status.ContainerStatuses) != 1 || slim.Spec.Containers[0].Command != nil {
		t.Errorf("still large: %+v", slim)
	}
}

func typeName(o client.Object) string { return fmt.Sprintf("%T", o) }
