package migrate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "karpenter/api/aws/v1"
	awsv1alpha1 "karpenter/api/aws/v1alpha1"
	karpv1 "karpenter/api/v1"
	"karpenter/api/v1alpha5"
	"karpenter/internal/admission"
	"karpenter/internal/kube/dialect"
)

// provisioner converts a NodePool back.
func (j *job) provisioner(p *karpv1.NodePool, kubelets map[string]*awsv1.KubeletConfiguration) {
	from := karpv1.KindNodePool + "/" + p.Name
	p = admission.DefaultNodePool(p)
	if err := admission.ValidateNodePool(p); err != nil {
		j.errs = append(j.errs, err)
		return
	}
	if _, given := kubelets[p.Spec.Template.Spec.NodeClassRef.Name]; given && !j.made(p.Spec.Template.Spec.NodeClassRef.Name) {
		j.waits(from, awsv1.Kind+"/"+p.Spec.Template.Spec.NodeClassRef.Name)
		return
	}
	before := len(j.errs)
	t := &p.Spec.Template
	out := &v1alpha5.Provisioner{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha5.GroupVersion.String(), Kind: v1alpha5.Kind},
		ObjectMeta: metadata(p.ObjectMeta, p.Name),
	}
	s := &out.Spec
	for k, v := range t.Metadata.Labels {
		if s.Labels == nil {
			s.Labels = map[string]v1alpha5.LabelValue{}
		}
		s.Labels[k] = v1alpha5.LabelValue(v)
	}
	s.Annotations, s.Weight = t.Metadata.Annotations, p.Spec.Weight
	for _, taint := range t.Spec.Taints {
		s.Taints = append(s.Taints, v1alpha5.Taint(taint))
	}
	for _, taint := range t.Spec.StartupTaints {
		s.StartupTaints = append(s.StartupTaints, v1alpha5.Taint(taint))
	}
	s.Requirements = j.oldRequirements(from, t.Spec.Requirements)
	if len(p.Spec.Limits) > 0 {
		s.Limits = &v1alpha5.Limits{Resources: p.Spec.Limits}
	}
	j.oldLifetimes(from, p, s)
	ref := t.Spec.NodeClassRef
	if ref.Group != awsv1.GroupVersion.Group || ref.Kind != awsv1.Kind {
		j.fail(from, dialect.NodePool.ClassField, "%s %q of %s is not an EC2NodeClass", ref.Kind, ref.Name, ref.Group)
	}
	s.ProviderRef = &v1alpha5.ProviderRef{Name: ref.Name}
	j.oldKubelet(from, ref.Name, kubelets, s)
	j.note(from, "karpenter.sh/nodepool", "pods that select this label find no machine of the Provisioner: let them select karpenter.sh/provisioner-name: %s", p.Name)
	if len(j.errs) > before {
		return
	}
	if err := admission.ValidateProvisioner(out); err != nil {
		j.errs = append(j.errs, fmt.Errorf("%s: what it becomes would be refused: %w", from, err))
		return
	}
	j.pools = append(j.pools, out)
}

// oldRequirements writes the two bounds that a Provisioner does not have as those
// that it has, and names every key on which it would say something by itself.
func (j *job) oldRequirements(from string, list []karpv1.Requirement) []v1alpha5.Requirement {
	var out []v1alpha5.Requirement
	for i, r := range list {
		o := v1alpha5.Requirement{Key: r.Key, Operator: r.Operator, Values: r.Values}
		if r.Operator == "Exists" || r.Operator == "DoesNotExist" {
			o.Values = nil
		}
		if r.MinValues != nil {
			j.lost(from, fmt.Sprintf("spec.template.spec.requirements[%d].minValues", i), "the cloud may be left fewer kinds of machine to choose from")
		}
		switch r.Operator {
		case "Gte":
			o = j.bound(from, i, o, corev1.NodeSelectorOpGt, -1)
		case "Lte":
			o = j.bound(from, i, o, corev1.NodeSelectorOpLt, 1)
		}
		if o.Key != "" {
			out = append(out, o)
		}
	}
	silent := &v1alpha5.Provisioner{Spec: v1alpha5.ProvisionerSpec{Requirements: out}}
	for _, r := range admission.DefaultProvisioner(silent).Spec.Requirements[len(out):] {
		if r.Operator == corev1.NodeSelectorOpGt {
			continue // comes with the category
		}
		out = append(out, v1alpha5.Requirement{Key: r.Key, Operator: corev1.NodeSelectorOpExists})
	}
	return out
}

