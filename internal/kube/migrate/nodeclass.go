package migrate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "karpenter/api/aws/v1"
	awsv1alpha1 "karpenter/api/aws/v1alpha1"
	"karpenter/internal/admission"
)

// text compares values that may hold pointers and quantities.
func text(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// aliases of the images that AWS publishes, by family.
var aliases = map[string]string{
	awsv1alpha1.AMIFamilyAL2: "al2@latest", awsv1alpha1.AMIFamilyAL2023: "al2023@latest", awsv1alpha1.AMIFamilyBottlerocket: "bottlerocket@latest",
}

// nodeClass converts a template, for pools with one kubelet block.
func (j *job) nodeClass(t *awsv1alpha1.AWSNodeTemplate, v variant) {
	from := v.from
	if from == "" {
		from = awsv1alpha1.Kind + "/" + t.Name
	}
	if err := admission.ValidateAWSNodeTemplate(t); err != nil {
		j.errs = append(j.errs, err)
		return
	}
	if t.Spec.LaunchTemplate != nil {
		j.fail(from, "spec.launchTemplate", "an EC2NodeClass has none: describe image, user data, disks and instance profile in the AWSNodeTemplate, then convert it")
		return
	}
	before := len(j.errs)
	if v.name != t.Name {
		j.note(from, "", "becomes another EC2NodeClass, %s, for pools with another kubeletConfiguration", v.name)
	}
	a := &t.Spec.AWS
	out := &awsv1.EC2NodeClass{
		TypeMeta:   metav1.TypeMeta{APIVersion: awsv1.GroupVersion.String(), Kind: awsv1.Kind},
		ObjectMeta: metadata(t.ObjectMeta, v.name),
		Spec: awsv1.EC2NodeClassSpec{
			UserData: t.Spec.UserData, Tags: a.Tags, Kubelet: v.kubelet, DetailedMonitoring: t.Spec.DetailedMonitoring, Context: a.Context,
		},
	}
	s := &out.Spec
	for _, term := range j.terms(from, "spec.subnetSelector", a.SubnetSelector) {
		s.SubnetSelectorTerms = append(s.SubnetSelectorTerms, awsv1.SubnetSelectorTerm{Tags: term.tags, ID: term.id})
	}
	for _, term := range j.terms(from, "spec.securityGroupSelector", a.SecurityGroupSelector) {
		s.SecurityGroupSelectorTerms = append(s.SecurityGroupSelectorTerms, awsv1.SecurityGroupSelectorTerm{Tags: term.tags, ID: term.id})
	}
	for _, d := range a.BlockDeviceMappings {
		m := awsv1.BlockDeviceMapping{DeviceName: d.DeviceName}
		if e := d.EBS; e != nil {
			m.EBS = &awsv1.EBS{DeleteOnTermination: e.DeleteOnTermination, Encrypted: e.Encrypted, IOPS: e.IOPS, KMSKeyID: e.KMSKeyID,
				SnapshotID: e.SnapshotID, Throughput: e.Throughput, VolumeSize: e.VolumeSize, VolumeType: e.VolumeType}
		}
		s.BlockDeviceMappings = append(s.BlockDeviceMappings, m)
	}
	j.images(from, t, s)
	j.profile(from, a, s)
	j.options(from, a.MetadataOptions, s)
	j.note(from, "spec.associatePublicIPAddress", "public addresses are left to the subnet; set it to false if private subnets hand some out")
	if len(j.errs) > before {
		return
	}
	if err := admission.ValidateEC2NodeClass(admission.DefaultEC2NodeClass(out)); err != nil {
		j.errs = append(j.errs, fmt.Errorf("%s: what it becomes would be refused: %w", from, err))
		return
	}
	j.classes = append(j.classes, out)
}

// term of a selector of v1: tags, or an id.
type term struct {
	tags awsv1.TagSelector
	id   string
}

// Keys of selectors that are no tags. Those with colons are of later releases
// of the older generation.
const laterIDs, laterName, laterOwners = "aws::ids", "aws::name", "aws::owners"

// terms writes a map of tags as terms of which one must fit: one for each
// combination of the values that are listed, and one for each id.
func (j *job) terms(from, field string, selector map[string]string) []term {
	var ids []term
	terms := []term{{}}
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		values := list(selector[key])
		if key == awsv1alpha1.SelectorIDs || key == laterIDs {
			for _, id := range values {
				ids = append(ids, term{id: id})
			}
			continue
		}
		var next []term
		for _, t := range terms {
			for _, v := range values {
				tags := awsv1.TagSelector{key: v}
				maps.Copy(tags, t.tags)
				next = append(next, term{tags: tags})
			}
		}
		terms = next
	}
	switch {
	case ids == nil && len(selector) == 0:
		return nil
	case ids == nil:
		return terms
	case len(terms[0].tags) > 0:
		j.note(from, field, "asks for ids and for tags; the terms ask for the ids alone, whatever tags they have")
	}
	return ids
}

