package migrate

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	awsv1 "karpenter/api/aws/v1"
	awsv1alpha1 "karpenter/api/aws/v1alpha1"
	"karpenter/api/v1alpha5"
	"karpenter/internal/admission"
	"karpenter/internal/aws/class"
	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/convert"
	"karpenter/internal/kube/dialect"
)

// dice makes random objects; the same seed makes the same ones.
type dice struct{ *rand.Rand }

func (d dice) chance(percent int) bool { return d.IntN(100) < percent }

func one[T any](d dice, of ...T) T { return of[d.IntN(len(of))] }

func (d dice) provisioner() *v1alpha5.Provisioner {
	p := &v1alpha5.Provisioner{ObjectMeta: metav1.ObjectMeta{Name: "test"}}
	s := &p.Spec
	s.ProviderRef = &v1alpha5.ProviderRef{Name: "default"}
	for range d.IntN(3) {
		s.Labels = map[string]v1alpha5.LabelValue{one(d, "env", "example.com/team", label.Zone, "node.kubernetes.io/role"): v1alpha5.LabelValue(one(d, "a", "b", ""))}
	}
	if d.chance(30) {
		s.Annotations = map[string]string{"note": "x", "karpenter.sh/do-not-consolidate": "true"}
	}
	for _, taint := range []v1alpha5.Taint{{Key: "a", Value: "x", Effect: "NoSchedule"}, {Key: "b", Effect: "NoExecute"}, {Key: "c", Effect: ""}} {
		if d.chance(25) {
			s.Taints = append(s.Taints, taint)
		} else if d.chance(25) {
			s.StartupTaints = append(s.StartupTaints, taint)
		}
	}
	for range d.IntN(5) {
		s.Requirements = append(s.Requirements, one(d,
			v1alpha5.Requirement{Key: label.CapacityType, Operator: "In", Values: []string{one(d, "spot", "on-demand"), "spot"}},
			v1alpha5.Requirement{Key: one(d, label.Arch, "beta.kubernetes.io/arch"), Operator: one(d, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn), Values: []string{"arm64"}},
			v1alpha5.Requirement{Key: label.OS, Operator: "Exists", Values: []string{"ignored"}},
			v1alpha5.Requirement{Key: "karpenter.k8s.aws/instance-cpu", Operator: one(d, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt), Values: []string{fmt.Sprint(d.IntN(20))}},
			v1alpha5.Requirement{Key: label.InstanceType, Operator: "In", Values: []string{"m6a.large", "c5.large"}},
			v1alpha5.Requirement{Key: "example.com/custom", Operator: one(d, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist)},
			v1alpha5.Requirement{Key: label.Zone, Operator: "NotIn", Values: []string{"us-west-2a"}}))
	}
	if d.chance(40) {
		s.Limits = &v1alpha5.Limits{Resources: corev1.ResourceList{"cpu": resource.MustParse(one(d, "10", "1500m")), "nodes": resource.MustParse("4")}}
	}
	if d.chance(40) {
		s.Weight = new(int32(1 + d.IntN(100)))
	}
	if d.chance(40) {
		s.TTLSecondsUntilExpired = new(one(d, int64(0), 30, 2592000, 1<<62))
	}
	switch d.IntN(3) {
	case 0:
		s.TTLSecondsAfterEmpty = new(int64(d.IntN(100)))
	case 1:
		s.Consolidation = &v1alpha5.Consolidation{Enabled: new(d.chance(70))}
	}
	if d.chance(40) {
		k := &v1alpha5.KubeletConfiguration{}
		if d.chance(50) {
			k.ContainerRuntime = new("containerd")
		}
		if d.chance(70) {
			k.MaxPods, k.ClusterDNS = new(int32(20)), []string{"10.0.0.10"}
			k.SystemReserved = corev1.ResourceList{"cpu": resource.MustParse("100m")}
			k.EvictionSoft = map[string]v1alpha5.EvictionThreshold{"memory.available": "5%"}
			k.EvictionSoftGracePeriod = map[string]v1alpha5.Duration{"memory.available": "1m"}
		}
		s.KubeletConfiguration = k
	}
	return p
}

func (d dice) selector(ids ...string) map[string]string {
	if d.chance(40) {
		return map[string]string{awsv1alpha1.SelectorIDs: one(d, ids[0], ids[0]+", "+ids[1])}
	}
	out := map[string]string{"Name": one(d, "*", "my-*", "a, b,", "x")}
	if d.chance(40) {
		out["role"] = one(d, "*", "private", "private,shared", "a,b,c")
	}
	return out
}

