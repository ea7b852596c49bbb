package main

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/schedule"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/convert"
)

// input is the problem format of the benchmark. It is extended by further pools,
// and by the pool that a node belongs to (else it is nodePool); problems with
// these are made by bench/cmd/gen.
type input struct {
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

// output is the result format of the benchmark.
type output struct {
	Implementation string       `json:"implementation"`
	Input          string       `json:"input"`
	Workers        int          `json:"workers"`
	MaxProcs       int          `json:"gomaxprocs"`
	Pods           int          `json:"podCount"`
	InstanceTypes  int          `json:"instanceTypeCount"`
	ExistingNodes  int          `json:"existingNodeCount"`
	Seconds        float64      `json:"seconds"`
	CPUSeconds     float64      `json:"cpuSeconds"`
	AllocBytes     uint64       `json:"allocBytes"`
	Allocs         uint64       `json:"allocs"`
	BaseRSSBytes   int64        `json:"baseRSSBytes"`
	PeakRSSBytes   int64        `json:"peakRSSBytes"`
	Unschedulable  int          `json:"unschedulable"`
	OnExisting     int          `json:"onExistingNodes"`
	NodeCount      int          `json:"newNodeCount"`
	PricePerHour   float64      `json:"pricePerHour"`
	Classes        int          `json:"classes"`
	Evaluations    int64        `json:"evaluations"`
	Nodes          []outputNode `json:"nodes,omitempty"`
	Existing       []assignment `json:"existing,omitempty"`
}

type outputNode struct {
	InstanceType string   `json:"instanceType"`
	Zone         string   `json:"zone"`
	CapacityType string   `json:"capacityType"`
	Price        float64  `json:"price"`
	Options      int      `json:"options"`
	Pods         []string `json:"pods"`
}

type assignment struct {
	Node string   `json:"node"`
	Pods []string `json:"pods"`
}

func price(micros int64) quantity.Price { return quantity.Price(micros) }

const key = world.CatalogKey("bench")

func snapshot(in *input, policy world.Policy) *world.Snapshot {
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
	s.Catalogs[key] = c
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
			node.Pods = append(node.Pods, convert.Pod(&n.Pods[j]))
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
		Name: p.Name, Kind: "NodePool", Weight: p.Weight, Catalog: key, Labels: maps.Clone(p.Labels),
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

// result writes the plan in the benchmark's format.
func result(in *input, plan *schedule.Plan) output {
	out := output{
		Implementation: "karpenter", Input: in.Name, Workers: 1, MaxProcs: 1, Pods: len(in.Pods),
		InstanceTypes: len(in.InstanceTypes), ExistingNodes: len(in.Nodes),
		Unschedulable: len(plan.Unplaced), OnExisting: len(plan.Placements), NodeCount: len(plan.Machines),
	}
	prices := map[schedule.Option]float64{}
	for i := range in.InstanceTypes {
		for _, o := range in.InstanceTypes[i].Offerings {
			prices[schedule.Option{Type: in.InstanceTypes[i].Name, Zone: o.Zone, CapacityType: o.CapacityType}] = o.Price
		}
	}
	for i := range plan.Machines {
		m := &plan.Machines[i]
		o := m.Options[0]
		n := outputNode{InstanceType: o.Type, Zone: o.Zone, CapacityType: o.CapacityType, Options: len(m.Options)}
		o.Price = 0
		n.Price = prices[o]
		out.PricePerHour += n.Price
		for _, p := range m.Pods {
			n.Pods = append(n.Pods, p.Name)
		}
		out.Nodes = append(out.Nodes, n)
	}
	byNode := map[string]*assignment{}
	for _, p := range plan.Placements {
		a := byNode[p.Node]
		if a == nil {
			a = &assignment{Node: p.Node}
			byNode[p.Node] = a
		}
		a.Pods = append(a.Pods, p.Pod.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(byNode)) {
		out.Existing = append(out.Existing, *byNode[name])
	}
	return out
}
