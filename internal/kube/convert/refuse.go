package convert

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// features are what a pod may ask for that is not planned for yet. Each names
// the detail by which the pod uses it; empty if it does not. Planning such a
// pod as if it had not asked would plan it wrongly.
var features = []struct {
	name string
	used func(*corev1.PodSpec) string
}{
	{"scheduling gates", gate},
	{"a scheduling group", func(s *corev1.PodSpec) string {
		if s.SchedulingGroup == nil {
			return ""
		}
		return "spec.schedulingGroup"
	}},
	{"Windows", func(s *corev1.PodSpec) string {
		if s.OS == nil || s.OS.Name != corev1.Windows {
			return ""
		}
		return "spec.os"
	}},
	{"resource claims", func(s *corev1.PodSpec) string {
		if len(s.ResourceClaims) == 0 {
			return ""
		}
		return s.ResourceClaims[0].Name
	}},
	{"hard topology spread", spread},
	{"required pod affinity", func(s *corev1.PodSpec) string {
		if s.Affinity == nil || s.Affinity.PodAffinity == nil {
			return ""
		}
		return topologyKey(s.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}},
	{"required pod anti-affinity", func(s *corev1.PodSpec) string {
		if s.Affinity == nil || s.Affinity.PodAntiAffinity == nil {
			return ""
		}
		return topologyKey(s.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}},
	{"persistent volumes", claim},
	{"generic ephemeral volumes", ephemeralVolume},
	{"host ports", hostPort},
}

// refused says which feature keeps the pod from being planned; empty if none
// does.
func refused(p *corev1.Pod) string {
	for _, f := range features {
		if detail := f.used(&p.Spec); detail != "" {
			return unsupported(f.name, detail)
		}
	}
	return ""
}

func unsupported(feature, detail string) string {
	return fmt.Sprintf("it uses %s (%s), which is not supported yet", feature, detail)
}

func gate(s *corev1.PodSpec) string {
	if len(s.SchedulingGates) == 0 {
		return ""
	}
	return s.SchedulingGates[0].Name
}

func spread(s *corev1.PodSpec) string {
	for _, c := range s.TopologySpreadConstraints {
		if c.WhenUnsatisfiable != corev1.ScheduleAnyway {
			return "over " + c.TopologyKey
		}
	}
	return ""
}

func topologyKey(terms []corev1.PodAffinityTerm) string {
	if len(terms) == 0 {
		return ""
	}
	return "over " + terms[0].TopologyKey
}

func claim(s *corev1.PodSpec) string {
	for _, v := range s.Volumes {
		if v.PersistentVolumeClaim != nil {
			return fmt.Sprintf("volume %s, claim %s", v.Name, v.PersistentVolumeClaim.ClaimName)
		}
	}
	return ""
}

func ephemeralVolume(s *corev1.PodSpec) string {
	for _, v := range s.Volumes {
		if v.Ephemeral == nil {
			continue
		}
		class := "the default one"
		if t := v.Ephemeral.VolumeClaimTemplate; t != nil && t.Spec.StorageClassName != nil {
			class = *t.Spec.StorageClassName
		}
		return fmt.Sprintf("volume %s, storage class %s", v.Name, class)
	}
	return ""
}

// hostPort looks at what runs for as long as the pod. On the network of the
// host every port is a port of the host.
func hostPort(s *corev1.PodSpec) string {
	for _, containers := range [][]corev1.Container{s.Containers, sidecars(s)} {
		for _, c := range containers {
			for _, port := range c.Ports {
				if port.HostPort > 0 {
					return fmt.Sprintf("port %d", port.HostPort)
				}
				if s.HostNetwork && port.ContainerPort > 0 {
					return fmt.Sprintf("port %d on the network of the host", port.ContainerPort)
				}
			}
		}
	}
	return ""
}

func sidecars(s *corev1.PodSpec) []corev1.Container {
	var out []corev1.Container
	for _, c := range s.InitContainers {
		if isSidecar(&c) {
			out = append(out, c)
		}
	}
	return out
}

// isSidecar reports whether an init container is kept running.
func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}
