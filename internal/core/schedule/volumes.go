package schedule

import (
	"encoding/binary"
	"slices"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

// unlimited is the room for volumes of a driver that has no limit.
const unlimited = 1 << 20

// request is what a pod asks for, its volumes included. A volume that several
// pods share is counted for each; where they meet, that is given back, see
// [rules.again].
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

// sharedVolumes are those that several pods use: they are attached to a node
// once.
func sharedVolumes(pods []*world.Pod, nodes []*world.Node) map[world.Attachment]bool {
	var shared map[world.Attachment]bool
	seen := map[world.Attachment]bool{}
	see := func(p *world.Pod) {
		for i, a := range p.Attach {
			if slices.Contains(p.Attach[:i], a) {
				continue
			}
			if seen[a] {
				if shared == nil {
					shared = map[world.Attachment]bool{}
				}
				shared[a] = true
			}
			seen[a] = true
		}
	}
	for _, p := range pods {
		see(p)
	}
	if len(seen) == 0 {
		return nil
	}
	for _, n := range nodes {
		for i := range n.Pods {
			if !n.Pods[i].Finished {
				see(&n.Pods[i])
			}
		}
	}
	return shared
}

// sharedBy are the volumes of the pod that others use too.
func (b *rulebook) sharedBy(p *world.Pod) (out []world.Attachment) {
	for i, a := range p.Attach {
		if b.shared[a] && !slices.Contains(p.Attach[:i], a) {
			out = append(out, a)
		}
	}
	return out
}

// volumesShared compiles shared volumes, which bind pods to each other in so far
// as they need less room together.
// If the volume is still to be made, all but the first have to follow it.
func volumesShared(b *rulebook, o *owned, p *world.Pod) {
	o.rule.shared = b.sharedBy(p)
	for _, a := range o.rule.shared {
		if a.Unmade {
			o.rule.follow = append(o.rule.follow, b.tally(tally{key: b.key(label.Zone), matchers: []int32{b.users(a)}}))
		}
	}
}

// togetherWeight is what it counts for that a volume is to be made for one node
// only.
const togetherWeight = 1000

// joins reports whether a volume that is to be made for a pod with the rules is
// to be made also for one of those that are there.
func (r *rules) joins(there []world.Attachment) bool {
	return len(r.follow) > 0 && slices.ContainsFunc(r.shared, func(a world.Attachment) bool { return a.Unmade && slices.Contains(there, a) })
}

// users selects the pods that use a volume.
func (b *rulebook) users(a world.Attachment) int32 {
	k := string(appendText(appendText([]byte{'u'}, a.Driver), a.Volume))
	id, ok := b.known[k]
	if !ok {
		id = int32(len(b.matchers))
		b.known[k] = id
		b.matchers = append(b.matchers, matcher{volume: a})
	}
	return id
}

// again counts, per dimension, the volumes of a pod with the rules that are
// attached already, and so need not be again.
func (r *rules) again(d *dims, there []world.Attachment) []int64 {
	if r == nil || len(r.shared) == 0 {
		return nil
	}
	var out []int64
	for _, a := range r.shared {
		if slices.Contains(there, a) {
			if out == nil {
				out = make([]int64, d.n())
			}
			out[d.resources()+slices.Index(d.drivers, a.Driver)]++
		}
	}
	return out
}

// volume is one that pods of several classes, or several pods of one, share, and
// the resource of a [stock] that counts those of its driver.
type volume struct {
	world.Attachment
	dim int
}

// volumesIn says which of the resources asked for count the volumes.
func volumesIn(all []world.Attachment, d *dims, asked []int) (out []volume) {
	for _, a := range all {
		out = append(out, volume{a, slices.Index(asked, d.resources()+slices.Index(d.drivers, a.Driver))})
	}
	return out
}

// fresh are the volumes that the first pod of the class has to attach.
func (s *stock) fresh(class int, attached []volume) []volume {
	if s.volumes == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.volumes[class]), func(v volume) bool { return slices.Contains(attached, v) })
}

// less is a request without what is counted already.
func less(request, counted []int64) []int64 {
	if counted == nil {
		return request
	}
	out := slices.Clone(request)
	for d, n := range counted {
		out[d] -= n
	}
	return out
}

// attachedBeside are the shared volumes that are attached to the node of a pod
// also without it.
func (f *finisher) attachedBeside(pod int32) []world.Attachment {
	p := f.p
	if len(p.bound[pod].shared) == 0 {
		return nil
	}
	there := slices.Clone(p.ground.spots[p.ground.places[f.where[pod]]].volumes)
	for i, at := range f.where {
		if at == f.where[pod] && int32(i) != pod && p.bound[i] != nil {
			there = append(there, p.bound[i].shared...)
		}
	}
	return there
}