// list splits at commas.
func list(s string) []string {
	var out []string
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

func (j *job) images(from string, t *awsv1alpha1.AWSNodeTemplate, s *awsv1.EC2NodeClassSpec) {
	family := awsv1alpha1.AMIFamilyAL2
	if t.Spec.AMIFamily != nil {
		family = *t.Spec.AMIFamily
	}
	if family == awsv1alpha1.AMIFamilyUbuntu {
		if t.Spec.AMISelector == nil {
			j.fail(from, "spec.amiSelector", "there is no alias for Ubuntu: name the image here, then convert it")
			return
		}
		family = awsv1alpha1.AMIFamilyAL2
		j.note(from, "spec.amiFamily", "there is no family Ubuntu any more; AL2 writes the same user data")
		if s.BlockDeviceMappings == nil {
			size := resource.MustParse("20Gi")
			s.BlockDeviceMappings = []awsv1.BlockDeviceMapping{{DeviceName: new("/dev/sda1"), EBS: &awsv1.EBS{VolumeSize: &size, VolumeType: new("gp3"), Encrypted: new(true)}}}
		}
	}
	s.AMIFamily = new(awsv1.AMIFamily(family))
	if len(t.Spec.AMISelector) == 0 {
		s.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: aliases[family]}}
		return
	}
	selector := maps.Clone(t.Spec.AMISelector)
	names, owners := list(selector[laterName]), list(selector[laterOwners])
	delete(selector, laterName)
	delete(selector, laterOwners)
	terms := j.terms(from, "spec.amiSelector", selector)
	if terms == nil {
		terms = []term{{}}
	}
	for _, t := range terms {
		for _, name := range orEmpty(names) {
			for _, owner := range orEmpty(owners) {
				one := awsv1.AMISelectorTerm{Tags: t.tags, ID: t.id, Name: name, Owner: owner}
				if t.id != "" {
					one.Name, one.Owner = "", ""
				}
				if !slices.ContainsFunc(s.AMISelectorTerms, func(o awsv1.AMISelectorTerm) bool { return text(o) == text(one) }) {
					s.AMISelectorTerms = append(s.AMISelectorTerms, one)
				}
			}
		}
	}
	j.note(from, "spec.amiSelector", "a tag of an image no longer limits for which machines it is used; of several images the newest that suits is")
}

func orEmpty(list []string) []string {
	if len(list) == 0 {
		return []string{""}
	}
	return list
}

// profile: an EC2NodeClass must say as what its machines run.
func (j *job) profile(from string, a *awsv1alpha1.AWS, s *awsv1.EC2NodeClassSpec) {
	switch {
	case a.InstanceProfile != nil:
		s.InstanceProfile = a.InstanceProfile
	case j.opt.Role != "":
		s.Role = &j.opt.Role
		j.note(from, "spec.instanceProfile", "a profile is made for the role %s; the controller needs the rights for that", j.opt.Role)
	case j.opt.InstanceProfile != "":
		s.InstanceProfile = &j.opt.InstanceProfile
	default:
		j.fail(from, "spec.instanceProfile", "an EC2NodeClass must name one, or a role, because no setting does it any more: give --instance-profile (the value of aws.defaultInstanceProfile) or --role")
	}
}

// options of the metadata service. Where the template says nothing at all, its
// own defaults are written out; the fields that it leaves out were EC2's own.
func (j *job) options(from string, m *awsv1alpha1.MetadataOptions, s *awsv1.EC2NodeClassSpec) {
	if m == nil {
		s.MetadataOptions = &awsv1.MetadataOptions{HTTPEndpoint: new("enabled"), HTTPProtocolIPv6: new("disabled"), HTTPPutResponseHopLimit: new(int64(2)), HTTPTokens: new("required")}
		j.note(from, "spec.metadataOptions", "written out with the hop limit of 2 that held by default, because it is 1 now; in an IPv6 cluster set httpProtocolIPv6 to enabled")
		return
	}
	o := awsv1.MetadataOptions(*m)
	s.MetadataOptions = admission.DefaultEC2NodeClass(&awsv1.EC2NodeClass{Spec: awsv1.EC2NodeClassSpec{MetadataOptions: &o}}).Spec.MetadataOptions
	if text(s.MetadataOptions) != text(m) {
		j.note(from, "spec.metadataOptions", "what it leaves out was up to EC2 and is now as written: %s", text(s.MetadataOptions))
	}
}
