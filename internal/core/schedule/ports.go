package schedule

import (
	"slices"

	"karpenter/internal/core/world"
)

// portsOf compiles host ports: pods with conflicting ports do not share a node.
func portsOf(_ *rulebook, o *owned, p *world.Pod) { o.rule.ports = p.HostPorts }

// conflict returns the first of the ports that one of the others conflicts with.
func conflict(ports, taken []world.HostPort) (world.HostPort, bool) {
	for _, p := range ports {
		if slices.ContainsFunc(taken, p.Conflicts) {
			return p, true
		}
	}
	return world.HostPort{}, false
}
