// Command consolidate takes and carries out commands of consolidation on one
// benchmark problem until no further one exists, and writes what was done and
// what it cost: CPU seconds from pods in memory to the last decision.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"karpenter/bench/problem"
	"karpenter/bench/usage"
	"karpenter/internal/core/disrupt"
	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/schedule"
	"karpenter/internal/core/world"
)

// output is the result format.
type output struct {
	CPUSeconds         float64   `json:"cpuSeconds"`
	Seconds            float64   `json:"seconds"`
	PeakRSSBytes       int64     `json:"peakRSSBytes"`
	WhatIfs            int       `json:"whatIfs"`
	PricePerHourBefore float64   `json:"pricePerHourBefore"`
	PricePerHourAfter  float64   `json:"pricePerHourAfter"`
	Commands           []command `json:"commands"`
}

type command struct {
	Remove       []string          `json:"remove"`
	Replace      *replacement      `json:"replace"`
	Moves        map[string]string `json:"moves"` // pod → node, or "replacement"
	SavesPerHour float64           `json:"savesPerHour"`
}

type replacement struct {
	Type         string  `json:"type"`
	Zone         string  `json:"zone"`
	CapacityType string  `json:"capacityType"`
	Price        float64 `json:"price"`
}

func main() {
	in := flag.String("i", "", "problem file")
	out := flag.String("o", "", "result file (default: none)")
	spot := flag.Int("spot-to-spot", 15, "of how many spot types there must be a choice for a spot machine to be replaced by one; 0: it never is")
	flag.Parse()
	if err := run(*in, *out, *spot); err != nil {
		fmt.Fprintln(os.Stderr, "consolidate:", err)
		os.Exit(1)
	}
}

func run(in, out string, spot int) error {
	p, err := problem.Read(in)
	if err != nil {
		return err
	}
	debug.FreeOSMemory()
	usage.ResetPeak()
	before, start := usage.Measure(), time.Now()
	s := problem.Snapshot(p, world.Policy{})
	for i := range s.Pools {
		d := &s.Pools[i]
		d.Consolidate = true
		d.Disruption = world.Disruption{Budgets: []world.Budget{{Nodes: "100%"}}, SpotToSpot: spot}
	}
	result := output{Commands: []command{}, PricePerHourBefore: price(s)}
	for now := time.Unix(0, 0).UTC(); ; {
		d := disrupt.Decide(s, now, disrupt.Options{})
		result.WhatIfs += d.WhatIfs
		if len(d.Commands) == 0 {
			break
		}
		for i := range d.Commands {
			name := fmt.Sprintf("new-%d", len(result.Commands)+1)
			s = carryOut(s, &d.Commands[i], name)
			result.Commands = append(result.Commands, written(&d.Commands[i]))
		}
	}
	after := usage.Measure()
	result.Seconds, result.CPUSeconds, result.PeakRSSBytes = time.Since(start).Seconds(), after.CPU-before.CPU, after.Peak
	result.PricePerHourAfter = price(s)
	fmt.Printf("%s: %.2f CPU s, %d what-ifs, %d commands, %d nodes left of %d, $%.2f/h of $%.2f/h\n",
		p.Name, result.CPUSeconds, result.WhatIfs, len(result.Commands), len(s.Nodes), len(p.Nodes), result.PricePerHourAfter, result.PricePerHourBefore)
	if out == "" {
		return nil
	}
	raw, err := json.Marshal(result)
	if err != nil {
		return err
	}
	return os.WriteFile(out, append(raw, '\n'), 0o644)
}

// carryOut is the world after the command; a replacement gets the name.
func carryOut(s *world.Snapshot, c *disrupt.Command, name string) *world.Snapshot {
	pods := map[world.ObjectName]world.Pod{}
	var gone []string
	for _, t := range c.Remove {
		gone = append(gone, t.Node)
	}
	for i := range s.Nodes {
		if slices.Contains(gone, s.Nodes[i].Name) {
			for _, p := range s.Nodes[i].Pods {
				pods[p.ObjectName] = p
			}
		}
	}
	to := map[world.ObjectName]string{}
	for _, m := range c.Moves {
		to[m.Pod] = m.Node
	}
	s = s.After(gone, to)
	for i := range c.Replace {
		s.Nodes = append(s.Nodes, bought(s, &c.Replace[i], name, pods))
	}
	return s
}

// bought is the machine that the cloud gives for a replacement: the cheapest.
func bought(s *world.Snapshot, m *schedule.Machine, name string, pods map[world.ObjectName]world.Pod) world.Node {
	o := m.Options[0]
	types := s.Catalogs[problem.Key].Types
	t := types[slices.IndexFunc(types, func(t world.InstanceType) bool { return t.Name == o.Type })]
	labels := maps.Clone(t.Labels)
	maps.Copy(labels, s.Pool("", m.Pool).Labels)
	labels[label.Zone], labels[label.CapacityType], labels[label.InstanceType], labels[label.Hostname] = o.Zone, o.CapacityType, o.Type, name
	n := world.Node{Name: name, Claim: name, Pool: m.Pool, Labels: labels, Taints: s.Pool("", m.Pool).Taints, Allocatable: t.Allocatable, Capacity: t.Capacity,
		Joined: true, Ready: true, Registered: true, Initialized: true}
	for _, p := range m.Pods {
		pod := pods[p]
		pod.Node = name
		n.Pods = append(n.Pods, pod)
	}
	return n
}

func written(c *disrupt.Command) command {
	out := command{Remove: []string{}, Moves: map[string]string{}, SavesPerHour: dollars(c.Saves)}
	for _, t := range c.Remove {
		out.Remove = append(out.Remove, t.Node)
	}
	for _, m := range c.Moves {
		out.Moves[m.Pod.Name] = m.Node
	}
	for i := range c.Replace {
		o := c.Replace[i].Options[0]
		out.Replace = &replacement{o.Type, o.Zone, o.CapacityType, dollars(o.Price)}
		for _, p := range c.Replace[i].Pods {
			out.Moves[p.Name] = "replacement"
		}
	}
	return out
}

func dollars(p quantity.Price) float64 { return float64(p) / 1e6 }

// price of all nodes per hour.
func price(s *world.Snapshot) float64 {
	prices := map[schedule.Option]quantity.Price{}
	for _, t := range s.Catalogs[problem.Key].Types {
		for _, o := range t.Offerings {
			prices[schedule.Option{Type: t.Name, Zone: o.Zone, CapacityType: o.CapacityType}] = o.Price
		}
	}
	var sum quantity.Price
	for i := range s.Nodes {
		l := s.Nodes[i].Labels
		sum += prices[schedule.Option{Type: l[label.InstanceType], Zone: l[label.Zone], CapacityType: l[label.CapacityType]}]
	}
	return dollars(sum)
}
