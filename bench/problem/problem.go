// Package problem reads the problems of the benchmark, and measures what it costs
// to solve them.
package problem

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/convert"
)

// Input is the problem format of the benchmark. It is extended by further pools,
// and by the pool that a node belongs to (else it is nodePool); problems with
// these are made by bench/cmd/gen.
type Input struct {
	Name          string         `json:"name"`
	InstanceTypes []instanceType `json:"instanceTypes"`
	NodePool      nodePool       `json:"nodePool"`
	MorePools     []nodePool     `json:"morePools"`
	DaemonSets    []corev1.Pod   `json:"daemonSets"`
	Nodes         []struct {
		Name         string       `json:"name"`
		Pool         string       `json:"pool"`
		InstanceType string       `json:"instanceType"`
		Zone         string       `json:"zone"`
		CapacityType string       `json:"capacityType"`
		Pods         []corev1.Pod `json:"pods"`
	} `json:"nodes"`
	Pods []corev1.Pod `json:"pods"`
}

type nodePool struct {
	Name         string                           `json:"name"`
	Weight       int32                            `json:"weight"`
	Requirements []corev1.NodeSelectorRequirement `json:"requirements"`
	Taints       []corev1.Taint                   `json:"taints"`
	Labels       map[string]string                `json:"labels"`
}

type instanceType struct {
	Name             string            `json:"name"`
	Arch             string            `json:"arch"`
	OS               []string          `json:"os"`
	CPUMilli         int64             `json:"cpuMilli"`
	MemoryBytes      int64             `json:"memoryBytes"`
	EphemeralBytes   int64             `json:"ephemeralBytes"`
	Pods             int64             `json:"pods"`
	Extended         map[string]int64  `json:"extended"`
	OverheadCPUMilli int64             `json:"overheadCPUMilli"`
	OverheadMemory   int64             `json:"overheadMemoryBytes"`
	Labels           map[string]string `json:"labels"`
	Offerings        []struct {
		Zone         string  `json:"zone"`
		CapacityType string  `json:"capacityType"`
		Price        float64 `json:"price"`
	} `json:"offerings"`
}

// Read reads a problem file.
func Read(file string) (*Input, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	in := &Input{}
	if err := json.Unmarshal(raw, in); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return in, nil
}

// Key is the catalogue of all pools of a problem.
const Key = world.CatalogKey("bench")

// Snapshot is the world of the problem.
func Snapshot(in *Input, policy world.Policy) *world.Snapshot {
	s := &world.Snapshot{Policy: policy, Catalogs: map[world.CatalogKey]world.Catalog{}}
	pools := map[string]*nodePool{"": &in.NodePool}
	s.Pools = []world.Pool{pool(&in.NodePool)}
	for i := range in.MorePools {
		p := &in.MorePools[i]
		s.Pools, pools[p.Name] = append(s.Pools, pool(p)), p
	}
	types := map[string]world.InstanceType{}
	var c world.Catalog
	for i := range in.InstanceTypes {
		t := kind(&in.InstanceTypes[i])
		types[t.Name] = t
		c.Types = append(c.Types, t)
	}
	s.Catalogs[Key] = c
	for i := range in.DaemonSets {
		d := convert.Pod(&in.DaemonSets[i])
		s.Daemons = append(s.Daemons, world.Daemon{ObjectName: d.ObjectName, Template: d})
	}
	for i := range in.Nodes {
		n := &in.Nodes[i]
		t := types[n.InstanceType]
		labels := maps.Clone(t.Labels)
		labels[label.Zone], labels[label.CapacityType], labels[label.InstanceType] = n.Zone, n.CapacityType, n.InstanceType
		labels[label.Hostname] = n.Name
		home := pools[n.Pool]
		maps.Copy(labels, home.Labels)
		node := world.Node{
			Name: n.Name, Claim: n.Name, Pool: home.Name, Labels: labels, Taints: taints(home.Taints), Allocatable: t.Allocatable, Capacity: t.Capacity,
			Joined: true, Ready: true, Registered: true, Initialized: true,
		}
		for j := range n.Pods {
			p := convert.Pod(&n.Pods[j])
			p.Node = n.Name
			node.Pods = append(node.Pods, p)
		}
		s.Nodes = append(s.Nodes, node)
	}
	s.Pending = make([]world.Pod, len(in.Pods))
	for i := range in.Pods {
		s.Pending[i] = convert.Pod(&in.Pods[i])
	}
	return s
}

func pool(p *nodePool) world.Pool {
	return world.Pool{
		Name: p.Name, Kind: "NodePool", Weight: p.Weight, Catalog: Key, Labels: maps.Clone(p.Labels),
		Requirements: requirements(p.Requirements), Taints: taints(p.Taints),
	}
}

func taints(in []corev1.Taint) (out []world.Taint) {
	for _, t := range in {
		out = append(out, world.Taint{Key: t.Key, Value: t.Value, Effect: world.Effect(t.Effect)})
	}
	return out
}

func kind(t *instanceType) world.InstanceType {
	labels := maps.Clone(t.Labels)
	labels[label.Arch] = t.Arch
	if slices.Contains(t.OS, "linux") {
		labels[label.OS] = "linux"
	}
	capacity := quantity.Resources{MilliCPU: t.CPUMilli, MemoryBytes: t.MemoryBytes, EphemeralBytes: t.EphemeralBytes, Pods: t.Pods}
	for name, v := range t.Extended {
		capacity = capacity.With(name, v)
	}
	out := world.InstanceType{Name: t.Name, Labels: labels, Capacity: capacity, Allocatable: capacity}
	out.Allocatable.MilliCPU -= t.OverheadCPUMilli
	out.Allocatable.MemoryBytes -= t.OverheadMemory
	for _, o := range t.Offerings {
		out.Offerings = append(out.Offerings, world.Offering{Zone: o.Zone, CapacityType: o.CapacityType, Price: quantity.USDPerHour(o.Price), Available: true})
	}
	return out
}

func requirements(in []corev1.NodeSelectorRequirement) []label.Requirement {
	var out []label.Requirement
	for _, r := range in {
		out = append(out, label.Requirement{Key: r.Key, Op: label.Op(r.Operator), Values: r.Values})
	}
	return out
}
