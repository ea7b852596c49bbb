package admission

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	awsv1alpha1 "karpenter/api/aws/v1alpha1"
)

// ValidateAWSNodeTemplate returns an *InvalidError with everything that is
// wrong with the template, or nil. Whether its selectors find something is a
// question for EC2.
func ValidateAWSNodeTemplate(t *awsv1alpha1.AWSNodeTemplate) error {
	spec := field.NewPath("spec")
	errs := objectName(t.Name)
	errs = append(errs, awsSettings(spec, &t.Spec.AWS)...)
	if t.Spec.AMISelector != nil {
		errs = append(errs, selector(spec.Child("amiSelector"), t.Spec.AMISelector, "ami")...)
	} else if f := t.Spec.AMIFamily; f != nil && *f == awsv1alpha1.AMIFamilyCustom {
		errs = append(errs, field.Required(spec.Child("amiSelector"), "amiFamily Custom needs it, for example {Name: my-image} or {aws-ids: ami-0123456789abcdef0}"))
	}
	if t.Spec.LaunchTemplate != nil {
		errs = append(errs, notWithLaunchTemplate(spec.Child("userData"), t.Spec.UserData != nil)...)
		errs = append(errs, notWithLaunchTemplate(spec.Child("amiSelector"), t.Spec.AMISelector != nil)...)
	}
	return invalid(awsv1alpha1.Kind, t.Name, errs)
}

// awsSettings checks what a template and an inline provider have in common.
func awsSettings(path *field.Path, a *awsv1alpha1.AWS) field.ErrorList {
	errs := oneOf(path.Child("amiFamily"), a.AMIFamily, awsv1alpha1.AMIFamilyAL2, awsv1alpha1.AMIFamilyAL2023,
		awsv1alpha1.AMIFamilyBottlerocket, awsv1alpha1.AMIFamilyUbuntu, awsv1alpha1.AMIFamilyCustom)
	if a.SubnetSelector == nil {
		errs = append(errs, field.Required(path.Child("subnetSelector"), "for example {Name: my-subnet*} or {aws-ids: subnet-0123456789abcdef0}"))
	}
	errs = append(errs, selector(path.Child("subnetSelector"), a.SubnetSelector, "subnet")...)
	if a.SecurityGroupSelector == nil && a.LaunchTemplate == nil {
		errs = append(errs, field.Required(path.Child("securityGroupSelector"), "required unless launchTemplate is used, for example {Name: my-group} or {aws-ids: sg-0123456789abcdef0}"))
	}
	errs = append(errs, selector(path.Child("securityGroupSelector"), a.SecurityGroupSelector, "sg")...)
	errs = append(errs, tags(path.Child("tags"), a.Tags)...)
	if m := a.MetadataOptions; m != nil {
		errs = append(errs, metadataOptions(path.Child("metadataOptions"), m)...)
	}
	errs = append(errs, disks(path.Child("blockDeviceMappings"), a.BlockDeviceMappings)...)
	if a.LaunchTemplate != nil {
		errs = append(errs, notWithLaunchTemplate(path.Child("amiFamily"), a.AMIFamily != nil)...)
		errs = append(errs, notWithLaunchTemplate(path.Child("instanceProfile"), a.InstanceProfile != nil)...)
		errs = append(errs, notWithLaunchTemplate(path.Child("metadataOptions"), a.MetadataOptions != nil)...)
		errs = append(errs, notWithLaunchTemplate(path.Child("blockDeviceMappings"), a.BlockDeviceMappings != nil)...)
	}
	return errs
}

func oneOf(path *field.Path, v *string, allowed ...string) field.ErrorList {
	if v == nil || slices.Contains(allowed, *v) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, *v, allowed)}
}

func metadataOptions(path *field.Path, m *awsv1alpha1.MetadataOptions) field.ErrorList {
	errs := oneOf(path.Child("httpEndpoint"), m.HTTPEndpoint, "enabled", "disabled")
	errs = append(errs, oneOf(path.Child("httpProtocolIPv6"), m.HTTPProtocolIPv6, "enabled", "disabled")...)
	errs = append(errs, oneOf(path.Child("httpTokens"), m.HTTPTokens, "optional", "required")...)
	if n := m.HTTPPutResponseHopLimit; n != nil && (*n < 1 || *n > 64) {
		errs = append(errs, field.Invalid(path.Child("httpPutResponseHopLimit"), *n, "must be between 1 and 64"))
	}
	return errs
}

func notWithLaunchTemplate(path *field.Path, set bool) field.ErrorList {
	if !set {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, "it and launchTemplate exclude each other: the launch template says what is started")}
}

