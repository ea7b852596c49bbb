package migrate

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "karpenter/api/aws/v1"
	awsv1alpha1 "karpenter/api/aws/v1alpha1"
	karpv1 "karpenter/api/v1"
	"karpenter/api/v1alpha5"
	"karpenter/internal/admission"
	"karpenter/internal/kube/dialect"
)

// nodePool converts a Provisioner, with what it means where it says nothing.
func (j *job) nodePool(p *v1alpha5.Provisioner, shared *shared) {
	from := v1alpha5.Kind + "/" + p.Name
	if err := admission.ValidateProvisioner(p); err != nil {
		j.errs = append(j.errs, err)
		return
	}
	out := &karpv1.NodePool{
		TypeMeta:   metav1.TypeMeta{APIVersion: karpv1.GroupVersion.String(), Kind: karpv1.KindNodePool},
		ObjectMeta: metadata(p.ObjectMeta, p.Name),
	}
	if ref := p.Spec.ProviderRef; ref != nil && p.Spec.Provider == nil && shared.has(ref.Name) && !j.made(shared.name(p)) {
		j.waits(from, awsv1alpha1.Kind+"/"+ref.Name)
		return
	}
	before := len(j.errs)
	t := &out.Spec.Template
	for k, v := range p.Spec.Labels {
		if t.Metadata.Labels == nil {
			t.Metadata.Labels = map[string]karpv1.LabelValue{}
		}
		t.Metadata.Labels[k] = karpv1.LabelValue(v)
	}
	t.Metadata.Annotations = p.Spec.Annotations
	t.Spec.Taints, t.Spec.StartupTaints = taints(p.Spec.Taints), taints(p.Spec.StartupTaints)
	t.Spec.Requirements = j.requirements(from, p)
	out.Spec.Weight = p.Spec.Weight
	if p.Spec.Limits != nil {
		out.Spec.Limits = p.Spec.Limits.Resources
	}
	j.lifetimes(from, p, out)
	j.classRef(from, p, shared, &t.Spec.NodeClassRef)
	j.adopt(from, p.Name, out)
	j.note(from, "karpenter.sh/provisioner-name", "pods that select this label find no machine of the NodePool: let them select karpenter.sh/nodepool: %s", p.Name)
	if len(j.errs) > before {
		return
	}
	if err := admission.ValidateNodePool(admission.DefaultNodePool(out)); err != nil {
		j.errs = append(j.errs, fmt.Errorf("%s: what it becomes would be refused: %w", from, err))
		return
	}
	j.pools = append(j.pools, out)
}

// adopt lets the NodePool take the machines of the Provisioner over, if the class
// that it refers to comes with it: machines must not go to a pool that cannot
// buy.
func (j *job) adopt(from, provisioner string, out *karpv1.NodePool) {
	class := out.Spec.Template.Spec.NodeClassRef.Name
	switch {
	case !j.opt.Adopt:
		j.note(from, "", "its machines stay with it; they go over to the NodePool, and none is replaced, when that has the annotation %s: %s (--adopt)", dialect.AnnotationAdopt, provisioner)
	case !j.made(class):
		j.note(from, "", "NodePool/%s gets no annotation %s, because EC2NodeClass/%s, to which it refers, is not made here: convert the AWSNodeTemplate with it, or annotate the NodePool when the class is ready",
			out.Name, dialect.AnnotationAdopt, class)
	default:
		metav1.SetMetaDataAnnotation(&out.ObjectMeta, dialect.AnnotationAdopt, provisioner)
	}
}

func taints(list []v1alpha5.Taint) []karpv1.Taint {
	var out []karpv1.Taint
	for _, t := range list {
		out = append(out, karpv1.Taint(t))
	}
	return out
}

// requirements writes out those that hold though nobody wrote them.
func (j *job) requirements(from string, p *v1alpha5.Provisioner) []karpv1.Requirement {
	out := []karpv1.Requirement{}
	var added []string
	for i, r := range admission.DefaultProvisioner(p).Spec.Requirements {
		n := karpv1.Requirement{Key: r.Key, Operator: r.Operator}
		if r.Operator != "Exists" && r.Operator != "DoesNotExist" {
			n.Values = r.Values
		}
		out = append(out, n)
		if i >= len(p.Spec.Requirements) {
			added = append(added, fmt.Sprintf("%s %s %s", r.Key, r.Operator, strings.Join(r.Values, ", ")))
		}
	}
	if len(added) > 0 {
		j.note(from, "spec.requirements", "a NodePool adds none by itself, so those that held by default are written out: %s", strings.Join(added, "; "))
	}
	return out
}

