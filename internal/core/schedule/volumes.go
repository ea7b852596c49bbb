package schedule

import (
	"encoding/binary"
	"slices"

	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

// unlimited is the room for volumes of a driver that has no limit.
const unlimited = 1 << 20

// request is what a pod asks for, its volumes included. A volume that several
// pods share is counted for each.
func (d *dims) request(p *world.Pod) []int64 {
	v := d.vector(p.Requests)
	for i, driver := range d.drivers {
		v[d.resources()+i] = volumesOf(p.Attach, driver)
	}
	return v
}

func (d *dims) appendAttach(b []byte, p *world.Pod) []byte {
	for _, driver := range d.drivers {
		b = binary.AppendVarint(b, volumesOf(p.Attach, driver))
	}
	return b
}

// volumesOf counts the different volumes of the driver.
func volumesOf(all []world.Attachment, driver string) (n int64) {
	for i, a := range all {
		if a.Driver == driver && !slices.Contains(all[:i], a) {
			n++
		}
	}
	return n
}

// room is what a place has for pods: resources, and volumes less those that are
// attached.
func (d *dims) room(r quantity.Resources, limits []quantity.Amount, attached []world.Attachment) []int64 {
	v := d.vector(r)
	for i, driver := range d.drivers {
		at := d.resources() + i
		v[at] = unlimited
		if k := slices.IndexFunc(limits, func(a quantity.Amount) bool { return a.Name == driver }); k >= 0 {
			v[at] = limits[k].Value - volumesOf(attached, driver)
		}
	}
	return v
}

// attached are the volumes of the pods on a node.
func attached(n *world.Node) (all []world.Attachment) {
	for i := range n.Pods {
		if !n.Pods[i].Finished {
			all = append(all, n.Pods[i].Attach...)
		}
	}
	return all
}
