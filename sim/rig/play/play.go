// Package play plays cases on the rig.
//
// It may import the rig and what it drives. What always holds: a case that asks
// for something that cannot be played is an error that says what.
package play

import (
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"karpenter/internal/aws"
	"karpenter/internal/aws/launch"
	"karpenter/internal/kube/nominate"
	"karpenter/internal/scenario/cases"
	"karpenter/internal/settings"
	"karpenter/sim/cluster"
	"karpenter/sim/ec2"
	"karpenter/sim/rig"
)

// Report says how a case went.
type Report struct {
	Case    string   `json:"case"`
	Results []Result `json:"results"`
	// Timeline is what happened, in words.
	Timeline []string `json:"timeline,omitempty"`
}

// Result is a check and when it had to hold; At is empty for the end.
type Result struct {
	At string `json:"at,omitempty"`
	cases.Result
}

// Failed counts the checks that do not hold.
func (r *Report) Failed() (n int) {
	for _, one := range r.Results {
		if !one.OK {
			n++
		}
	}
	return n
}

// joins is how long a machine takes to become a node where the case says
// nothing.
const joins = time.Minute

// before is how long the controller has been running when a case begins.
const before = time.Minute

const forever = 10_000 * time.Hour

// player is one case being played.
type player struct {
	c    *cases.Case
	seed uint64
	// live: the world goes on by itself, as fast as clusters do, and the case has
	// no passes of its own.
	live bool
	// listens: there is an interruption queue, whatever the steps are.
	listens bool
	// regionName and sold are the region and what it sells, where the case does
	// not say that itself; region is what came of it.
	regionName string
	sold       *ec2.World
	region     ec2.World
	// templates are Jobs that are not run themselves, by kind, namespace and name.
	templates map[string]*batchv1.Job
	rig       *rig.Rig
	env       *cluster.Cluster
	// around is what goes on in the cluster.
	around *rig.Around
	// raw are the objects of the case as they were written.
	raw []map[string]any
	// launched are the machines of the run, in order; mostAlive of all at once.
	launched  []ec2.Instance
	mostAlive int
	// registers: the case says itself when machines join.
	registers bool
	verdicts  map[string]string
	held      map[string]string // pods of nominations, and the node that each waits for
}

// Play plays a case. timeline keeps what happened.
func Play(c *cases.Case, timeline bool) (*Report, error) {
	p := &player{c: c, seed: 1, regionName: regionName, verdicts: map[string]string{}, held: map[string]string{}}
	out := &Report{Case: c.Name}
	if err := p.build(timeline); err != nil {
		return nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	if err := p.steps(out); err != nil {
		return nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	out.Timeline = p.rig.Log.Lines
	return out, nil
}

// build makes the world as it is at time 0.
func (p *player) build(timeline bool) error {
	objects, err := p.objects()
	if err != nil {
		return err
	}
	p.region = p.regionOf()
	set := settings.Default()
	set.ClusterName = p.cluster()
	if p.hearsMessages() {
		set.InterruptionQueue = queueName
	}
	p.rig = rig.New(rig.Options{
		Seed: p.seed, Start: p.c.Now.Add(-before), Settings: set,
		Cloud: ec2.Options{Region: p.regionName, Zones: p.c.Cloud.Zones, Account: account, World: &p.region, KeepTerminated: p.keep(),
			BootDelay: 5 * time.Second, JitterPercent: -1},
		Shared: aws.Settings{
			Cluster: launch.Cluster{Name: set.ClusterName, Endpoint: "https://api.case.test", CABundle: "Y2FzZQ==", Version: kubeVersion,
				DefaultInstanceProfile: "node-profile", ENILimitedPodDensity: set.EnableENILimitedPodDensity},
			VMMemoryOverheadPercent: set.VMMemoryOverheadPercent,
		},
	})
	p.rig.Log.Keep = timeline
	if err := p.openQueue(); err != nil {
		return err
	}
	p.rig.Cloud.Subscribe(p.machineChanged)
	if err := p.fill(objects); err != nil {
		return err
	}
	p.warmUp()
	if err := p.faults(); err != nil {
		return err
	}
	p.env, err = cluster.New(p.rig.Kube, p.options())
	if err != nil {
		return err
	}
	step := p.env.Background // the scheduler of a case binds at the end of each step
	if p.live {
		step = p.env.Step
	}
	p.around = p.rig.Surround(step)
	p.registers = slices.ContainsFunc(p.c.Steps, func(s cases.Step) bool { return s.Register != "" })
	return nil
}

// options say how the cluster behaves: in a case, as it says step by step; one
// that goes on by itself is as clusters are.
func (p *player) options() cluster.Options {
	if p.live {
		return cluster.Options{Down: p.down}
	}
	return cluster.Options{
		Start: -1, Down: p.down, Hold: p.hold, Daemons: p.daemons,
		Detach: forever, // attachments of a case go when it says so
	}
}

// keep is how long machines that have ended can still be described: in a case
// until it is over, otherwise as long as EC2 does.
func (p *player) keep() time.Duration {
	if p.live {
		return time.Hour
	}
	return 1000 * time.Hour
}

// warmUp lets the controller look at classes and pools before the case begins:
// it has been running for a while.
func (p *player) warmUp() {
	keep := p.rig.Log.Keep
	p.rig.Log.Keep = false
	p.rig.Start()
	p.rig.Idle = []string{"planner", "gc", "claim", "drain", "replace", "notice"}
	p.rig.Run(p.c.Now)
	p.rig.Idle = nil
	p.rig.Log.Begin()
	p.rig.Log.Keep = keep
}

func (p *player) cluster() string {
	if p.c.Cloud.ClusterName != "" {
		return p.c.Cloud.ClusterName
	}
	return "case"
}

// machineChanged follows the machines of the cloud.
func (p *player) machineChanged(e ec2.Event) {
	i := e.Instance
	if p.around != nil {
		p.around.Wake() // a kubelet may be gone
	}
	if i.FleetID == "" {
		return
	}
	if p.live {
		if e.From == "" && !i.NeverJoins {
			p.rig.After(joins, func() { p.join(i.ID, joining{ready: true}) })
		}
		return
	}
	at := slices.IndexFunc(p.launched, func(o ec2.Instance) bool { return o.ID == i.ID })
	if at >= 0 {
		p.launched[at] = i
	} else {
		p.launched = append(p.launched, i)
		p.rig.Log.Launched(i.ID)
		alive := 0
		for _, o := range p.rig.Cloud.Instances() {
			if !o.Gone() {
				alive++
			}
		}
		p.mostAlive = max(p.mostAlive, alive)
		if !p.registers && !i.NeverJoins {
			p.rig.After(joins, func() { p.join(i.ID, joining{ready: true}) })
		}
	}
}

// down reports whether there is no machine behind a node.
func (p *player) down(n *corev1.Node) bool {
	i, ok := p.rig.Cloud.Instance(instanceOf(n))
	return ok && i.State != ec2.Running && i.State != ec2.Pending
}

// hold keeps the scheduler from pods that wait for a node that is not ready.
func (p *player) hold(pod *corev1.Pod) bool {
	name, held := p.held[pod.Namespace+"/"+pod.Name]
	if !held {
		node, ours := nominate.Of(pod) // by preemption, which waits for its victims
		return node != "" && !ours
	}
	n := &corev1.Node{}
	if err := p.get(n, "", name); err != nil {
		return true
	}
	return !slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// daemons reports whether DaemonSets act on a node: not on those of the file.
func (p *player) daemons(n *corev1.Node) bool { return n.Annotations[fromFile] == "" }
