package admission

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	awsv1 "karpenter/api/aws/v1"
	awsv1alpha1 "karpenter/api/aws/v1alpha1"
)

// DefaultEC2NodeClass returns a copy of the class with what it means where it
// says nothing, as the schema has it.
func DefaultEC2NodeClass(c *awsv1.EC2NodeClass) *awsv1.EC2NodeClass {
	out := c.DeepCopy()
	if out.Spec.MetadataOptions == nil {
		out.Spec.MetadataOptions = &awsv1.MetadataOptions{}
	}
	m := out.Spec.MetadataOptions
	m.HTTPEndpoint = or(m.HTTPEndpoint, awsv1.DefaultHTTPEndpoint)
	m.HTTPProtocolIPv6 = or(m.HTTPProtocolIPv6, awsv1.DefaultHTTPProtocolIPv6)
	m.HTTPPutResponseHopLimit = or(m.HTTPPutResponseHopLimit, awsv1.DefaultHTTPPutResponseHopLimit)
	m.HTTPTokens = or(m.HTTPTokens, awsv1.DefaultHTTPTokens)
	return out
}

func or[T any](p *T, otherwise T) *T {
	if p != nil {
		return p
	}
	return &otherwise
}

// ValidateEC2NodeClass returns an *InvalidError with everything that is wrong
// with the class, or nil. Whether its terms find something is a question for
// EC2.
func ValidateEC2NodeClass(c *awsv1.EC2NodeClass) error {
	c, spec := DefaultEC2NodeClass(c), field.NewPath("spec")
	errs := labelName(c.Name)
	errs = append(errs, notBuilt(spec, &c.Spec)...)
	errs = append(errs, subnetTerms(spec.Child("subnetSelectorTerms"), c.Spec.SubnetSelectorTerms)...)
	errs = append(errs, groupTerms(spec.Child("securityGroupSelectorTerms"), c.Spec.SecurityGroupSelectorTerms)...)
	errs = append(errs, images(spec, &c.Spec)...)
	errs = append(errs, profile(spec, &c.Spec)...)
	errs = append(errs, classTags(spec.Child("tags"), c.Spec.Tags)...)
	errs = append(errs, classKubelet(spec.Child("kubelet"), &c.Spec)...)
	errs = append(errs, classDisks(spec.Child("blockDeviceMappings"), c.Spec.BlockDeviceMappings)...)
	if p := c.Spec.InstanceStorePolicy; p != nil && *p != awsv1.InstanceStoreRAID0 {
		errs = append(errs, field.NotSupported(spec.Child("instanceStorePolicy"), *p, []awsv1.InstanceStorePolicy{awsv1.InstanceStoreRAID0}))
	}
	errs = append(errs, metadataOptions(spec.Child("metadataOptions"), (*awsv1alpha1.MetadataOptions)(c.Spec.MetadataOptions))...)
	return invalid(awsv1.Kind, c.Name, errs)
}

// notBuilt refuses fields that the API has and this program does not act on.
func notBuilt(path *field.Path, s *awsv1.EC2NodeClassSpec) field.ErrorList {
	var errs field.ErrorList
	for _, f := range []struct {
		name string
		set  bool
		what string
	}{
		{"capacityReservationSelectorTerms", s.CapacityReservationSelectorTerms != nil, "reserved capacity is"},
		{"placementGroupSelector", s.PlacementGroupSelector != nil, "placement groups are"},
		{"ipPrefixCount", s.IPPrefixCount != nil, "prefixes of addresses are"},
		{"networkInterfaces", s.NetworkInterfaces != nil, "network interfaces of one's own, EFA among them, are"},
		{"connectionTracking", s.ConnectionTracking != nil, "connection tracking is"},
		{"cpuOptions", s.CPUOptions != nil, "CPU options are"},
	} {
		if f.set {
			errs = append(errs, field.Forbidden(path.Child(f.name), fmt.Sprintf("%s: %s not supported yet; remove it", f.name, f.what)))
		}
	}
	return errs
}

