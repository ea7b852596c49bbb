package class

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/internal/aws/family"
	"karpenter/internal/core/world"
)

// silentClass is what holds where an EC2NodeClass does not mention the metadata
// service.
var silentClass = Metadata{
	Endpoint: awsv1.DefaultHTTPEndpoint, IPv6: awsv1.DefaultHTTPProtocolIPv6,
	HopLimit: awsv1.DefaultHTTPPutResponseHopLimit, Tokens: awsv1.DefaultHTTPTokens,
}

// FromNodeClass reads an EC2NodeClass. An error is *cloud.BadClassError and
// names the first field that is wrong, and the others after it.
func FromNodeClass(n *awsv1.EC2NodeClass) (Class, error) {
	s := &n.Spec
	c := Class{
		Ref: world.ClassRef{Group: awsv1.GroupVersion.Group, Kind: awsv1.Kind, Name: n.Name}, UID: string(n.UID),
		InstanceProfile:    value(s.InstanceProfile),
		Role:               roleName(value(s.Role)),
		UserData:           value(s.UserData),
		Kubelet:            kubelet(s.Kubelet),
		Tags:               s.Tags,
		RAID0:              value(s.InstanceStorePolicy) == awsv1.InstanceStoreRAID0,
		DetailedMonitoring: value(s.DetailedMonitoring),
		PublicIP:           s.AssociatePublicIPAddress,
		Context:            value(s.Context),
	}
	problems := c.readImages(s)
	for _, f := range []struct {
		into  *Selector
		kind  kind
		terms []term
	}{
		{&c.Subnets, subnets, termsOf(s.SubnetSelectorTerms, func(t awsv1.SubnetSelectorTerm) term { return term{tags: t.Tags, id: t.ID} })},
		{&c.SecurityGroups, securityGroups, termsOf(s.SecurityGroupSelectorTerms, func(t awsv1.SecurityGroupSelectorTerm) term {
			return term{tags: t.Tags, id: t.ID, name: t.Name}
		})},
	} {
		sel, more := f.kind.ofTerms(f.terms, "group-name")
		*f.into, problems = sel, append(problems, more...)
		if len(f.terms) == 0 {
			problems = append(problems, problem{generations[awsv1.Kind].fields[f.kind.field], "is required: name tags or ids"})
		}
	}
	if (c.InstanceProfile == "") == (c.Role == "") {
		problems = append(problems, problem{"role", "name either a role or an instanceProfile, and not both"})
	}
	var more []problem
	c.Metadata, more = readMetadata(s.MetadataOptions, silentClass)
	problems = append(problems, more...)
	c.BlockDevices, more = blockDevices(s.BlockDeviceMappings)
	problems = append(problems, more...)
	problems = slices.Concat(problems, checkTags(s.Tags), reservedTags(s.Tags), c.checkKubelet(), unbuilt(s))
	return c, bad(c.Ref, problems)
}

func termsOf[T any](list []T, read func(T) term) []term {
	out := make([]term, 0, len(list))
	for _, t := range list {
		out = append(out, read(t))
	}
	return out
}

// readImages reads family, alias and terms, which depend on each other.
func (c *Class) readImages(s *awsv1.EC2NodeClassSpec) []problem {
	const field = "amiSelectorTerms"
	c.Family = string(value(s.AMIFamily))
	alias := slices.IndexFunc(s.AMISelectorTerms, func(t awsv1.AMISelectorTerm) bool { return t.Alias != "" })
	switch {
	case len(s.AMISelectorTerms) == 0:
		return []problem{{field, "is required: for example {alias: al2023@latest}"}}
	case alias >= 0 && len(s.AMISelectorTerms) > 1:
		return []problem{{field, "an alias must be the only term: it says all that there is to say"}}
	case alias >= 0:
		return c.readAlias(s.AMISelectorTerms[0].Alias)
	}
	var problems []problem
	if _, ok := family.Named(c.Family); !ok || c.Family == "" || c.Family == family.Ubuntu {
		problems = append(problems, problem{"amiFamily", fmt.Sprintf("%q is not a family: without an alias it must be AL2, AL2023, Bottlerocket or Custom", c.Family)})
	}
	sel, more := images.ofTerms(termsOf(s.AMISelectorTerms, func(t awsv1.AMISelectorTerm) term {
		return term{tags: t.Tags, id: t.ID, name: t.Name, owner: t.Owner, ssmParameter: t.SSMParameter}
	}), "name")
	c.Images = sel
	return append(problems, more...)
}

