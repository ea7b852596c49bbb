package faults

import (
	"fmt"
	"maps"
	"slices"
	"time"

	awsv1 "karpenter/api/aws/v1"
	awsv1alpha1 "karpenter/api/aws/v1alpha1"
	karpv1 "karpenter/api/v1"
	"karpenter/api/v1alpha5"
	"karpenter/sim/ec2"
)

// What people and the cloud do while a history runs.

// queue lays faults on the way of events to the queue.
func (c *chaos) queue(until time.Time) {
	inject := func(f ec2.Fault) {
		f.On, f.Until = "event", until
		_, err := c.w.Cloud.Inject(f)
		c.w.must(err)
	}
	if c.rng.IntN(3) == 0 {
		inject(ec2.Fault{Error: "Duplicate", Percent: 1 + c.rng.IntN(50)})
	}
	if c.rng.IntN(4) == 0 {
		inject(ec2.Fault{Error: "Lost", Percent: 1 + c.rng.IntN(30)})
	}
	if c.rng.IntN(4) == 0 {
		inject(ec2.Fault{Error: "Malformed", Percent: 1 + c.rng.IntN(30)})
	}
	if c.rng.IntN(3) == 0 {
		inject(ec2.Fault{Delay: time.Duration(1+c.rng.IntN(60)) * time.Second, Percent: 30})
	}
}

// message makes the cloud tell something about a machine, or somebody else about
// one that is none of ours.
func (c *chaos) message() {
	var alive []ec2.Instance
	for _, i := range c.w.Cloud.Instances() {
		if i.State == ec2.Running && i.FleetID != "" {
			alive = append(alive, i)
		}
	}
	kind := c.rng.IntN(6)
	if len(alive) == 0 || kind >= 4 {
		c.foreign(kind)
		return
	}
	i := alive[c.rng.IntN(len(alive))]
	switch {
	case i.Market == ec2.Spot && kind < 2:
		c.w.must(c.w.Cloud.Interrupt(i.ID))
	case i.Market == ec2.Spot && kind == 2:
		c.w.must(c.w.Cloud.Rebalance(i.ID))
	default:
		c.w.must(c.w.Cloud.Retire(i.ID, c.w.Now().Add(time.Duration(5+c.rng.IntN(120))*time.Minute)))
	}
}

// foreign puts something into the queue that is not about us.
func (c *chaos) foreign(kind int) {
	body := "hello"
	if kind%2 == 0 {
		body = fmt.Sprintf(`{"version":"0","id":"x-%d","detail-type":"EC2 Spot Instance Interruption Warning","source":"aws.ec2","time":%q,"region":"us-west-2","detail":{"instance-id":"i-0123456789abcdef%d","instance-action":"terminate"}}`,
			c.rng.IntN(1000), c.w.Now().UTC().Format(time.RFC3339), c.rng.IntN(10))
	}
	c.w.must(c.w.Cloud.Send(queueName, body, 0))
}

// class changes what machines are made from.
func (c *chaos) class() {
	tags := map[string]string{"release": fmt.Sprint(c.rng.IntN(4))}
	if c.w.shape.NodePool {
		o := read(c.w, &awsv1.EC2NodeClass{})
		o.Spec.Tags = tags
		c.w.must(c.w.kube.Update(ctx, o))
		return
	}
	o := read(c.w, &awsv1alpha1.AWSNodeTemplate{})
	o.Spec.Tags = tags
	c.w.must(c.w.kube.Update(ctx, o))
}

// images puts new ones in the place of all images; the old ones may be deleted.
func (c *chaos) images() {
	gone, n := c.rng.IntN(2) == 0, c.rng.IntN(1<<30)
	c.w.Cloud.Edit(func(w *ec2.World) {
		next := map[string]string{}
		var list []ec2.Image
		for i, image := range w.Images {
			old := image.ID
			image.ID, image.Name = fmt.Sprintf("ami-%08x%09x", n, i), fmt.Sprintf("%s-%d", image.Name, n)
			image.Created = c.w.Now().UTC().Format("2006-01-02T15:04:05.000Z")
			next[old] = image.ID
			list = append(list, image)
		}
		if !gone {
			list = append(list, w.Images...)
		}
		w.Images, w.Parameters = list, maps.Clone(w.Parameters)
		for name, id := range w.Parameters {
			if now := next[id]; now != "" {
				w.Parameters[name] = now
			}
		}
	})
}

// closeSubnet deletes a subnet; machines in it go on.
func (c *chaos) closeSubnet() {
	c.w.Cloud.Edit(func(w *ec2.World) {
		if len(w.Subnets) > 1 {
			i := c.rng.IntN(len(w.Subnets))
			c.closed = append(c.closed, w.Subnets[i])
			w.Subnets = slices.Delete(slices.Clone(w.Subnets), i, i+1)
		}
	})
}

// openSubnets makes the deleted subnets again.
func (c *chaos) openSubnets() {
	c.w.Cloud.Edit(func(w *ec2.World) { w.Subnets = append(slices.Clone(w.Subnets), c.closed...) })
	c.closed = nil
}

// pool changes when machines of the pool go.
func (c *chaos) pool() {
	other := draw(c.rng)
	if c.w.shape.NodePool {
		p := read(c.w, &karpv1.NodePool{})
		p.Spec.Disruption.Budgets, p.Spec.Disruption.ConsolidateAfter = other.Budgets, karpv1.DurationOrNever(other.Quiet.String())
		p.Spec.Template.Spec.ExpireAfter = orNever(other.Expire)
		c.w.must(c.w.kube.Update(ctx, p))
		return
	}
	p := read(c.w, &v1alpha5.Provisioner{})
	p.Spec.TTLSecondsUntilExpired = nil
	if other.Expire > 0 {
		p.Spec.TTLSecondsUntilExpired = new(int64(other.Expire / time.Second))
	}
	c.w.must(c.w.kube.Update(ctx, p))
}

// settle lets machines live as long as they are wanted.
func (c *chaos) settle() {
	if c.w.shape.NodePool {
		p := read(c.w, &karpv1.NodePool{})
		p.Spec.Template.Spec.ExpireAfter = orNever(0)
		c.w.must(c.w.kube.Update(ctx, p))
		return
	}
	p := read(c.w, &v1alpha5.Provisioner{})
	p.Spec.TTLSecondsUntilExpired = nil
	c.w.must(c.w.kube.Update(ctx, p))
}