// bound writes an inclusive bound as an exclusive one. One of at least 0 holds
// for every number.
func (j *job) bound(from string, i int, r v1alpha5.Requirement, op corev1.NodeSelectorOperator, step int64) v1alpha5.Requirement {
	n, err := strconv.ParseInt(r.Values[0], 10, 64)
	if n += step; err != nil || n < 0 {
		if n < 0 {
			j.note(from, fmt.Sprintf("spec.template.spec.requirements[%d]", i), "every number is 0 or more; written as Exists")
			return v1alpha5.Requirement{Key: r.Key, Operator: corev1.NodeSelectorOpExists}
		}
		return v1alpha5.Requirement{}
	}
	return v1alpha5.Requirement{Key: r.Key, Operator: op, Values: []string{strconv.FormatInt(n, 10)}}
}

// oldLifetimes converts when machines are taken away.
func (j *job) oldLifetimes(from string, p *karpv1.NodePool, s *v1alpha5.ProvisionerSpec) {
	t, d := &p.Spec.Template.Spec, &p.Spec.Disruption
	if n, ok := wholeSeconds(string(t.ExpireAfter)); ok {
		s.TTLSecondsUntilExpired = &n
		j.note(from, "spec.template.spec.expireAfter", "a machine that expires goes when its replacement is ready, and the age limit acts on machines that run already")
	}
	if t.TerminationGracePeriod != nil {
		j.lost(from, "spec.template.spec.terminationGracePeriod", "draining takes as long as it takes")
	}
	after, consolidates := wholeSeconds(string(d.ConsolidateAfter))
	switch {
	case !consolidates:
	case d.ConsolidationPolicy == karpv1.ConsolidationWhenEmpty:
		s.TTLSecondsAfterEmpty = &after
	default:
		s.Consolidation = &v1alpha5.Consolidation{Enabled: new(true)}
		if after > 0 {
			j.lost(from, "spec.disruption.consolidateAfter", "consolidation of a Provisioner does not wait for machines to be quiet")
		}
		if d.ConsolidationPolicy == karpv1.ConsolidationBalanced {
			j.lost(from, "spec.disruption.consolidationPolicy", "Balanced becomes consolidation whatever it gains")
		}
	}
	j.lost(from, "spec.disruption.budgets", "empty machines go at once, others one at a time")
}

func wholeSeconds(text string) (int64, bool) {
	d, err := time.ParseDuration(text)
	return int64(d / time.Second), err == nil
}

// oldKubelet takes the kubelet block of the class over into the Provisioner.
func (j *job) oldKubelet(from, class string, kubelets map[string]*awsv1.KubeletConfiguration, s *v1alpha5.ProvisionerSpec) {
	k, known := kubelets[class]
	switch {
	case !known:
		j.note(from, "spec.kubeletConfiguration", "EC2NodeClass %q was not given; if it has a kubelet block, that belongs into the Provisioner", class)
	case k != nil:
		s.KubeletConfiguration = &v1alpha5.KubeletConfiguration{Kubelet: k.Kubelet}
		for _, f := range []struct {
			name string
			set  bool
		}{{"imageGCHighThresholdPercent", k.ImageGCHighThresholdPercent != nil}, {"imageGCLowThresholdPercent", k.ImageGCLowThresholdPercent != nil}, {"cpuCFSQuota", k.CPUCFSQuota != nil}} {
			if f.set {
				j.lost(awsv1.Kind+"/"+class, "spec.kubelet."+f.name, "a Provisioner cannot say it")
			}
		}
	}
}

