package launch

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"karpenter/internal/aws/class"
	"karpenter/internal/core/label"
)

// ClusterTag is the tag key, with the cluster name as value, by which our
// launch templates are found.
const ClusterTag = "karpenter.k8s.aws/cluster"

// Cluster is what machines must know to join, and what all of them share.
type Cluster struct {
	Name     string
	Endpoint string
	// CABundle is the certificate of the API server, PEM in base64.
	CABundle string
	// DNS is the address of the cluster's DNS service; the zero value if it is
	// not known. An IPv6 address means an IPv6 cluster.
	DNS netip.Addr
	// ServiceCIDR holds the addresses of Services; the zero value if it is not
	// known.
	ServiceCIDR netip.Prefix
	// Version is the Kubernetes version, major.minor.
	Version string

	DefaultInstanceProfile string
	// Tags go on everything.
	Tags map[string]string
	// ENILimitedPodDensity: the number of pods follows from the type's network
	// interfaces; otherwise it is 110.
	ENILimitedPodDensity bool
}

// Template is an EC2 launch template.
type Template struct {
	Name string       `json:"name"`
	Data TemplateData `json:"data"`
	// Tags go on the template itself, sorted by key.
	Tags []Tag `json:"tags"`
}

// TemplateInfo is a launch template as a list shows it.
type TemplateInfo struct {
	Name    string
	Created time.Time
}

// Profile is an IAM instance profile.
type Profile struct {
	Name string
	// Path begins and ends with a slash.
	Path    string
	Roles   []string
	Tags    []Tag // sorted by key
	Created time.Time
}

// EKSCluster is what EKS knows about a cluster.
type EKSCluster struct {
	Endpoint string
	// CABundle is PEM in base64.
	CABundle string
	// Version is major.minor.
	Version string
	// ServiceCIDR holds the addresses of Services: IPv6 in an IPv6 cluster.
	ServiceCIDR netip.Prefix
}

// TemplateData is what a launch template says about machines.
type TemplateData struct {
	ImageID         string              `json:"imageID"`
	InstanceProfile string              `json:"instanceProfile"`
	Monitoring      bool                `json:"monitoring"`
	SecurityGroups  []string            `json:"securityGroups"`
	UserData        string              `json:"userData"` // base64
	Devices         []class.BlockDevice `json:"devices,omitempty"`
	Metadata        Metadata            `json:"metadata"`
	// PublicIP gives the machine a public address, or none; nil leaves it to
	// the subnet. IPv6 gives it a primary IPv6 address.
	PublicIP *bool `json:"publicIP,omitempty"`
	IPv6     bool  `json:"ipv6,omitempty"`
	// InterfaceTags go on network interfaces and, of Spot machines, on the request
	// for them, sorted by key. A machine on demand has no such request, and tags
	// for one would make its launch fail.
	InterfaceTags []Tag `json:"interfaceTags"`
	Spot          bool  `json:"spot,omitempty"`
}

// Metadata are options of the instance metadata service; empty and zero leave
// EC2's default.
type Metadata struct {
	Endpoint string `json:"endpoint,omitempty"`
	IPv6     string `json:"ipv6,omitempty"`
	HopLimit int64  `json:"hopLimit,omitempty"`
	Tokens   string `json:"tokens,omitempty"`
}

// template builds the launch template for one image, named after its content.
func (p Plan) template(image string, tags map[string]string, userData string) (Template, error) {
	c, ipv6 := p.Class, p.Cluster.DNS.Is6()
	data := TemplateData{
		ImageID:         image,
		InstanceProfile: p.Profile,
		Monitoring:      c.DetailedMonitoring,
		SecurityGroups:  slices.Sorted(slices.Values(p.Groups)),
		UserData:        base64.StdEncoding.EncodeToString([]byte(userData)),
		Devices:         c.Devices(),
		Metadata:        Metadata(c.Metadata),
		PublicIP:        c.PublicIP,
		IPv6:            ipv6 && c.Newer(),
		InterfaceTags:   Tags(tags),
		Spot:            p.CapacityType == label.Spot,
	}
	if data.Metadata.IPv6 == class.AsCluster {
		data.Metadata.IPv6 = map[bool]string{true: "enabled", false: "disabled"}[ipv6]
	}
	own := maps.Clone(tags)
	own[ClusterTag] = p.Cluster.Name
	t := Template{Data: data, Tags: Tags(own)}
	content, err := json.Marshal(t)
	if err != nil {
		return Template{}, fmt.Errorf("hashing the launch template: %w", err)
	}
	sum := sha256.Sum256(content)
	hash := strconv.FormatUint(binary.BigEndian.Uint64(sum[:]), 10)
	if t.Name = "karpenter.k8s.aws/" + hash; !c.Newer() {
		// A name may have 128 characters; that of a cluster 100.
		t.Name = "Karpenter-" + p.Cluster.Name[:min(len(p.Cluster.Name), 97)] + "-" + hash
	}
	return t, nil
}

// Tags sorts tags by key.
func Tags(tags map[string]string) []Tag {
	out := make([]Tag, 0, len(tags))
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, Tag{k, tags[k]})
	}
	return out
}