// readAlias reads family@version.
func (c *Class) readAlias(alias string) []problem {
	const field = "amiSelectorTerms[0].alias"
	name, version, ok := strings.Cut(alias, "@")
	f, known := family.Aliased(strings.ToLower(name))
	switch {
	case !ok || version == "":
		return []problem{{field, fmt.Sprintf("%q is not of the form family@version: write for example al2023@latest", alias)}}
	case !known:
		return []problem{{field, fmt.Sprintf("there is no family %q: use one of %s", name, strings.Join(family.Aliases(), ", "))}}
	case c.Family != "" && c.Family != f.Name && c.Family != family.Custom:
		return []problem{{"amiFamily", fmt.Sprintf("is %s, and the alias says %s: leave it out", c.Family, f.Name)}}
	case c.Family == "":
		c.Family = f.Name
	}
	c.Release = Release{f.Name, version}
	return nil
}

// roleName strips the path of a role: profiles take the bare name.
func roleName(role string) string { return role[strings.LastIndex(role, "/")+1:] }

// reservedTags are those by which we find our own.
func reservedTags(tags map[string]string) []problem {
	var out []problem
	for _, key := range []string{"eks:eks-cluster-name", "karpenter.sh/nodepool", "karpenter.sh/nodeclaim", "karpenter.k8s.aws/ec2nodeclass"} {
		if _, set := tags[key]; set {
			out = append(out, problem{"tags", fmt.Sprintf("%q cannot be set: it is ours", key)})
		}
	}
	for key := range tags {
		if strings.HasPrefix(key, "kubernetes.io/cluster/") {
			out = append(out, problem{"tags", fmt.Sprintf("%q cannot be set: it says whose machine it is", key)})
		}
	}
	slices.SortFunc(out, func(a, b problem) int { return strings.Compare(a.text, b.text) })
	return out
}

// unbuilt refuses what the schema has and nobody carries out.
func unbuilt(s *awsv1.EC2NodeClassSpec) []problem {
	var out []problem
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"capacityReservationSelectorTerms", len(s.CapacityReservationSelectorTerms) > 0},
		{"placementGroupSelector", s.PlacementGroupSelector != nil},
		{"ipPrefixCount", value(s.IPPrefixCount) > 0},
		{"networkInterfaces", len(s.NetworkInterfaces) > 0},
		{"connectionTracking", s.ConnectionTracking != nil},
		{"cpuOptions", s.CPUOptions != nil},
	} {
		if f.set {
			out = append(out, problem{f.name, "is not supported yet: leave it out"})
		}
	}
	return out
}

// checkKubelet refuses what the family's kubelet is not given.
func (c *Class) checkKubelet() []problem {
	if c.Kubelet == nil || c.Family != family.Bottlerocket {
		return nil
	}
	var out []problem
	if c.Kubelet.PodsPerCore != nil {
		out = append(out, problem{"kubelet.podsPerCore", "is not known to Bottlerocket: set maxPods"})
	}
	if len(c.Kubelet.ClusterDNS) > 1 {
		out = append(out, problem{"kubelet.clusterDNS", "Bottlerocket takes one address: leave the others out"})
	}
	return out
}

// kubelet reads the block, which in the older generation is the pool's.
func kubelet(k *awsv1.KubeletConfiguration) *world.Kubelet {
	if k == nil {
		return nil
	}
	return &world.Kubelet{
		ClusterDNS:                  slices.Clone(k.ClusterDNS),
		MaxPods:                     k.MaxPods,
		PodsPerCore:                 k.PodsPerCore,
		SystemReserved:              quantities(k.SystemReserved),
		KubeReserved:                quantities(k.KubeReserved),
		EvictionHard:                texts(k.EvictionHard),
		EvictionSoft:                texts(k.EvictionSoft),
		EvictionSoftGracePeriod:     texts(k.EvictionSoftGracePeriod),
		EvictionMaxPodGraceSeconds:  k.EvictionMaxPodGracePeriod,
		ImageGCHighThresholdPercent: k.ImageGCHighThresholdPercent,
		ImageGCLowThresholdPercent:  k.ImageGCLowThresholdPercent,
		CPUCFSQuota:                 k.CPUCFSQuota,
	}
}

func quantities(list corev1.ResourceList) map[string]string {
	if len(list) == 0 {
		return nil
	}
	out := make(map[string]string, len(list))
	for name, q := range list {
		out[string(name)] = q.String()
	}
	return out
}

func texts[V ~string](m map[string]V) map[string]string {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k] = string(v)
	}
	return out
}
