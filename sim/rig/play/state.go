package play

import (
	"encoding/json"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "karpenter/api/aws/v1"
	awsv1alpha1 "karpenter/api/aws/v1alpha1"
	karpv1 "karpenter/api/v1"
	"karpenter/api/v1alpha5"
	"karpenter/internal/aws/launch"
	"karpenter/internal/core/label"
	"karpenter/internal/core/schedule"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/convert"
	"karpenter/internal/kube/dialect"
	"karpenter/internal/kube/nominate"
	"karpenter/internal/scenario/cases"
	"karpenter/sim/ec2"
	"karpenter/sim/rig"
)

// state is what has come of the case up to now.
func (p *player) state() *cases.State {
	kube := p.rig.Kube.Client("world")
	var nodes corev1.NodeList
	var pods corev1.PodList
	var claims karpv1.NodeClaimList
	var sets appsv1.DaemonSetList
	for _, l := range []client.ObjectList{&nodes, &pods, &claims, &sets} {
		p.must(kube.List(ctx, l))
	}
	s := &cases.State{
		At: p.rig.Now().Sub(p.c.Now), MostAlive: p.mostAlive, Verdicts: p.verdicts,
		Events: p.rig.Log.Events, Calls: p.rig.Log.Calls, Texts: append(slices.Clone(p.rig.Log.Texts), p.conditions()...),
		Known: p.rig.Log.Nodes(), Homes: map[string]string{},
		Requests: func(pod *corev1.Pod) corev1.ResourceList { return convert.ResourceList(convert.Pod(pod).Requests) },
		Daemon: func(name string) corev1.ResourceList {
			for i := range sets.Items {
				if d := &sets.Items[i]; d.Name == name {
					return convert.ResourceList(convert.Daemon(d).Template.Requests)
				}
			}
			return nil
		},
		Stored: p.stored,
	}
	for i := range nodes.Items {
		s.Nodes = append(s.Nodes, &nodes.Items[i])
	}
	for i := range pods.Items {
		s.Pods = append(s.Pods, &pods.Items[i])
	}
	for i := range claims.Items {
		s.Claims = append(s.Claims, &claims.Items[i])
	}
	s.Queued = len(p.rig.Cloud.Waiting(queueName))
	p.homes(s)
	p.machines(s, sets.Items)
	p.orphans(s)
	if pr := p.rig.Process; pr != nil {
		for k := range pr.All.Provider.Unavailable().All() {
			s.Refused = append(s.Refused, cases.Offering{InstanceType: k.Type, Zone: k.Zone, CapacityType: k.CapacityType})
		}
	}
	return s
}

// homes tells where pods are, or for which machine they are planned.
func (p *player) homes(s *cases.State) {
	for _, c := range s.Claims {
		if c.DeletionTimestamp != nil || c.Status.ProviderID == "" {
			continue
		}
		home := c.Status.ProviderID[strings.LastIndexByte(c.Status.ProviderID, '/')+1:]
		for _, n := range s.Nodes {
			if n.Spec.ProviderID == c.Status.ProviderID {
				home = n.Name
			}
		}
		for _, pod := range convert.Record(c).Pods {
			s.Homes[pod.String()] = home
		}
	}
	planned := p.planned()
	for _, pod := range s.Pods {
		key := pod.Namespace + "/" + pod.Name
		node, ours := nominate.Of(pod)
		switch {
		case pod.Spec.NodeName != "":
			s.Homes[key] = pod.Spec.NodeName
		case ours && s.Homes[key] == "":
			s.Homes[key] = node
		case s.Homes[key] == "" && planned[key] != "" && s.Node(planned[key]) != nil:
			s.Homes[key] = planned[key]
		}
	}
}

// planned tells for which existing nodes pods were planned last, as they were
// told: kube-scheduler may have to wait for others, and take the nomination back.
func (p *player) planned() map[string]string {
	out := map[string]string{}
	for _, t := range p.rig.Log.Texts {
		if len(t.About) != 1 || !strings.HasPrefix(t.About[0], "Pod/") {
			continue
		}
		pod := strings.TrimPrefix(t.About[0], "Pod/")
		node, onNode := strings.CutPrefix(t.Words, "Nominated: pod should run on node ")
		switch {
		case onNode:
			out[pod] = node
		case strings.HasPrefix(t.Words, "Nominated: "), strings.HasPrefix(t.Words, "FailedScheduling: "):
			delete(out, pod)
		}
	}
	return out
}

