package agreement

import corev1 "k8s.io/api/core/v1"

// hostPorts take one or two ports of the node.
func hostPorts(d *draft, t *template) {
	for i := range t.Spec.Containers {
		port := int32(8080 + d.r.IntN(2))
		t.Spec.Containers[i].Ports = append(t.Spec.Containers[i].Ports, corev1.ContainerPort{
			ContainerPort: port, HostPort: port, HostIP: pick(d, []string{"", "", "0.0.0.0", "127.0.0.1", "10.0.0.1", "::"}),
			Protocol: pick(d, []corev1.Protocol{"", corev1.ProtocolTCP, corev1.ProtocolTCP, corev1.ProtocolUDP}),
		})
		if d.chance(0.6) {
			break
		}
	}
	if d.chance(0.1) {
		t.Spec.HostNetwork = true
	}
}