// nodeTemplate converts an EC2NodeClass back.
func (j *job) nodeTemplate(c *awsv1.EC2NodeClass) {
	from := awsv1.Kind + "/" + c.Name
	c = admission.DefaultEC2NodeClass(c)
	if err := admission.ValidateEC2NodeClass(c); err != nil {
		j.errs = append(j.errs, err)
		return
	}
	before := len(j.errs)
	in := &c.Spec
	out := &awsv1alpha1.AWSNodeTemplate{
		TypeMeta:   metav1.TypeMeta{APIVersion: awsv1alpha1.GroupVersion.String(), Kind: awsv1alpha1.Kind},
		ObjectMeta: metadata(c.ObjectMeta, c.Name),
		Spec:       awsv1alpha1.AWSNodeTemplateSpec{UserData: in.UserData, DetailedMonitoring: in.DetailedMonitoring},
	}
	a := &out.Spec.AWS
	a.Tags, a.Context, a.MetadataOptions = in.Tags, in.Context, new(awsv1alpha1.MetadataOptions(*in.MetadataOptions))
	var subnets, groups []term
	for _, t := range in.SubnetSelectorTerms {
		subnets = append(subnets, term{tags: t.Tags, id: t.ID})
	}
	for i, t := range in.SecurityGroupSelectorTerms {
		if t.Name != "" {
			j.fail(from, fmt.Sprintf("spec.securityGroupSelectorTerms[%d].name", i), "an AWSNodeTemplate cannot select a group by its name: use tags or the id")
			continue
		}
		groups = append(groups, term{tags: t.Tags, id: t.ID})
	}
	a.SubnetSelector = j.selector(from, "spec.subnetSelectorTerms", subnets)
	if len(groups) == len(in.SecurityGroupSelectorTerms) {
		a.SecurityGroupSelector = j.selector(from, "spec.securityGroupSelectorTerms", groups)
	}
	j.oldImages(from, in, out)
	j.oldDisks(from, in, a)
	switch {
	case in.InstanceProfile != nil:
		a.InstanceProfile = in.InstanceProfile
	case j.opt.InstanceProfile != "":
		a.InstanceProfile = &j.opt.InstanceProfile
	default:
		j.lost(from, "spec.role", "an AWSNodeTemplate needs the name of an instance profile: give --instance-profile, or set aws.defaultInstanceProfile")
	}
	for _, f := range []struct {
		name string
		set  bool
	}{{"associatePublicIPAddress", in.AssociatePublicIPAddress != nil}, {"instanceStorePolicy", in.InstanceStorePolicy != nil}} {
		if f.set {
			j.lost(from, "spec."+f.name, "an AWSNodeTemplate cannot say it")
		}
	}
	if len(j.errs) > before {
		return
	}
	if err := admission.ValidateAWSNodeTemplate(out); err != nil {
		j.errs = append(j.errs, fmt.Errorf("%s: what it becomes would be refused: %w", from, err))
		return
	}
	j.classes = append(j.classes, out)
}

