package boot

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// SystemNode is the name of the node that every cluster has before karpenter
// buys the first machine: one of a managed group, on which karpenter itself
// would run.
const SystemNode = "system-1"

// AddSystemNode makes that node. It is closed to ordinary pods, but it matters
// to them: in a cluster without any node kube-scheduler tries pods again and
// again, and takes nominations back each time.
func AddSystemNode(ctx context.Context, client kubernetes.Interface, version string) error {
	resources := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("2"),
		corev1.ResourceMemory:           resource.MustParse("7Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("17Gi"),
		corev1.ResourcePods:             resource.MustParse("29"),
	}
	_, err := client.CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: SystemNode,
			Labels: map[string]string{
				corev1.LabelHostname: SystemNode, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
				"eks.amazonaws.com/nodegroup": "system",
			},
			Annotations: map[string]string{kubeletAnnotation: "running", readyAnnotation: "0s"},
		},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "CriticalAddonsOnly", Value: "true", Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{
			Capacity: resources, Allocatable: resources,
			NodeInfo: corev1.NodeSystemInfo{KubeletVersion: version, Architecture: "amd64", OperatingSystem: "linux", OSImage: "Amazon Linux 2"},
		},
	}, metav1.CreateOptions{})
	return err
}
