package class

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/api/aws/v1alpha1"
	"karpenter/internal/aws/family"
	"karpenter/internal/cloud"
	"karpenter/internal/core/world"
)

// FromNodeTemplate reads an AWSNodeTemplate. An error is *cloud.BadClassError
// and names the first field that is wrong, and the others after it.
func FromNodeTemplate(t *v1alpha1.AWSNodeTemplate) (Class, error) {
	c := Class{Ref: world.ClassRef{Group: v1alpha1.GroupVersion.Group, Kind: v1alpha1.Kind, Name: t.Name}, UID: string(t.UID)}
	return c, c.fromTemplate(&t.Spec)
}

// FromInline reads the settings that a Provisioner carries itself. Unknown
// fields are an error, as nobody else checks them.
func FromInline(ref world.ClassRef) (Class, error) {
	var inline v1alpha1.AWS
	d := json.NewDecoder(bytes.NewReader([]byte(ref.Inline)))
	d.DisallowUnknownFields()
	if err := d.Decode(&inline); err != nil {
		return Class{}, &cloud.BadClassError{Class: ref, Field: "spec.provider", Problem: "cannot be read: " + strings.TrimPrefix(err.Error(), "json: ")}
	}
	var problems []problem
	if inline.Kind != "" && inline.Kind != "AWS" {
		problems = append(problems, problem{"kind", fmt.Sprintf("must be AWS or left out, not %q", inline.Kind)})
	}
	if v := inline.APIVersion; v != "" && v != "extensions.karpenter.sh/v1alpha1" {
		problems = append(problems, problem{"apiVersion", fmt.Sprintf("must be extensions.karpenter.sh/v1alpha1 or left out, not %q", v)})
	}
	if err := bad(ref, problems); err != nil {
		return Class{}, err
	}
	c := Class{Ref: ref}
	return c, c.fromTemplate(&v1alpha1.AWSNodeTemplateSpec{AWS: inline})
}

// silentTemplate is what holds where an AWSNodeTemplate does not mention the
// metadata service.
var silentTemplate = Metadata{Endpoint: "enabled", IPv6: AsCluster, HopLimit: 2, Tokens: "required"}

func (c *Class) fromTemplate(s *v1alpha1.AWSNodeTemplateSpec) error {
	c.Family = value(s.AMIFamily)
	if c.Family == "" {
		c.Family = family.AL2
	}
	c.InstanceProfile = value(s.InstanceProfile)
	c.UserData = value(s.UserData)
	c.Tags = s.Tags
	c.Metadata = silentTemplate
	c.DetailedMonitoring = value(s.DetailedMonitoring)
	c.Context = value(s.Context)
	c.LaunchTemplate = value(s.LaunchTemplate)

	problems := slices.Concat(required(s), exclusive(s), checkFamily(c.Family, s))
	read := func(into *Selector, k kind, tags map[string]string) {
		sel, more := k.ofMap(tags)
		*into, problems = sel, append(problems, more...)
	}
	read(&c.Subnets, subnets, s.SubnetSelector)
	read(&c.SecurityGroups, securityGroups, s.SecurityGroupSelector)
	read(&c.Images, images, s.AMISelector)
	if len(s.AMISelector) == 0 && s.LaunchTemplate == nil {
		c.Release = latest(c.Family)
	}
	var more []problem
	if m := s.MetadataOptions; m != nil {
		// What the object leaves out is left to EC2.
		c.Metadata, more = readMetadata(new(awsv1.MetadataOptions(*m)), Metadata{})
		problems = append(problems, more...)
	}
	c.BlockDevices, more = blockDevices(modern(s.BlockDeviceMappings))
	problems = append(problems, more...)
	problems = append(problems, checkTags(s.Tags)...)
	return bad(c.Ref, problems)
}

func required(s *v1alpha1.AWSNodeTemplateSpec) []problem {
	var out []problem
	if len(s.SubnetSelector) == 0 {
		out = append(out, problem{"subnetSelector", "is required: name the tags or " + v1alpha1.SelectorIDs + " of the subnets"})
	}
	if len(s.SecurityGroupSelector) == 0 && s.LaunchTemplate == nil {
		out = append(out, problem{"securityGroupSelector", "is required unless launchTemplate is set: name the tags or " + v1alpha1.SelectorIDs + " of the groups"})
	}
	return out
}

// exclusive: a launch template of the user says these things itself.
func exclusive(s *v1alpha1.AWSNodeTemplateSpec) []problem {
	if s.LaunchTemplate == nil {
		return nil
	}
	var out []problem
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"amiFamily", s.AMIFamily != nil},
		{"amiSelector", s.AMISelector != nil},
		{"instanceProfile", s.InstanceProfile != nil},
		{"userData", s.UserData != nil},
		{"metadataOptions", s.MetadataOptions != nil},
		{"blockDeviceMappings", s.BlockDeviceMappings != nil},
	} {
		if f.set {
			out = append(out, problem{f.name, "cannot be set together with launchTemplate: keep one of the two"})
		}
	}
	return out
}

func checkFamily(name string, s *v1alpha1.AWSNodeTemplateSpec) []problem {
	if _, ok := family.Named(name); !ok {
		return []problem{{"amiFamily", fmt.Sprintf("%q is not known: use one of %s", name, strings.Join(family.Names(), ", "))}}
	}
	if name == family.Custom && len(s.AMISelector) == 0 {
		return []problem{{"amiSelector", "is required for amiFamily Custom: name the tags or " + v1alpha1.SelectorIDs + " of the images"}}
	}
	return nil
}
