package census

import (
	"cmp"

	"github.com/prometheus/client_golang/prometheus"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

var (
	ofNode = []string{"node_name", "nodepool", "resource_type", "phase", "zone", "region", "instance_type", "arch", "os", "capacity_type"}

	allocatable = desc("karpenter_nodes_allocatable", "What a node offers to pods, by resource: cores, bytes or pieces.", ofNode...)
	podAsks     = desc("karpenter_nodes_total_pod_requests", "What the pods of a node ask for, those of DaemonSets left out.", ofNode...)
	daemonAsks  = desc("karpenter_nodes_total_daemon_requests", "What the pods of DaemonSets on a node ask for.", ofNode...)
	overhead    = desc("karpenter_nodes_system_overhead", "What a node has and does not offer to pods.", ofNode...)
	podState    = desc("karpenter_pods_state", "1 for each pod, with where it is.",
		"name", "namespace", "owner", "node", "nodepool", "zone", "arch", "capacity_type", "instance_type", "phase")
	available = desc("karpenter_cloudprovider_instance_type_offering_available", "1 if an instance type can be bought there, 0 if the cloud has said that it has none left.", "instance_type", "capacity_type", "zone")
	estimate  = desc("karpenter_cloudprovider_instance_type_offering_price_estimate", "Price of an instance type there, in dollars per hour.", "instance_type", "capacity_type", "zone")
	cores     = desc("karpenter_cloudprovider_instance_type_cpu_cores", "Cores of an instance type.", "instance_type")
	memory    = desc("karpenter_cloudprovider_instance_type_memory_bytes", "Memory of an instance type.", "instance_type")

	perObject = []*prometheus.Desc{allocatable, podAsks, daemonAsks, overhead, podState, available, estimate, cores, memory}
)

// objects publishes a series for each node, pod and offering.
func objects(to chan<- prometheus.Metric, s *world.Snapshot) {
	told := map[world.ObjectName]bool{} // a pod that waits may have room kept on a node
	for i := range s.Nodes {
		node(to, &s.Nodes[i], told)
	}
	for i := range s.Pending {
		if p := &s.Pending[i]; !told[p.ObjectName] {
			told[p.ObjectName] = true
			pod(to, p, &world.Node{}, "Pending")
		}
	}
	offerings(to, s)
}

func node(to chan<- prometheus.Metric, n *world.Node, told map[world.ObjectName]bool) {
	var pods, daemons quantity.Resources
	for i := range n.Pods {
		p := &n.Pods[i]
		if !told[p.ObjectName] {
			told[p.ObjectName] = true
			pod(to, p, n, podPhase(p))
		}
		if p.Finished {
			continue
		}
		if p.Owner.Kind == "DaemonSet" {
			daemons = daemons.Add(p.Requests)
		} else {
			pods = pods.Add(p.Requests)
		}
	}
	for d, r := range map[*prometheus.Desc]quantity.Resources{allocatable: n.Allocatable, podAsks: pods, daemonAsks: daemons, overhead: n.Capacity.Sub(n.Allocatable)} {
		for _, a := range r.Amounts() {
			gauge(to, d, units(a), n.Name, n.Pool, resource(a.Name), phase(n), of(n, label.Zone), of(n, label.Region),
				of(n, label.InstanceType), of(n, label.Arch), of(n, label.OS), of(n, label.CapacityType))
		}
	}
}

func podPhase(p *world.Pod) string {
	switch {
	case p.Finished:
		return "Finished"
	case p.Node == "":
		return "Pending"
	}
	return "Running"
}

func of(n *world.Node, key string) string { return cmp.Or(n.Labels[key], "N/A") }

func pod(to chan<- prometheus.Metric, p *world.Pod, n *world.Node, phase string) {
	owner := ""
	if p.Owner.Name != "" {
		owner = p.Owner.Kind + "/" + p.Owner.Name
	}
	gauge(to, podState, 1, p.Name, p.Namespace, owner, n.Name, n.Pool, of(n, label.Zone), of(n, label.Arch), of(n, label.CapacityType), of(n, label.InstanceType), phase)
}

// offerings are those of all catalogues: two that differ in kubelet settings
// sell the same machines.
func offerings(to chan<- prometheus.Metric, s *world.Snapshot) {
	types, seen := map[string]bool{}, map[kind]bool{}
	for _, c := range s.Catalogs {
		for i := range c.Types {
			t := &c.Types[i]
			if !types[t.Name] {
				types[t.Name] = true
				gauge(to, cores, float64(t.Capacity.Get(quantity.CPU))/1000, t.Name)
				gauge(to, memory, float64(t.Capacity.Get(quantity.Memory)), t.Name)
			}
			for _, o := range t.Offerings {
				k := kind{t.Name, o.CapacityType, o.Zone}
				if seen[k] {
					continue
				}
				seen[k] = true
				gauge(to, available, map[bool]float64{true: 1}[o.Available], t.Name, o.CapacityType, o.Zone)
				if o.Price != quantity.PriceUnknown {
					gauge(to, estimate, o.Price.USD(), t.Name, o.CapacityType, o.Zone)
				}
			}
		}
	}
}