// selector writes terms of which one must fit as a map of tags with lists of
// values: ids as one list, and tags if the terms are all combinations of some
// values.
func (j *job) selector(from, field string, terms []term) map[string]string {
	out := map[string]string{}
	values := map[string][]string{}
	different := map[string]bool{}
	for _, t := range terms {
		if (t.id != "") != (terms[0].id != "") || !slices.Equal(slices.Sorted(maps.Keys(t.tags)), slices.Sorted(maps.Keys(terms[0].tags))) {
			j.fail(from, field, "mixes ids and tags, or tags of different keys, of which one must fit; an AWSNodeTemplate cannot ask for that: make one class for each")
			return nil
		}
		if t.id != "" {
			out[awsv1alpha1.SelectorIDs] = strings.TrimPrefix(out[awsv1alpha1.SelectorIDs]+","+t.id, ",")
		}
		different[text(t.tags)] = true
		for k, v := range t.tags {
			if v != strings.Join(list(v), "") {
				j.fail(from, field, "tag %s has a comma or blanks at its ends in the value %q, which an AWSNodeTemplate takes for a list", k, v)
				return nil
			}
			if !slices.Contains(values[k], v) {
				values[k] = append(values[k], v)
			}
		}
	}
	combinations := 1
	for k, v := range values {
		out[k] = strings.Join(v, ",")
		combinations *= len(v)
	}
	if len(values) > 0 && combinations != len(different) {
		j.fail(from, field, "has terms that are not all combinations of some values, which an AWSNodeTemplate cannot ask for: make one class for each")
		return nil
	}
	return out
}

func (j *job) oldImages(from string, in *awsv1.EC2NodeClassSpec, out *awsv1alpha1.AWSNodeTemplate) {
	first := in.AMISelectorTerms[0]
	if first.Alias != "" {
		for family, alias := range aliases {
			if name := alias[:len(alias)-len("@latest")]; len(first.Alias) > len(name) && first.Alias[:len(name)+1] == name+"@" {
				out.Spec.AMIFamily = new(family)
				if first.Alias != alias {
					j.lost(from, "spec.amiSelectorTerms[0].alias", "an AWSNodeTemplate follows the latest image; %s is not kept. Name the image by id in amiSelector to keep it", first.Alias)
				}
			}
		}
		if in.AMIFamily != nil && out.Spec.AMIFamily != nil && string(*in.AMIFamily) != *out.Spec.AMIFamily || out.Spec.AMIFamily == nil {
			j.fail(from, "spec.amiFamily", "image %s with family %s cannot be asked for", first.Alias, cmp.Or(value(in.AMIFamily), "of its own"))
		}
		return
	}
	out.Spec.AMIFamily = new(string(value(in.AMIFamily)))
	var terms []term
	for i, t := range in.AMISelectorTerms {
		if t.Name != "" || t.Owner != "" || t.SSMParameter != "" {
			j.fail(from, fmt.Sprintf("spec.amiSelectorTerms[%d]", i), "an AWSNodeTemplate selects images by tags or ids only")
			return
		}
		terms = append(terms, term{tags: t.Tags, id: t.ID})
	}
	out.Spec.AMISelector = j.selector(from, "spec.amiSelectorTerms", terms)
}

func (j *job) oldDisks(from string, in *awsv1.EC2NodeClassSpec, a *awsv1alpha1.AWS) {
	for i, d := range in.BlockDeviceMappings {
		m := awsv1alpha1.BlockDeviceMapping{DeviceName: d.DeviceName}
		if e := d.EBS; e != nil {
			m.EBS = &awsv1alpha1.EBS{DeleteOnTermination: e.DeleteOnTermination, Encrypted: e.Encrypted, IOPS: e.IOPS, KMSKeyID: e.KMSKeyID,
				SnapshotID: e.SnapshotID, Throughput: e.Throughput, VolumeSize: e.VolumeSize, VolumeType: e.VolumeType}
			if e.VolumeInitializationRate != nil {
				j.lost(from, fmt.Sprintf("spec.blockDeviceMappings[%d].ebs.volumeInitializationRate", i), "the snapshot is fetched as it is needed")
			}
		}
		if d.RootVolume {
			j.lost(from, fmt.Sprintf("spec.blockDeviceMappings[%d].rootVolume", i), "the disk that the family uses counts as the node's storage")
		}
		a.BlockDeviceMappings = append(a.BlockDeviceMappings, m)
	}
}
