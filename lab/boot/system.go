package boot

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// AddSystemNodes makes the nodes, system-1 and so on, that every cluster has
// before karpenter buys the first machine: one of a managed group in each of the
// zones, on which karpenter itself runs. They are closed to ordinary pods, but
// they matter to them: in a cluster without any node kube-scheduler tries pods
// again and again, and takes nominations back each time. kubeletPort is where
// kwok serves for their kubelets.
func AddSystemNodes(ctx context.Context, client kubernetes.Interface, version string, kubeletPort int, zones ...string) error {
	for i, zone := range zones {
		if err := addSystemNode(ctx, client, version, kubeletPort, fmt.Sprintf("system-%d", i+1), zone); err != nil {
			return err
		}
	}
	return nil
}

func addSystemNode(ctx context.Context, client kubernetes.Interface, version string, kubeletPort int, name, zone string) error {
	resources := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("2"),
		corev1.ResourceMemory:           resource.MustParse("7Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("17Gi"),
		corev1.ResourcePods:             resource.MustParse("29"),
	}
	_, err := client.CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				corev1.LabelHostname: name, corev1.LabelTopologyZone: zone, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
				"eks.amazonaws.com/nodegroup": "system",
			},
			Annotations: map[string]string{kubeletAnnotation: "running", readyAnnotation: "0s"},
		},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "CriticalAddonsOnly", Value: "true", Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{
			Capacity: resources, Allocatable: resources,
			Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}, {Type: corev1.NodeHostName, Address: name}},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(kubeletPort)}},
			NodeInfo:        corev1.NodeSystemInfo{KubeletVersion: version, Architecture: "amd64", OperatingSystem: "linux", OSImage: "Amazon Linux 2"},
		},
	}, metav1.CreateOptions{})
	return err
}