// mostTags of the 50 that EC2 takes; the others are for the settings and us.
const mostTags = 40

func tags(path *field.Path, list map[string]string) field.ErrorList {
	errs := most(path, len(list), mostTags)
	for _, k := range sortedKeys(list) {
		switch {
		case k == "":
			errs = append(errs, field.Invalid(path, k, "must not hold an empty key"))
		case utf8.RuneCountInString(k) > 128 || utf8.RuneCountInString(list[k]) > 256:
			errs = append(errs, field.Invalid(path.Key(k), list[k], "a tag must not have more than 128 characters in its key and 256 in its value"))
		case strings.HasPrefix(strings.ToLower(k), "aws:"):
			errs = append(errs, field.Invalid(path.Key(k), k, "the key of a tag must not begin with aws:, which is for AWS only"))
		}
	}
	return errs
}

const mostSelectors = 50

// selector checks the entries of a selector for things with ids of this kind.
func selector(path *field.Path, s map[string]string, kind string) field.ErrorList {
	if s != nil && len(s) == 0 {
		return field.ErrorList{field.Required(path, "must not be empty, for example {Name: my-"+kind+"*}")}
	}
	errs := most(path, len(s), mostSelectors)
	for _, k := range sortedKeys(s) {
		if k == "" || s[k] == "" {
			errs = append(errs, field.Invalid(path.Key(k), s[k], "must not hold an empty key or value; use '*' for any value"))
			continue
		}
		if k != awsv1alpha1.SelectorIDs {
			continue
		}
		form := kind + "-[0-9a-z]+"
		for _, id := range strings.Split(s[k], ",") {
			if ok, _ := regexp.MatchString(form, id); !ok {
				errs = append(errs, field.Invalid(path.Key(k), s[k], "must be a comma-separated list of ids that match "+form))
				break
			}
		}
	}
	return errs
}

var (
	leastVolume    = resource.MustParse("1G")
	greatestVolume = resource.MustParse("64T")
	longestDevice  = 127
	// mostDisks: more would make the rules of the CRD too dear.
	mostDisks   = 30
	volumeTypes = []string{"standard", "io1", "io2", "gp2", "sc1", "st1", "gp3"}
)

func disks(path *field.Path, list []awsv1alpha1.BlockDeviceMapping) field.ErrorList {
	errs := most(path, len(list), mostDisks)
	seen := map[string]bool{}
	for i, d := range list {
		at := path.Index(i)
		errs = append(errs, disk(at, d)...)
		if name := d.DeviceName; name != nil {
			if seen[*name] {
				errs = append(errs, field.Invalid(at.Child("deviceName"), *name, "blockDeviceMappings must not hold the same deviceName twice"))
			}
			seen[*name] = true
		}
	}
	return errs
}

func disk(path *field.Path, d awsv1alpha1.BlockDeviceMapping) field.ErrorList {
	var errs field.ErrorList
	if d.DeviceName == nil || *d.DeviceName == "" {
		errs = append(errs, field.Required(path.Child("deviceName"), "for example /dev/xvda"))
	} else if n := len(*d.DeviceName); n > longestDevice {
		errs = append(errs, field.TooLong(path.Child("deviceName"), *d.DeviceName, longestDevice))
	}
	ebs := path.Child("ebs")
	if d.EBS == nil {
		return append(errs, field.Required(ebs, "for example {volumeSize: 20Gi}"))
	}
	switch size := d.EBS.VolumeSize; {
	case size == nil:
		if d.EBS.SnapshotID == nil || *d.EBS.SnapshotID == "" {
			errs = append(errs, field.Required(ebs.Child("volumeSize"), "required unless snapshotID is set, for example 20Gi"))
		}
	case size.Cmp(leastVolume) < 0 || size.Cmp(greatestVolume) > 0:
		errs = append(errs, field.Invalid(ebs.Child("volumeSize"), size.String(), "must be between 1G and 64T, for example 20Gi"))
	}
	errs = append(errs, positive(ebs.Child("iops"), d.EBS.IOPS)...)
	errs = append(errs, positive(ebs.Child("throughput"), d.EBS.Throughput)...)
	if t := d.EBS.VolumeType; t != nil && !slices.Contains(volumeTypes, *t) {
		errs = append(errs, field.NotSupported(ebs.Child("volumeType"), *t, volumeTypes))
	}
	return errs
}

func positive(path *field.Path, n *int64) field.ErrorList {
	if n == nil || *n >= 1 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *n, "must be 1 or more")}
}
