package demo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"

	"karpenter/internal/core/label"
	"karpenter/lab"
	"karpenter/sim/ec2"
)

const (
	finalizer = "karpenter.sh/termination"
	// emptyFor is how long the workshop's pool keeps empty machines.
	emptyFor = 30 * time.Second
)

// impossible plays the workshop as it is printed: the pod asks for a label that
// no provisioner gives.
func (d *Demo) impossible(ctx context.Context) error {
	d.Screen.Say("The workshop's %s buys m6a.xlarge machines. Its Deployment asks for nodes with the label intent=apps, which the %s does not give.", d.Edition.poolKind, d.Edition.poolKind)
	for _, args := range [][]string{
		{"apply", "-f", d.Edition.manifests + d.Edition.poolFile, "-f", d.Edition.manifests + d.Edition.classFile, "-f", d.Edition.manifests + "inflate.yaml"},
		{"scale", "deployment", "inflate", "--replicas", "1"},
	} {
		if err := d.kubectl(ctx, args...); err != nil {
			return err
		}
	}
	var said *corev1.Event
	err := d.until(ctx, 30*time.Second, func() error {
		said = d.observer.refusal()
		if said == nil {
			return errNone("event FailedScheduling from karpenter on the pod")
		}
		return nil
	})
	if err != nil {
		return err
	}
	d.line.add(entry{at: time.Now(), who: "karpenter", what: "event FailedScheduling on the pod: " + said.Message})
	d.line.flush(true)
	for _, word := range []string{poolName, "intent"} {
		if !strings.Contains(said.Message, word) {
			return fmt.Errorf("the event does not name %q", word)
		}
	}
	err = d.hold(ctx, 2*time.Second, func() error {
		if n := len(d.observer.machines()); n > 0 {
			return fmt.Errorf("%s bought for a pod that would not fit", plural(n, "machine"))
		}
		return nil
	})
	if err == nil {
		d.Screen.Good("the pod waits, the event names %s %s and label intent, nothing was bought", d.Edition.pool, poolName)
	}
	return err
}

// firstMachine gives the pool the label, so that a machine suits.
func (d *Demo) firstMachine(ctx context.Context) error {
	d.Screen.Say("With the label added to the %s, a machine is worth buying.", d.Edition.poolKind)
	if err := d.kubectl(ctx, "patch", d.Edition.pool, poolName, "--type", "merge", "-p", d.Edition.addLabel); err != nil {
		return err
	}
	if err := d.podsRun(ctx, 1); err != nil {
		return err
	}
	machines := d.observer.machines()
	if len(machines) != 1 {
		return fmt.Errorf("%s bought, want one", plural(len(machines), "machine"))
	}
	m := machines[0]
	if m.Type != "m6a.xlarge" || m.Market != ec2.OnDemand {
		return fmt.Errorf("bought %s %s, want on-demand m6a.xlarge", m.Market, m.Type)
	}
	node, err := d.initialised(ctx, m.ID)
	if err != nil {
		return err
	}
	if err := d.checkNode(node, m); err != nil {
		return err
	}
	d.line.flush(true)
	d.Screen.Good("one on-demand m6a.xlarge at %s; the pod runs on %s", d.observer.price(m), short(node.Name))
	d.Screen.Good("its labels are those of the specification, its finalizer is set")
	return d.kubectl(ctx, "get", "nodes", "-L", "env,intent,karpenter.sh/capacity-type")
}

// podsRun waits until n pods of the Deployment run.
func (d *Demo) podsRun(ctx context.Context, n int) error {
	return d.until(ctx, 2*time.Minute, func() error {
		if running := d.observer.running(); running != n {
			return fmt.Errorf("%d of %s run", running, plural(n, "pod"))
		}
		return nil
	})
}

// initialised waits until the node of an instance is fully usable.
func (d *Demo) initialised(ctx context.Context, id string) (node *corev1.Node, err error) {
	return node, d.until(ctx, time.Minute, func() error {
		var ok bool
		if node, ok = d.observer.nodeOf(id); !ok {
			return errNone("node of " + id)
		}
		if node.Labels[label.Initialized] != "true" {
			return fmt.Errorf("node %s has no label %s=true", node.Name, label.Initialized)
		}
		return nil
	})
}

// checkNode compares a node with what the specification says about it.
func (d *Demo) checkNode(n *corev1.Node, m ec2.Instance) error {
	want := map[string]string{
		"env": "prod", "env-test": "true", "eks.amazonaws.com/nodegroup": "test", "intent": "apps",
		d.Edition.poolLabel: poolName, label.CapacityType: label.OnDemand,
		"karpenter.k8s.aws/instance-family": "m6a", "karpenter.k8s.aws/instance-size": "xlarge",
		label.InstanceType: m.Type, label.Zone: m.Zone, label.Registered: "true", label.Initialized: "true",
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if n.Labels[key] != want[key] {
			return fmt.Errorf("node %s: label %s is %q, want %q", n.Name, key, n.Labels[key], want[key])
		}
	}
	if !slices.Contains(n.Finalizers, finalizer) {
		return fmt.Errorf("node %s: no finalizer %s", n.Name, finalizer)
	}
	return nil
}