// lifetimes converts when machines are taken away.
func (j *job) lifetimes(from string, p *v1alpha5.Provisioner, out *karpv1.NodePool) {
	d := &out.Spec.Disruption
	out.Spec.Template.Spec.ExpireAfter = karpv1.Never
	if n := p.Spec.TTLSecondsUntilExpired; n != nil {
		out.Spec.Template.Spec.ExpireAfter = seconds(*n)
		j.note(from, "spec.ttlSecondsUntilExpired", "a machine is drained as soon as it expires, and its replacement bought meanwhile; a Provisioner waits until the replacement is ready. The age is written on each machine when it is bought: changing it later makes machines drift")
	}
	switch {
	case p.Spec.TTLSecondsAfterEmpty != nil:
		d.ConsolidationPolicy, d.ConsolidateAfter = karpv1.ConsolidationWhenEmpty, seconds(*p.Spec.TTLSecondsAfterEmpty)
	case p.Spec.Consolidation != nil && value(p.Spec.Consolidation.Enabled):
		d.ConsolidationPolicy, d.ConsolidateAfter = karpv1.ConsolidationWhenEmptyOrUnderutilized, "0s"
	default:
		d.ConsolidationPolicy, d.ConsolidateAfter = karpv1.ConsolidationWhenEmpty, karpv1.Never
	}
	d.Budgets = []karpv1.Budget{
		{Nodes: "100%", Reasons: []karpv1.DisruptionReason{karpv1.ReasonEmpty}},
		{Nodes: "1", Reasons: []karpv1.DisruptionReason{karpv1.ReasonUnderutilized, karpv1.ReasonDrifted}},
	}
	j.note(from, "spec.disruption.budgets", "written so that empty machines go at once and others one at a time, as those of a Provisioner do; without them at most 10%% of the machines go at a time")
}

// seconds writes a number of seconds; more than a duration can hold is as good
// as the most that it can.
func seconds(n int64) karpv1.DurationOrNever {
	return karpv1.DurationOrNever(fmt.Sprintf("%ds", min(n, int64(math.MaxInt64/time.Second))))
}

// classRef names the class of the pool, and makes one of cloud settings that the
// pool carries itself.
func (j *job) classRef(from string, p *v1alpha5.Provisioner, shared *shared, ref *karpv1.NodeClassRef) {
	*ref = karpv1.NodeClassRef{Group: awsv1.GroupVersion.Group, Kind: awsv1.Kind, Name: p.Name}
	k := p.Spec.KubeletConfiguration
	if k != nil && k.ContainerRuntime != nil {
		j.lost(from, "spec.kubeletConfiguration.containerRuntime", "every image of today runs containerd")
	}
	if p.Spec.Provider != nil {
		inline, err := admission.InlineProvider(p)
		if err != nil {
			j.errs = append(j.errs, fmt.Errorf("%s: spec.provider: %w", from, err))
			return
		}
		j.note(from, "spec.provider", "becomes an EC2NodeClass of its own, %s", p.Name)
		t := &awsv1alpha1.AWSNodeTemplate{ObjectMeta: metav1.ObjectMeta{Name: p.Name}, Spec: awsv1alpha1.AWSNodeTemplateSpec{AWS: *inline}}
		j.nodeClass(t, variant{name: p.Name, kubelet: kubeletOf(p), from: from})
		return
	}
	if p.Spec.ProviderRef == nil || p.Spec.ProviderRef.Name == "" {
		j.fail(from, "spec.providerRef.name", "is missing: set it to the name of an AWSNodeTemplate")
		return
	}
	ref.Name = p.Spec.ProviderRef.Name
	if kubeletOf(p) == nil {
		ref.Name = shared.name(p)
		return
	}
	if !shared.has(ref.Name) {
		j.fail(from, "spec.kubeletConfiguration", "belongs into the EC2NodeClass: convert AWSNodeTemplate %q together with it", ref.Name)
		return
	}
	ref.Name = shared.name(p)
	j.note(from, "spec.kubeletConfiguration", "is part of the EC2NodeClass %s now, and holds for every NodePool that refers to it", ref.Name)
}

// kubeletOf is the kubelet block of a class for this pool; nil if it says
// nothing that a class can say.
func kubeletOf(p *v1alpha5.Provisioner) *awsv1.KubeletConfiguration {
	if p.Spec.KubeletConfiguration == nil {
		return nil
	}
	k := &awsv1.KubeletConfiguration{Kubelet: p.Spec.KubeletConfiguration.Kubelet}
	if text(k) == text(&awsv1.KubeletConfiguration{}) {
		return nil
	}
	return k
}

// variant is a class that is made of a template, for pools with one kubelet
// block.
type variant struct {
	name    string
	kubelet *awsv1.KubeletConfiguration
	from    string // the object that it is made of; empty: the template
}

// shared knows which classes are made of each template: one for every kubelet
// block of the pools that refer to it.
type shared struct{ variants map[string][]variant }

func newShared(pools []*v1alpha5.Provisioner, templates map[string]*awsv1alpha1.AWSNodeTemplate) *shared {
	s := &shared{map[string][]variant{}}
	for _, p := range pools {
		if p.Spec.ProviderRef == nil || templates[p.Spec.ProviderRef.Name] == nil || p.Spec.Provider != nil {
			continue
		}
		name, kubelet := p.Spec.ProviderRef.Name, kubeletOf(p)
		if slices.ContainsFunc(s.variants[name], func(v variant) bool { return text(v.kubelet) == text(kubelet) }) {
			continue
		}
		v := variant{name: name, kubelet: kubelet}
		if len(s.variants[name]) > 0 {
			v.name = name + "-" + p.Name
		}
		s.variants[name] = append(s.variants[name], v)
	}
	for name := range templates {
		if len(s.variants[name]) == 0 {
			s.variants[name] = []variant{{name: name}}
		}
	}
	return s
}

func (s *shared) has(template string) bool     { return len(s.variants[template]) > 0 }
func (s *shared) of(template string) []variant { return s.variants[template] }

// name of the class for the pool.
func (s *shared) name(p *v1alpha5.Provisioner) string {
	kubelet := kubeletOf(p)
	for _, v := range s.variants[p.Spec.ProviderRef.Name] {
		if text(v.kubelet) == text(kubelet) {
			return v.name
		}
	}
	return p.Spec.ProviderRef.Name
}