func profile(path *field.Path, s *awsv1.EC2NodeClassSpec) field.ErrorList {
	var errs field.ErrorList
	if (s.Role == nil) == (s.InstanceProfile == nil) {
		errs = append(errs, field.Invalid(path.Child("role"), s.Role,
			"set exactly one of role and instanceProfile: a role, for which an instance profile is made, or the name of a profile that exists"))
	}
	if s.Role != nil && *s.Role == "" {
		errs = append(errs, field.Required(path.Child("role"), "must not be empty"))
	}
	if s.InstanceProfile != nil && *s.InstanceProfile == "" {
		errs = append(errs, field.Required(path.Child("instanceProfile"), "must not be empty"))
	}
	return errs
}

// Tags by which the controller knows its machines.
var ownTags = []string{"eks:eks-cluster-name", "karpenter.sh/nodepool", "karpenter.sh/nodeclaim", "karpenter.k8s.aws/ec2nodeclass"}

func classTags(path *field.Path, list map[string]string) field.ErrorList {
	errs := tags(path, list)
	for _, k := range sortedKeys(list) {
		if slices.Contains(ownTags, k) || strings.HasPrefix(k, "kubernetes.io/cluster/") {
			errs = append(errs, field.Forbidden(path.Key(k), fmt.Sprintf("tag %s is not for users: the controller knows its machines by it; remove it", k)))
		}
	}
	return errs
}

func classKubelet(path *field.Path, s *awsv1.EC2NodeClassSpec) field.ErrorList {
	k := s.Kubelet
	if k == nil {
		return nil
	}
	errs := kubelet(path, &k.Kubelet)
	high, low := k.ImageGCHighThresholdPercent, k.ImageGCLowThresholdPercent
	errs = append(errs, percent(path.Child("imageGCHighThresholdPercent"), high)...)
	errs = append(errs, percent(path.Child("imageGCLowThresholdPercent"), low)...)
	if high != nil && low != nil && *high <= *low {
		errs = append(errs, field.Invalid(path.Child("imageGCHighThresholdPercent"), *high, "must be greater than imageGCLowThresholdPercent"))
	}
	if family(s) == awsv1.AMIFamilyBottlerocket {
		if k.PodsPerCore != nil {
			errs = append(errs, field.Forbidden(path.Child("podsPerCore"), "does not exist in Bottlerocket; remove it"))
		}
		if len(k.ClusterDNS) > 1 {
			errs = append(errs, field.Invalid(path.Child("clusterDNS"), k.ClusterDNS, "Bottlerocket takes one address in kubelet.clusterDNS"))
		}
	}
	return errs
}

func percent(path *field.Path, p *int32) field.ErrorList {
	if p == nil || (*p >= 0 && *p <= 100) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *p, "must be between 0 and 100")}
}

func classDisks(path *field.Path, list []awsv1.BlockDeviceMapping) field.ErrorList {
	var errs field.ErrorList
	var common []awsv1alpha1.BlockDeviceMapping
	roots := 0
	for i, d := range list {
		common = append(common, awsv1alpha1.BlockDeviceMapping{DeviceName: d.DeviceName, EBS: volumeOf(d.EBS)})
		if d.RootVolume {
			roots++
		}
		if d.EBS == nil || d.EBS.VolumeInitializationRate == nil {
			continue
		}
		rate, from := *d.EBS.VolumeInitializationRate, path.Index(i).Child("ebs", "volumeInitializationRate")
		if rate < 100 || rate > 300 {
			errs = append(errs, field.Invalid(from, rate, "must be between 100 and 300 MiB/s"))
		}
		if d.EBS.SnapshotID == nil || *d.EBS.SnapshotID == "" {
			errs = append(errs, field.Forbidden(from, "needs snapshotID: an empty volume has nothing to fetch"))
		}
	}
	if roots > 1 {
		errs = append(errs, field.Invalid(path, roots, "at most one of blockDeviceMappings may be the rootVolume"))
	}
	return append(errs, disks(path, common)...)
}

// volumeOf is the volume without what only this generation has.
func volumeOf(e *awsv1.EBS) *awsv1alpha1.EBS {
	if e == nil {
		return nil
	}
	return &awsv1alpha1.EBS{DeleteOnTermination: e.DeleteOnTermination, Encrypted: e.Encrypted, IOPS: e.IOPS, KMSKeyID: e.KMSKeyID,
		SnapshotID: e.SnapshotID, Throughput: e.Throughput, VolumeSize: e.VolumeSize, VolumeType: e.VolumeType}
}