func (d dice) template() *awsv1alpha1.AWSNodeTemplate {
	t := &awsv1alpha1.AWSNodeTemplate{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	s := &t.Spec
	s.SubnetSelector, s.SecurityGroupSelector = d.selector("subnet-1", "subnet-2"), d.selector("sg-1", "sg-2")
	s.InstanceProfile = new("nodes")
	if d.chance(60) {
		s.AMIFamily = new(one(d, "AL2", "AL2023", "Bottlerocket", "Custom"))
	}
	if d.chance(30) || s.AMIFamily != nil && *s.AMIFamily == "Custom" {
		s.AMISelector = d.selector("ami-1", "ami-2")
	}
	if d.chance(30) {
		s.UserData = new(one(d, "echo", ""))
	}
	if d.chance(30) {
		s.Tags = map[string]string{"team": "a"}
	}
	if d.chance(30) {
		s.Context, s.DetailedMonitoring = new("c"), new(true)
	}
	if d.chance(30) {
		s.MetadataOptions = &awsv1alpha1.MetadataOptions{HTTPEndpoint: new("enabled"), HTTPProtocolIPv6: new("disabled"),
			HTTPPutResponseHopLimit: new(int64(1 + d.IntN(3))), HTTPTokens: new(one(d, "optional", "required"))}
	}
	if d.chance(30) {
		size := resource.MustParse(one(d, "20Gi", "1G"))
		s.BlockDeviceMappings = []awsv1alpha1.BlockDeviceMapping{{DeviceName: new("/dev/xvda"), EBS: &awsv1alpha1.EBS{VolumeSize: &size, VolumeType: new("io1"), IOPS: new(int64(100)), Encrypted: new(d.chance(50))}},
			{DeviceName: new("/dev/xvdb"), EBS: &awsv1alpha1.EBS{SnapshotID: new("snap-1"), DeleteOnTermination: new(true), KMSKeyID: new("k")}}}
	}
	return t
}

// only keeps of a pool what both generations mean alike; what the policy table
// names is set apart.
func only(p world.Pool) world.Pool {
	p.Kind, p.Class.Kind, p.Catalog, p.Hash = "", "", "", ""
	p.Labels = maps.Clone(p.Labels)
	for _, key := range []string{label.Provisioner, label.NodePool, dialect.NodePool.ClassLabel} {
		delete(p.Labels, key)
	}
	p.Kubelet = world.Kubelet{} // compared together with the class
	p.EmptyAfter, p.ExpireAfter, p.Lifetime, p.Consolidate, p.Disruption = nil, nil, nil, false, world.Disruption{}
	return p
}

func hub(t *testing.T, pool, classes dialect.Object) (world.Pool, class.Class) {
	t.Helper()
	p, err := convert.PoolOf(pool)
	if err != nil {
		t.Fatal(err)
	}
	var c class.Class
	switch o := classes.(type) {
	case *awsv1alpha1.AWSNodeTemplate:
		c, err = class.FromNodeTemplate(o)
	case *awsv1.EC2NodeClass:
		c, err = class.FromNodeClass(admission.DefaultEC2NodeClass(o))
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Kubelet = new(c.KubeletOf(p.Kubelet))
	c.Kubelet.ContainerRuntime = ""
	c.Ref, c.UID = world.ClassRef{}, ""
	if c.Metadata.IPv6 == class.AsCluster { // the note says what to do in an IPv6 cluster
		c.Metadata.IPv6 = "disabled"
	}
	return p, c
}

// FuzzSameHub: a Provisioner with its AWSNodeTemplate and what they are converted
// to give the same values, apart from what the table of policies names; and so
// does what that is converted back to.
func FuzzSameHub(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		d := dice{rand.New(rand.NewPCG(seed, 3))}
		p, template := d.provisioner(), d.template()
		if admission.ValidateProvisioner(p) != nil {
			t.Skip()
		}
		forth, err := ToV1([]dialect.Object{p, template}, Options{})
		if err != nil || len(forth.Objects) != 2 {
			t.Fatal(err)
		}
		back, err := FromV1(forth.Objects, Options{})
		if err != nil || len(back.Objects) != 2 {
			t.Fatal(err)
		}
		old, oldClass := hub(t, p, template)
		pool, newClass := hub(t, forth.Objects[1], forth.Objects[0])
		again, againClass := hub(t, back.Objects[1], back.Objects[0])
		for what, diff := range map[string]string{
			"pool": cmp.Diff(only(old), only(pool)), "class": cmp.Diff(oldClass, newClass),
			"pool, there and back": cmp.Diff(old.Kubelet.MaxPods, again.Kubelet.MaxPods) + cmp.Diff(only(old), only(again)), "class, there and back": cmp.Diff(oldClass, againClass),
			"age limit": cmp.Diff(old.ExpireAfter, pool.Lifetime) + cmp.Diff(old.ExpireAfter, again.ExpireAfter),
			"emptiness": cmp.Diff(old.EmptyAfter, again.EmptyAfter) + cmp.Diff(old.Consolidate, pool.Consolidate) + cmp.Diff(old.Consolidate, again.Consolidate),
		} {
			if diff != "" {
				t.Errorf("%s: %s", what, diff)
			}
		}
		if !old.Consolidate {
			if diff := cmp.Diff(old.EmptyAfter, pool.EmptyAfter); diff != "" {
				t.Errorf("emptiness: %s", diff)
			}
		}
		if t.Failed() {
			for _, o := range []any{p, template, forth.Objects, back.Objects} {
				text, _ := yaml.Marshal(o)
				t.Log(string(text))
			}
		}
	})
}
