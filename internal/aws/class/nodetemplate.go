package class

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"karpenter/api/aws/v1alpha1"
	"karpenter/internal/cloud"
	"karpenter/internal/core/world"
)

// FromNodeTemplate reads an AWSNodeTemplate. An error is *cloud.BadClassError
// and names the first field that is wrong, and the others after it.
func FromNodeTemplate(t *v1alpha1.AWSNodeTemplate) (Class, error) {
	ref := world.ClassRef{Group: v1alpha1.GroupVersion.Group, Kind: v1alpha1.Kind, Name: t.Name}
	return fromSpec(ref, &t.Spec, "spec.")
}

// FromInline reads the settings that a Provisioner carries itself. Unknown
// fields are an error, as nobody else checks them.
func FromInline(ref world.ClassRef) (Class, error) {
	const prefix = "spec.provider."
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
	if err := bad(ref, prefix, problems); err != nil {
		return Class{}, err
	}
	return fromSpec(ref, &v1alpha1.AWSNodeTemplateSpec{AWS: inline}, prefix)
}

func fromSpec(ref world.ClassRef, s *v1alpha1.AWSNodeTemplateSpec, prefix string) (Class, error) {
	c := Class{
		Ref:                ref,
		Family:             AL2,
		InstanceProfile:    value(s.InstanceProfile),
		UserData:           value(s.UserData),
		Tags:               s.Tags,
		Metadata:           metadata(s.MetadataOptions),
		DetailedMonitoring: value(s.DetailedMonitoring),
		Context:            value(s.Context),
		LaunchTemplate:     value(s.LaunchTemplate),
	}
	if value(s.AMIFamily) != "" {
		c.Family = *s.AMIFamily
	}
	problems := slices.Concat(required(s), exclusive(s), checkFamily(c.Family), checkMetadata(s.MetadataOptions))
	var more []problem
	c.Subnets, more = subnets.selector(s.SubnetSelector, prefix)
	problems = append(problems, more...)
	c.SecurityGroups, more = securityGroups.selector(s.SecurityGroupSelector, prefix)
	problems = append(problems, more...)
	c.Images, more = images.selector(s.AMISelector, prefix)
	problems = append(problems, more...)
	c.BlockDevices, more = blockDevices(s.BlockDeviceMappings)
	problems = append(problems, more...)
	problems = append(problems, checkTags(s.Tags)...)
	return c, bad(ref, prefix, problems)
}

// problem is one thing that is wrong with a class. The field is a path below
// the spec.
type problem struct{ field, text string }

// bad makes one error of all problems, or none.
func bad(ref world.ClassRef, prefix string, problems []problem) error {
	if len(problems) == 0 {
		return nil
	}
	text := problems[0].text
	for _, p := range problems[1:] {
		text += "; " + prefix + p.field + ": " + p.text
	}
	return &cloud.BadClassError{Class: ref, Field: prefix + problems[0].field, Problem: text}
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

// checkFamily refuses the families that have no user data of ours yet.
func checkFamily(family string) []problem {
	if family == AL2 {
		return nil
	}
	return []problem{{"amiFamily", fmt.Sprintf("%q is not supported yet: use %s, or name a launchTemplate of your own", family, AL2)}}
}

// checkTags: how many a machine may have is known only together with ours.
func checkTags(tags map[string]string) []problem {
	var out []problem
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		switch {
		case k == "":
			out = append(out, problem{"tags", "a key is empty: every tag needs a key"})
		case utf8.RuneCountInString(k) > 128 || utf8.RuneCountInString(tags[k]) > 256:
			out = append(out, problem{"tags", fmt.Sprintf("%q is too long: EC2 takes 128 characters in a key and 256 in a value", k)})
		case strings.HasPrefix(strings.ToLower(k), "aws:"):
			out = append(out, problem{"tags", fmt.Sprintf("%q cannot be set: keys that begin with aws: are for AWS only", k)})
		}
	}
	return out
}

func metadata(m *v1alpha1.MetadataOptions) Metadata {
	if m == nil {
		return Metadata{Default: true}
	}
	return Metadata{
		Endpoint: value(m.HTTPEndpoint), IPv6: value(m.HTTPProtocolIPv6),
		HopLimit: value(m.HTTPPutResponseHopLimit), Tokens: value(m.HTTPTokens),
	}
}

func checkMetadata(m *v1alpha1.MetadataOptions) []problem {
	if m == nil {
		return nil
	}
	var out []problem
	for _, f := range []struct {
		name    string
		value   *string
		allowed []string
	}{
		{"httpEndpoint", m.HTTPEndpoint, []string{"enabled", "disabled"}},
		{"httpProtocolIPv6", m.HTTPProtocolIPv6, []string{"enabled", "disabled"}},
		{"httpTokens", m.HTTPTokens, []string{"optional", "required"}},
	} {
		if f.value != nil && !slices.Contains(f.allowed, *f.value) {
			out = append(out, problem{"metadataOptions." + f.name, fmt.Sprintf("must be %s, not %q", strings.Join(f.allowed, " or "), *f.value)})
		}
	}
	if n := m.HTTPPutResponseHopLimit; n != nil && (*n < 1 || *n > 64) {
		out = append(out, problem{"metadataOptions.httpPutResponseHopLimit", fmt.Sprintf("must be between 1 and 64, not %d", *n)})
	}
	return out
}

func value[T any](p *T) T {
	if p == nil {
		var none T
		return none
	}
	return *p
}
