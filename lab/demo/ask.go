package demo

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
)

// refusal is the event in which karpenter says why it buys nothing for a pod.
func (o *observer) refusal() *corev1.Event {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.events {
		from := e.Source.Component + e.ReportingController
		// By UID: events outlive the pods of an earlier demo.
		p, ours := o.pods[e.InvolvedObject.Name]
		if ours && p.UID == e.InvolvedObject.UID && e.Reason == "FailedScheduling" && strings.Contains(from, "karpenter") {
			return e
		}
	}
	return nil
}

// running counts the pods that run and are not going away.
func (o *observer) running() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for _, p := range o.pods {
		if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

// ownNodes names the nodes of the demo's pool.
func (o *observer) ownNodes() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var names []string
	for _, name := range slices.Sorted(maps.Keys(o.nodes)) {
		if o.nodes[name].Labels[o.poolLabel] == poolName {
			names = append(names, short(name))
		}
	}
	return names
}

// latencySince is the time from the first pod that was found unschedulable
// after mark to the first CreateFleet after it.
func (o *observer) latencySince(mark time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	var first time.Time
	for _, at := range o.unschedulable {
		if at.After(mark) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	for _, c := range o.calls {
		if c.Action == "CreateFleet" && !first.IsZero() && !c.Time.Before(first) {
			return c.Time.Sub(first)
		}
	}
	return 0
}

// emptySpells tells, for each node that is gone, how long it was empty.
func (o *observer) emptySpells() map[string]time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	spells := map[string]time.Duration{}
	for node, gone := range o.gone {
		if since, ok := o.empty[node]; ok {
			spells[node] = gone.Sub(since)
		}
	}
	return spells
}

// showInstances shows what EC2 says, by the aws command line if it is
// installed.
func (d *Demo) showInstances(ctx context.Context, found []types.Instance) {
	filter := "Name=tag:" + d.Edition.poolLabel + ",Values=" + poolName
	query := "Reservations[].Instances[].[InstanceId,InstanceType,State.Name]"
	args := []string{"ec2", "describe-instances", "--output", "text", "--filters", filter, "--query", query}
	if aws, err := exec.LookPath("aws"); err == nil {
		cmd := exec.CommandContext(ctx, aws, args...)
		cmd.Env = append(os.Environ(), d.lab.Env()...)
		if out, err := cmd.Output(); err == nil {
			d.Screen.Command(append([]string{"aws"}, args...)...)
			d.Screen.Output(string(out))
			return
		}
	}
	d.Screen.Say("DescribeInstances, by the AWS SDK (the aws command line is not installed):")
	for _, i := range found {
		d.Screen.Output(fmt.Sprintf("%s\t%s\t%s", *i.InstanceId, i.InstanceType, i.State.Name))
	}
}