// scale goes up to ten pods and down to none.
func (d *Demo) scale(ctx context.Context) error {
	d.Screen.Say("Two more pods fit on the first machine; seven need three more machines.")
	before := len(d.observer.machines())
	mark := time.Now()
	if err := d.kubectl(ctx, "scale", "deployment", "inflate", "--replicas", "10"); err != nil {
		return err
	}
	if err := d.podsRun(ctx, 10); err != nil {
		return err
	}
	machines := d.observer.machines()
	if len(machines) <= before {
		return fmt.Errorf("%d machines, as before", len(machines))
	}
	for _, m := range machines {
		if _, err := d.initialised(ctx, m.ID); err != nil {
			return err
		}
	}
	d.latency = d.observer.latencySince(mark)
	d.line.flush(true)
	d.Screen.Good("ten pods run on %s", plural(len(machines), "machine"))
	d.table(machines)

	d.Screen.Say("\nWithout pods the machines are empty, and empty machines go after %s.", emptyFor)
	if err := d.kubectl(ctx, "scale", "deployment", "inflate", "--replicas", "0"); err != nil {
		return err
	}
	if err := d.until(ctx, 2*time.Minute, d.allGone); err != nil {
		return err
	}
	d.line.flush(true)
	for node, delay := range d.observer.emptySpells() {
		if delay < emptyFor {
			return fmt.Errorf("node %s went %s after it was empty, before the %s of %s", node, delay.Round(time.Millisecond), emptyFor, d.Edition.emptyField)
		}
	}
	d.Screen.Good("every machine stayed %s after it was empty, then was drained and terminated", emptyFor)
	return d.terminated(ctx, machines)
}

// table lists machines.
func (d *Demo) table(machines []ec2.Instance) {
	for _, m := range machines {
		name := "?"
		if n, ok := d.observer.nodeOf(m.ID); ok {
			name = short(n.Name)
		}
		d.Screen.Output(fmt.Sprintf("%-19s %-18s %-11s %-11s %s", m.ID, name, m.Type, m.Zone, d.observer.price(m)))
	}
}

// allGone holds when no machine and no node is left.
func (d *Demo) allGone() error {
	if left := d.observer.machines(); len(left) > 0 {
		return fmt.Errorf("%s there", plural(len(left), "machine"))
	}
	if left := d.observer.ownNodes(); len(left) > 0 {
		return fmt.Errorf("nodes there: %s", strings.Join(left, ", "))
	}
	return nil
}

// terminated asks EC2 about the machines and checks their state and tags.
func (d *Demo) terminated(ctx context.Context, machines []ec2.Instance) error {
	var found []types.Instance
	err := d.until(ctx, 30*time.Second, func() (err error) {
		if found, err = d.cloud.describe(ctx, d.Edition.poolLabel, poolName); err != nil {
			return err
		}
		for _, i := range found {
			if i.State.Name != types.InstanceStateNameTerminated {
				return fmt.Errorf("instance %s is %s", *i.InstanceId, i.State.Name)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	d.line.flush(true)
	d.showInstances(ctx, found)
	want := map[string]string{
		d.Edition.poolLabel:       poolName,
		"KarpenerProvisionerName": "default", "NodeType": "karpenter-workshop", "IntentLabel": "apps",
		"kubernetes.io/cluster/" + lab.ClusterName: "owned",
	}
	maps.Copy(want, d.Edition.tags)
	byID := map[string]types.Instance{}
	for _, i := range found {
		byID[*i.InstanceId] = i
	}
	for _, m := range machines {
		i, ok := byID[m.ID]
		if !ok {
			return fmt.Errorf("DescribeInstances does not show %s under tag %s=%s", m.ID, d.Edition.poolLabel, poolName)
		}
		tags := map[string]string{}
		for _, t := range i.Tags {
			tags[*t.Key] = *t.Value
		}
		for _, key := range slices.Sorted(maps.Keys(want)) {
			if tags[key] != want[key] {
				return fmt.Errorf("instance %s: tag %s is %q, want %q", m.ID, key, tags[key], want[key])
			}
		}
	}
	d.Screen.Good("EC2 shows all %d terminated, with these tags:", len(machines))
	for _, key := range slices.Sorted(maps.Keys(want)) {
		d.Screen.Output("    " + key + " = " + want[key])
	}
	return nil
}

// cleanUp ends the workshop as its page does.
func (d *Demo) cleanUp(ctx context.Context) error {
	for _, args := range [][]string{
		{"delete", "deployment", "inflate"},
		{"get", "nodes", "-l", d.Edition.poolLabel},
		{"delete", "--timeout=60s", "-f", d.Edition.manifests + d.Edition.poolFile, "-f", d.Edition.manifests + d.Edition.classFile},
		{"get", "nodes,nodeclaims"},
	} {
		if err := d.kubectl(ctx, args...); err != nil {
			return err
		}
	}
	if err := d.allGone(); err != nil {
		return err
	}
	d.Screen.Good("nothing is left")
	return nil
}
