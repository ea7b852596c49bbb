package faults

import (
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "karpenter/api/aws/v1"
	awsv1alpha1 "karpenter/api/aws/v1alpha1"
	karpv1 "karpenter/api/v1"
	"karpenter/api/v1alpha5"
	"karpenter/internal/core/label"
)

// shape is what a history is made of, beside its workload and its troubles.
type shape struct {
	// NodePool: the pool is one, with an EC2NodeClass; else a Provisioner.
	NodePool bool
	// Spot machines may be bought; Queue tells what the cloud does with them.
	Spot, Queue bool
	// Drift: Provisioners have it too.
	Drift bool
	// Consolidate: a Provisioner saves money; else its empty machines go.
	Consolidate bool
	// What a NodePool has besides.
	Quiet, Expire, Grace time.Duration // 0: at once; never; as long as it takes
	EmptyOnly            bool
	Budgets              []karpv1.Budget
}

// draw makes a shape by chance.
func draw(rng *rand.Rand) shape {
	pick := func(list ...time.Duration) time.Duration { return list[rng.IntN(len(list))] }
	s := shape{NodePool: rng.IntN(2) == 0, Spot: rng.IntN(2) == 0, Queue: rng.IntN(3) > 0, Drift: rng.IntN(2) == 0, Consolidate: rng.IntN(2) == 0,
		Quiet: pick(0, 30*time.Second, 2*time.Minute), Expire: pick(0, 0, 12*time.Minute, 30*time.Minute), Grace: pick(0, 0, 5*time.Minute, time.Minute),
		EmptyOnly: rng.IntN(4) == 0}
	for range rng.IntN(3) {
		b := karpv1.Budget{Nodes: []string{"1", "30%", "100%", "2"}[rng.IntN(4)]}
		switch rng.IntN(4) {
		case 0:
			b.Reasons = []karpv1.DisruptionReason{[]karpv1.DisruptionReason{"Empty", "Drifted", "Underutilized"}[rng.IntN(3)]}
		case 1: // for four minutes of every ten nothing goes
			at := karpv1.Schedule("*/10 * * * *")
			b.Nodes, b.Schedule, b.Duration = "0", &at, new("4m")
		}
		s.Budgets = append(s.Budgets, b)
	}
	return s
}

// String is for people who look at what has gone wrong.
func (s shape) String() string {
	if !s.NodePool {
		return fmt.Sprintf("Provisioner, spot %v, queue %v, drift %v, consolidation %v", s.Spot, s.Queue, s.Drift, s.Consolidate)
	}
	text := fmt.Sprintf("NodePool, spot %v, queue %v, consolidateAfter %s (empty only: %v), expireAfter %s, terminationGracePeriod %s, budgets", s.Spot, s.Queue, s.Quiet, s.EmptyOnly, s.Expire, s.Grace)
	for _, b := range s.Budgets {
		text += fmt.Sprintf(" %s%v", b.Nodes, b.Reasons)
		if b.Schedule != nil {
			text += " at times"
		}
	}
	return text
}

// queueName is the interruption queue of histories that have one.
const queueName = "faults"

// markets are the capacity types that may be bought.
func (s shape) markets() []string {
	if s.Spot {
		return []string{label.OnDemand, label.Spot}
	}
	return []string{label.OnDemand}
}

var selected = map[string]string{"faults": "true"}

// objects are the pool and its class.
func (s shape) objects(limit corev1.ResourceList) []client.Object {
	meta := metav1.ObjectMeta{Name: poolName, CreationTimestamp: metav1.NewTime(start.Add(-time.Hour))}
	if !s.NodePool {
		t := &awsv1alpha1.AWSNodeTemplate{ObjectMeta: meta}
		t.Spec.SubnetSelector, t.Spec.SecurityGroupSelector = selected, selected
		p := &v1alpha5.Provisioner{ObjectMeta: meta}
		p.Spec.ProviderRef = &v1alpha5.ProviderRef{Name: poolName}
		p.Spec.Limits = &v1alpha5.Limits{Resources: limit}
		p.Spec.Requirements = []v1alpha5.Requirement{{Key: label.CapacityType, Operator: corev1.NodeSelectorOpIn, Values: s.markets()}}
		if s.Consolidate {
			p.Spec.Consolidation = &v1alpha5.Consolidation{Enabled: new(true)}
		} else {
			p.Spec.TTLSecondsAfterEmpty = new(int64(30))
		}
		return []client.Object{t, p}
	}
	c := &awsv1.EC2NodeClass{ObjectMeta: meta}
	c.Spec.SubnetSelectorTerms = []awsv1.SubnetSelectorTerm{{Tags: selected}}
	c.Spec.SecurityGroupSelectorTerms = []awsv1.SecurityGroupSelectorTerm{{Tags: selected}}
	c.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}}
	c.Spec.InstanceProfile = new("node-profile")
	p := &karpv1.NodePool{ObjectMeta: meta}
	p.Spec.Limits = limit
	p.Spec.Template.Spec.NodeClassRef = karpv1.NodeClassRef{Group: awsv1.GroupVersion.Group, Kind: "EC2NodeClass", Name: poolName}
	p.Spec.Template.Spec.Requirements = []karpv1.Requirement{{Key: label.CapacityType, Operator: corev1.NodeSelectorOpIn, Values: s.markets()}}
	p.Spec.Template.Spec.ExpireAfter = orNever(s.Expire)
	if s.Grace > 0 {
		p.Spec.Template.Spec.TerminationGracePeriod = new(karpv1.Duration(s.Grace.String()))
	}
	p.Spec.Disruption = karpv1.Disruption{ConsolidateAfter: karpv1.DurationOrNever(s.Quiet.String()), ConsolidationPolicy: karpv1.ConsolidationWhenEmptyOrUnderutilized, Budgets: s.Budgets}
	if s.EmptyOnly {
		p.Spec.Disruption.ConsolidationPolicy = karpv1.ConsolidationWhenEmpty
	}
	return []client.Object{c, p}
}

func orNever(d time.Duration) karpv1.DurationOrNever {
	if d == 0 {
		return "Never"
	}
	return karpv1.DurationOrNever(d.String())
}
