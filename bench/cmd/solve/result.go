package main

import (
	"maps"
	"slices"

	"karpenter/bench/problem"
	"karpenter/internal/core/schedule"
)

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

// result writes the plan in the benchmark's format.
func result(in *problem.Input, plan *schedule.Plan) output {
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
