package catalog

import (
	"testing"

	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

// What is known of a type beats what is computed, but not what the kubelet is
// told about the number of pods.
func TestStated(t *testing.T) {
	row := Row{Name: "m5.large", Arch: []string{"x86_64"}, VCPU: 2, MemoryMiB: 8192, Markets: []string{"on-demand"}, MaxENIs: 3, IPv4PerENI: 10,
		Stated: &Stated{
			Capacity:    []quantity.Amount{{Name: quantity.Pods, Value: 29}, {Name: "example.test/fpga", Value: 1}},
			Allocatable: []quantity.Amount{{Name: quantity.CPU, Value: 1900}, {Name: quantity.Pods, Value: 29}, {Name: "example.test/fpga", Value: 1}},
			Labels:      map[string]string{"example.test/size": "big"},
		}}
	build := func(k world.Kubelet) world.InstanceType {
		in := usual()
		in.Kubelet = k
		types, err := Build([]Row{row}, in)
		if err != nil || len(types) != 1 {
			t.Fatal(types, err)
		}
		return types[0]
	}
	got := build(world.Kubelet{})
	if a := got.Allocatable; a.MilliCPU != 1900 || a.Pods != 29 || a.Get("example.test/fpga") != 1 || a.MemoryBytes >= got.Capacity.MemoryBytes {
		t.Errorf("allocatable %v of %v", a, got.Capacity)
	}
	if got.Labels["example.test/size"] != "big" {
		t.Errorf("labels %v", got.Labels)
	}
	ten := int32(10)
	if a := build(world.Kubelet{MaxPods: &ten}).Allocatable; a.Pods != 10 {
		t.Errorf("with maxPods 10 a node takes %d pods", a.Pods)
	}
}
