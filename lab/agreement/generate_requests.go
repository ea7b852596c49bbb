package agreement

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Extended resources of the generated clusters. The last one nobody offers.
var extended = []corev1.ResourceName{"nvidia.com/gpu", "example.com/dongle", "hugepages-2Mi", "example.com/unknown"}

// containers ask for cpu and memory, in round and in odd amounts, as requests,
// as limits or as both.
func (d *draft) containers() []corev1.Container {
	var out []corev1.Container
	for i := range d.between(1, 2) {
		c := corev1.Container{Name: fmt.Sprintf("c%d", i), Image: "i"}
		c.Resources.Requests = corev1.ResourceList{}
		if d.chance(0.9) {
			c.Resources.Requests[corev1.ResourceCPU] = d.cpu()
		}
		if d.chance(0.9) {
			c.Resources.Requests[corev1.ResourceMemory] = d.memory()
		}
		if d.chance(0.1) {
			c.Resources.Requests[corev1.ResourceEphemeralStorage] = resource.MustParse(pick(d, []string{"1Gi", "10Gi", "30G", "0"}))
		}
		if d.chance(0.1) {
			c.Resources.Limits, c.Resources.Requests = c.Resources.Requests, nil
		}
		out = append(out, c)
	}
	return out
}

func (d *draft) cpu() resource.Quantity {
	switch d.r.IntN(10) {
	case 0:
		return resource.MustParse(pick(d, []string{"0", "1n", "0.1", "1500u", "3", "7.91"}))
	case 1:
		return *resource.NewMilliQuantity(int64(d.between(1, 8000)), resource.DecimalSI)
	}
	return *resource.NewMilliQuantity(int64(250*d.between(1, 10)), resource.DecimalSI)
}

func (d *draft) memory() resource.Quantity {
	switch d.r.IntN(10) {
	case 0:
		return resource.MustParse(pick(d, []string{"0", "1", "100M", "1500m", "3G", "12345678901"}))
	case 1:
		return *resource.NewQuantity(int64(d.between(1, 30<<30)), resource.BinarySI)
	}
	return *resource.NewQuantity(int64(d.between(1, 16))<<29, resource.BinarySI)
}

func extendedResources(d *draft, t *template) {
	s := &t.Spec
	name, amount := pick(d, extended), resource.MustParse("1")
	switch {
	case name == "hugepages-2Mi":
		amount = *resource.NewQuantity(int64(d.between(1, 4))<<21, resource.BinarySI)
	case d.chance(0.3):
		amount = resource.MustParse(pick(d, []string{"0", "2", "4"}))
	}
	c := &s.Containers[0].Resources
	c.Limits = with(c.Limits, name, amount)
	c.Requests = with(c.Requests, name, amount)
}

func with(l corev1.ResourceList, name corev1.ResourceName, q resource.Quantity) corev1.ResourceList {
	if l == nil {
		l = corev1.ResourceList{}
	}
	l[name] = q
	return l
}

// initContainers run before the others, or, as sidecars, beside them.
func initContainers(d *draft, t *template) {
	s := &t.Spec
	always := corev1.ContainerRestartPolicyAlways
	for i := range d.between(1, 3) {
		c := corev1.Container{Name: fmt.Sprintf("i%d", i), Image: "i"}
		c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: d.cpu(), corev1.ResourceMemory: d.memory()}
		if d.chance(0.5) {
			c.RestartPolicy = &always
		}
		s.InitContainers = append(s.InitContainers, c)
	}
}

// overhead of the runtime, and amounts that the pod asks for as a whole.
func overhead(d *draft, t *template) {
	s := &t.Spec
	if d.chance(0.5) {
		s.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("120Mi")}
		return
	}
	s.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{}}
	if d.chance(0.7) {
		s.Resources.Requests[corev1.ResourceCPU] = resource.MustParse("12")
	}
	if d.chance(0.7) {
		s.Resources.Requests[corev1.ResourceMemory] = resource.MustParse("20Gi")
	}
}
