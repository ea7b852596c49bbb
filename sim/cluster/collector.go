package cluster

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/sim/kube"
)

// Collector is the garbage collector: what had owners and has none any more is
// deleted. An owner that was never seen is taken on trust, so that a world may
// name owners which it does not contain.
type Collector struct {
	client *kube.Client
	queue  queue
	last   map[id]client.Object
	alive  map[types.UID]bool
	dead   map[types.UID]bool
	// dependents of an owner.
	dependents map[types.UID]map[id]bool
}

func newCollector(k *kube.Cluster) *Collector {
	c := &Collector{client: k.Client("garbage-collector"), last: map[id]client.Object{},
		alive: map[types.UID]bool{}, dead: map[types.UID]bool{}, dependents: map[types.UID]map[id]bool{}}
	k.Subscribe(c.see)
	return c
}

func (c *Collector) see(e kube.Event) {
	o := e.Object()
	i := idOf(o)
	i.Kind = e.Kind()
	if e.Old != nil {
		for _, r := range e.Old.GetOwnerReferences() {
			delete(c.dependents[r.UID], i)
		}
	}
	if e.New == nil {
		c.queue.drop(i)
		delete(c.last, i)
		delete(c.alive, o.GetUID())
		c.dead[o.GetUID()] = true
		for d := range c.dependents[o.GetUID()] {
			c.queue.add(d, time.Time{})
		}
		return
	}
	if e.Old == nil {
		c.alive[o.GetUID()] = true
	}
	if len(o.GetOwnerReferences()) == 0 {
		return
	}
	c.last[i] = o
	for _, r := range o.GetOwnerReferences() {
		if c.dependents[r.UID] == nil {
			c.dependents[r.UID] = map[id]bool{}
		}
		c.dependents[r.UID][i] = true
		if c.dead[r.UID] && !c.alive[r.UID] {
			c.queue.add(i, time.Time{})
		}
	}
}

// Step implements [Part].
func (c *Collector) Step(now time.Time) time.Time {
	for _, i := range c.queue.take(now) {
		if o := c.last[i]; o != nil {
			if err := c.collect(o); client.IgnoreNotFound(err) != nil {
				c.queue.add(i, now.Add(retry))
			}
		}
	}
	return c.queue.next(now)
}

// collect deletes an object all of whose owners are gone; of one that has others
// left the dead references are taken off.
func (c *Collector) collect(o client.Object) error {
	gone := func(r metav1.OwnerReference) bool { return c.dead[r.UID] && !c.alive[r.UID] }
	refs := o.GetOwnerReferences()
	left := slices.DeleteFunc(slices.Clone(refs), gone)
	switch {
	case len(left) == len(refs) || o.GetDeletionTimestamp() != nil:
		return nil
	case len(left) == 0:
		uid := o.GetUID()
		return c.client.Delete(context.Background(), o, client.Preconditions{UID: &uid})
	}
	next := o.DeepCopyObject().(client.Object)
	next.SetOwnerReferences(left)
	return c.client.Update(context.Background(), next)
}