func (p *player) machines(s *cases.State, sets []appsv1.DaemonSet) {
	for i := range p.launched {
		in := &p.launched[i]
		m := cases.Machine{ID: in.ID, Type: in.Type, Zone: in.Zone, Market: string(in.Market), Image: in.ImageID, Subnet: in.SubnetID, Claim: in.Tags[launch.ClaimTag]}
		if t := p.typ(in.Type); t != nil {
			m.USD, _ = t.USD(string(in.Market), in.Zone)
		}
		n := p.nodeOf(in)
		for _, c := range s.Claims {
			if c.Name == m.Claim { // what registration will put right
				n.Labels = merged(n.Labels, c.Labels)
			}
		}
		for _, o := range s.Nodes {
			if o.Spec.ProviderID == in.ProviderID() {
				n, m.Node = o, o.Name
			}
		}
		_, m.Pool = dialect.Owner(n.Labels)
		if m.Pool == "" {
			m.Pool = in.Tags[label.NodePool] + in.Tags[label.Provisioner]
		}
		m.Labels, m.Taints = n.Labels, n.Spec.Taints
		for d := range sets {
			if p.runs(s, &sets[d], n, m.Node != "") {
				m.Daemons = append(m.Daemons, sets[d].Name)
			}
		}
		s.Machines = append(s.Machines, m)
	}
}

// runs reports whether a DaemonSet has a pod on a node, or will have.
func (p *player) runs(s *cases.State, set *appsv1.DaemonSet, n *corev1.Node, joined bool) bool {
	if !joined {
		return p.wants(set, n)
	}
	return slices.ContainsFunc(s.Pods, func(pod *corev1.Pod) bool {
		ref := metav1.GetControllerOf(pod)
		return ref != nil && ref.UID == set.UID && pod.Spec.NodeName == n.Name
	})
}

// orphans are running machines with our tags and without a claim.
func (p *player) orphans(s *cases.State) {
	for _, i := range p.rig.Cloud.Instances() {
		ours := i.Tags[launch.OwnedTag(p.cluster())] == "owned" && i.Tags[launch.ClaimTag] != ""
		claimed := slices.ContainsFunc(s.Claims, func(c *karpv1.NodeClaim) bool {
			return strings.HasSuffix(c.Status.ProviderID, "/"+i.ID) || c.Name == i.Tags[launch.ClaimTag]
		})
		if ours && !claimed && (i.State == ec2.Running || i.State == ec2.Pending) {
			s.Orphans = append(s.Orphans, i.ID)
		}
	}
}

// conditions are what objects say about themselves.
func (p *player) conditions() (out []cases.Text) {
	add := func(o client.Object, list []metav1.Condition) {
		for _, c := range list {
			out = append(out, cases.Text{About: []string{rig.Name(o)}, Words: strings.Join([]string{c.Type, string(c.Status), c.Reason, c.Message}, " ")})
		}
	}
	kube := p.rig.Kube.Client("world")
	var claims karpv1.NodeClaimList
	var pools karpv1.NodePoolList
	var provisioners v1alpha5.ProvisionerList
	var classes awsv1.EC2NodeClassList
	var templates awsv1alpha1.AWSNodeTemplateList
	for _, l := range []client.ObjectList{&claims, &pools, &provisioners, &classes, &templates} {
		p.must(kube.List(ctx, l))
	}
	for i := range claims.Items {
		add(&claims.Items[i], claims.Items[i].Status.Conditions)
	}
	for i := range pools.Items {
		add(&pools.Items[i], pools.Items[i].Status.Conditions)
	}
	for i := range provisioners.Items {
		for _, c := range provisioners.Items[i].Status.Conditions {
			out = append(out, cases.Text{About: []string{"Provisioner/" + provisioners.Items[i].Name}, Words: strings.Join([]string{string(c.Type), string(c.Status), c.Reason, c.Message}, " ")})
		}
	}
	for i := range classes.Items {
		add(&classes.Items[i], classes.Items[i].Status.Conditions)
	}
	return out
}

// stored is an object as the API server would show it.
func (p *player) stored(kind, name string) map[string]any {
	for _, try := range []string{kind, "NodePool", "EC2NodeClass", "Provisioner", "AWSNodeTemplate"} {
		if try == "" {
			continue
		}
		o, err := p.find(try + "/" + name)
		if err != nil {
			continue
		}
		text, err := json.Marshal(o)
		p.must(err)
		var out map[string]any
		p.must(json.Unmarshal(text, &out))
		return out
	}
	return nil
}

// wants reports whether a DaemonSet would put a pod on a node, by the rules of
// its controller. Taints of booting do not last.
func (p *player) wants(set *appsv1.DaemonSet, n *corev1.Node) bool {
	d := convert.Daemon(set)
	if !schedule.Suits(&d.Template, n.Labels) {
		return false
	}
	for _, t := range n.Spec.Taints {
		taint := world.Taint{Key: t.Key, Value: t.Value, Effect: world.Effect(t.Effect)}
		if t.Key != dialect.TaintUnregistered.Key && taint.Effect != world.PreferNoSchedule && !world.Tolerated(taint, d.Template.Tolerations) {
			return false
		}
	}
	return true
}
